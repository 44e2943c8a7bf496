#include "relational/type_name.h"

#include <fmt/format.h>

#include <memory>

#include "relational/duckdb_session.h"
#include "relational/quote.h"

namespace quail::relational {
namespace {

using Type = DuckDbHandle<duckdb_logical_type>;

/// A text that the C API allocated.
std::string TakeText(const DuckDbApi& api, char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, api.free);
  return text == nullptr ? "" : text;
}

std::string NameOf(const DuckDbApi& api, duckdb_logical_type (*get)(duckdb_logical_type),
                   duckdb_logical_type type) {
  const Type part(api.destroy_logical_type, get(type));
  return TypeName(api, part.get());
}

/// Members of a struct or union: their number, names and types come from different functions of the
/// C API.
struct MemberFunctions {
  idx_t (*count)(duckdb_logical_type);
  char* (*name)(duckdb_logical_type, idx_t);
  duckdb_logical_type (*type)(duckdb_logical_type, idx_t);
};

std::string MemberList(const DuckDbApi& api, const MemberFunctions& members,
                       duckdb_logical_type type) {
  std::string list;
  for (idx_t i = 0; i < members.count(type); ++i) {
    const Type member(api.destroy_logical_type, members.type(type, i));
    if (i > 0) list += ", ";
    list += fmt::format("{} {}", QuoteNameIfNeeded(TakeText(api, members.name(type, i))),
                        TypeName(api, member.get()));
  }
  return list;
}

std::string EnumName(const DuckDbApi& api, duckdb_logical_type type) {
  std::string list;
  for (idx_t i = 0; i < api.enum_dictionary_size(type); ++i) {
    if (i > 0) list += ", ";
    list += QuoteText(TakeText(api, api.enum_dictionary_value(type, i)));
  }
  return fmt::format("ENUM({})", list);
}

std::string SimpleName(duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return "TIMESTAMP WITH TIME ZONE";
    case DUCKDB_TYPE_TIME_TZ:
      return "TIME WITH TIME ZONE";
    case DUCKDB_TYPE_SQLNULL:
      return "\"NULL\"";
    default:
      break;
  }
  switch (static_cast<unsigned>(id)) {
#define QUAIL_NAME(name, value) \
  case value:                   \
    return #name;
    QUAIL_DUCKDB_TYPES(QUAIL_NAME)
#undef QUAIL_NAME
    default:
      return fmt::format("TYPE_{}", static_cast<unsigned>(id));
  }
}

}  // namespace

std::string TypeName(const DuckDbApi& api, duckdb_logical_type type) {
  std::string alias = TakeText(api, api.logical_type_get_alias(type));
  if (!alias.empty()) return alias;
  const duckdb_type id = api.get_type_id(type);
  switch (id) {
    case DUCKDB_TYPE_DECIMAL:
      return fmt::format("DECIMAL({},{})", api.decimal_width(type), api.decimal_scale(type));
    case DUCKDB_TYPE_LIST:
      return NameOf(api, api.list_type_child_type, type) + "[]";
    case DUCKDB_TYPE_ARRAY:
      return fmt::format("{}[{}]", NameOf(api, api.array_type_child_type, type),
                         api.array_type_array_size(type));
    case DUCKDB_TYPE_MAP:
      return fmt::format("MAP({}, {})", NameOf(api, api.map_type_key_type, type),
                         NameOf(api, api.map_type_value_type, type));
    case DUCKDB_TYPE_STRUCT:
      return fmt::format("STRUCT({})",
                         MemberList(api,
                                    {api.struct_type_child_count, api.struct_type_child_name,
                                     api.struct_type_child_type},
                                    type));
    case DUCKDB_TYPE_UNION:
      return fmt::format("UNION({})",
                         MemberList(api,
                                    {api.union_type_member_count, api.union_type_member_name,
                                     api.union_type_member_type},
                                    type));
    case DUCKDB_TYPE_ENUM:
      return EnumName(api, type);
    default:
      return SimpleName(id);
  }
}

}  // namespace quail::relational
