#include "columnar/named_members.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "nanoarrow/nanoarrow.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

std::string_view NameOf(const ArrowSchema& schema) {
  return schema.name == nullptr ? std::string_view() : schema.name;
}

bool HasMember(const ArrowSchema& schema, std::string_view name) {
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (NameOf(*schema.children[i]) == name) return true;
  }
  return false;
}

void NameMembers(ArrowSchema& schema) {
  const bool is_struct = std::string_view(schema.format) == "+s";
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    ArrowSchema& child = *schema.children[i];
    NameMembers(child);
    if (!is_struct || !NameOf(child).empty()) continue;
    std::string name = fmt::format("v{}", i + 1);
    while (HasMember(schema, name)) name += "_";
    if (ArrowSchemaSetName(&child, name.c_str()) != NANOARROW_OK) {
      throw Error(ErrorCode::kOutOfMemory, "out of memory");
    }
  }
}

}  // namespace

OwnedSchema WithNamedMembers(const ArrowSchema& schema) {
  OwnedSchema copy(new ArrowSchema{});
  if (ArrowSchemaDeepCopy(&schema, copy.get()) != NANOARROW_OK) {
    throw Error(ErrorCode::kOutOfMemory, "out of memory");
  }
  NameMembers(*copy);
  return copy;
}

}  // namespace quail::columnar
