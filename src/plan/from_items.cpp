#include "plan/from_items.h"

#include <algorithm>
#include <array>

#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// Endings by which DuckDB knows that a table's name is a file's.
constexpr std::array<std::string_view, 8> kFileEndings = {".csv",    ".tsv",     ".json", ".jsonl",
                                                          ".ndjson", ".parquet", ".txt",  ".xlsx"};

bool IsFileName(std::string_view table) {
  std::string name = sql::LowerCase(table);
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  }
  return std::any_of(kFileEndings.begin(), kFileEndings.end(),
                     [&name](std::string_view ending) { return name.ends_with(ending); });
}

/// DuckDB names an unaliased file by its base name up to the first dot of it, a pattern of files by
/// the pattern.
std::string BaseName(std::string_view table) {
  const bool pattern = table.find_first_of("*?[") != table.npos;
  if (pattern || !IsFileName(table)) return std::string(table);
  const std::size_t slash = table.find_last_of('/');
  std::string_view base = slash == std::string_view::npos ? table : table.substr(slash + 1);
  return std::string(base.substr(0, base.find('.')));
}

std::string AliasOfItem(const Json& node) {
  const std::string_view alias = sql::AliasOf(node);
  if (!alias.empty()) return std::string(alias);
  if (sql::TypeOf(node) == "BASE_TABLE") return BaseName(sql::TextMember(node, "table_name"));
  if (sql::TypeOf(node) == "TABLE_FUNCTION") return sql::FunctionName(node["function"]);
  return {};
}

/// What becomes of core and visible below a join.
struct Below {
  bool core = true;
  bool visible = true;
  bool missing = false;
};

struct Sides {
  Below left;
  Below right;
  bool core_join = false;
};

bool HidesRight(const Json& join) {
  const std::string_view type = sql::TextMember(join, "join_type");
  return type == "SEMI" || type == "ANTI";
}

Sides SidesOf(const Json& join, Below above) {
  const std::string_view type = sql::TextMember(join, "join_type");
  const std::string_view form = sql::TextMember(join, "ref_type");
  const bool plain = form == "REGULAR" || form == "CROSS" || form == "NATURAL";
  Sides sides{above, above, false};
  const bool keeps_left = type == "INNER" || type == "LEFT" || type == "SEMI" || type == "ANTI";
  const bool keeps_right = type == "INNER" || type == "RIGHT";
  sides.left.core = above.core && plain && keeps_left;
  sides.right.core = above.core && plain && keeps_right;
  sides.right.visible = above.visible && !HidesRight(join);
  const bool positional = form == "POSITIONAL";  // the shorter side is filled up
  sides.left.missing = above.missing || type == "RIGHT" || type == "FULL" || positional;
  sides.right.missing = above.missing || type == "LEFT" || type == "FULL" || positional;
  sides.core_join = above.core && plain && type == "INNER";
  return sides;
}

ItemSet Collect(Json& node, Below below, const SourceText& source, FromTree& tree) {
  if (sql::TypeOf(node) == "EMPTY") return 0;
  if (sql::TypeOf(node) == "JOIN") {
    const Sides sides = SidesOf(node, below);
    FromJoin join{&node, 0, 0, 0, sides.core_join};
    const std::size_t below_begin = tree.joins.size();
    join.left = Collect(node["left"], sides.left, source, tree);
    join.right = Collect(node["right"], sides.right, source, tree);
    join.seen = join.left | join.right;
    for (std::size_t i = below_begin; i < tree.joins.size(); ++i) {
      if (HidesRight(*tree.joins[i].node)) join.seen &= ~tree.joins[i].right;
    }
    tree.joins.push_back(join);
    return join.left | join.right;
  }
  if (tree.items.size() == kMaxItems) {
    throw source.At(node, ErrorCode::kUnsupported,
                    "more than 64 tables beside AI calls are not supported yet");
  }
  FromItem item;
  item.node = &node;
  item.alias = AliasOfItem(node);
  item.renamed = !sql::AliasOf(node).empty();
  item.schema = sql::TextMember(node, "schema_name");
  item.table = sql::TextMember(node, "table_name");
  item.core = below.core;
  item.visible = below.visible;
  item.missing = below.missing;
  tree.items.push_back(std::move(item));
  return SetOf(tree.items.size() - 1);
}

}  // namespace

FromTree ReadFrom(Json& from, const SourceText& source) {
  FromTree tree;
  Collect(from, Below{}, source, tree);
  return tree;
}

int FindColumn(const columnar::Schema& columns, std::string_view name) {
  const auto found =
      std::find_if(columns.begin(), columns.end(),
                   [&](const columnar::Field& field) { return sql::SameWord(field.name, name); });
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

}  // namespace quail::plan
