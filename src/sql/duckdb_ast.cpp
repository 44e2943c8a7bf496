#include "sql/duckdb_ast.h"

#include <charconv>
#include <cstdint>
#include <limits>

#include "fmt/format.h"
#include "quail/error.h"
#include "sql/lexer.h"

namespace quail::sql {

namespace {

constexpr std::size_t kMaxDepth = 2000;

[[noreturn]] void Corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("the engine's syntax tree {}", what));
}

/// A member that must be there; the tree is the engine's, but it crossed a text.
template <typename Node>
auto& Member(Node& node, const char* key) {
  if (!node.is_object() || !node.contains(key)) Corrupt(fmt::format("has no \"{}\"", key));
  return node.at(key);
}

std::size_t DepthOf(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return deepest;
}

double ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

/// 2.0: {"kind": "NUMERIC", "text": "0.3"}.
Constant ReadLiteral(const Json& literal) {
  Constant out;
  const std::string_view kind = TextMember(literal, "kind");
  out.text = TextMember(literal, "text");
  if (kind == "STRING") {
    out.kind = ConstantKind::kText;
  } else if (kind == "INTEGER" || kind == "NUMERIC") {
    out.kind = ConstantKind::kNumber;
    out.number = ParseNumber(out.text);
  } else if (kind == "BOOLEAN") {
    out.kind = ConstantKind::kBoolean;
    out.boolean = SameWord(out.text, "true");
  } else if (kind == "NULL_LITERAL") {
    out.kind = ConstantKind::kNull;
  }
  return out;
}

double ScaleOf(const Json& type) {
  double scale = 1;
  if (!type.contains("type_info") || !type["type_info"].is_object()) return scale;
  const Json& info = type["type_info"];
  if (!info.contains("scale") || !info["scale"].is_number_integer()) return scale;
  for (std::int64_t i = std::min<std::int64_t>(info["scale"].get<std::int64_t>(), 38); i > 0; --i) {
    scale *= 10;
  }
  return scale;
}

/// 1.5: {"type": {"id": "DECIMAL", "type_info": {"scale": 1}}, "is_null": false, "value": 3}.
Constant ReadValue(const Json& value) {
  Constant out;
  if (value.contains("is_null") && value["is_null"] == true) {
    out.kind = ConstantKind::kNull;
    return out;
  }
  if (!value.is_object() || !value.contains("value")) return out;
  const Json& raw = value["value"];
  if (raw.is_string()) {
    out.kind = ConstantKind::kText;
    out.text = raw.get<std::string>();
  } else if (raw.is_boolean()) {
    out.kind = ConstantKind::kBoolean;
    out.boolean = raw.get<bool>();
  } else if (raw.is_number()) {
    out.kind = ConstantKind::kNumber;
    const double scale = value.contains("type") ? ScaleOf(value["type"]) : 1;
    out.number = raw.get<double>() / scale;
    out.text = scale == 1 ? raw.dump() : fmt::format("{}", out.number);
  }
  return out;
}

/// 1.5 writes TRUE as CAST('t' AS BOOLEAN).
std::optional<Constant> ReadBooleanCast(const Json& cast) {
  if (!cast.contains("child") || !cast.contains("cast_type")) return std::nullopt;
  if (TextMember(cast["cast_type"], "id") != "BOOLEAN") return std::nullopt;
  const auto child = ConstantOf(cast["child"]);
  if (!child || child->kind != ConstantKind::kText) return std::nullopt;
  if (child->text != "t" && child->text != "f") return std::nullopt;
  Constant out;
  out.kind = ConstantKind::kBoolean;
  out.boolean = child->text == "t";
  return out;
}

void AddExpression(Json& node, const char* key, std::vector<Json*>& out) {
  if (!node.contains(key)) return;
  Json& member = node[key];
  if (IsExpression(member)) out.push_back(&member);
  if (member.is_array()) {
    for (Json& item : member) {
      if (IsExpression(item)) out.push_back(&item);
    }
  }
}

void AddModifier(Json& modifier, std::vector<Json*>& out) {
  if (!modifier.is_object()) return;
  AddExpression(modifier, "distinct_on_targets", out);
  AddExpression(modifier, "limit", out);
  AddExpression(modifier, "offset", out);
  if (!modifier.contains("orders") || !modifier["orders"].is_array()) return;
  for (Json& order : modifier["orders"]) {
    if (order.is_object()) AddExpression(order, "expression", out);
  }
}

class TableWalk {
 public:
  explicit TableWalk(const TableVisit& visit) : visit_(visit) {}

  void Visit(Json& node) {
    if (TypeOf(node) == "BASE_TABLE") return visit_(node, known_);
    const std::size_t before = known_.size();
    for (CteEntry& entry : CtesOf(node)) {
      Visit(*entry.query);
      known_.push_back(std::move(entry));
    }
    const bool recursive = TypeOf(node) == "RECURSIVE_CTE_NODE";
    for (const auto& [key, member] : node.items()) {
      if (key == "cte_map") continue;
      const bool knows_itself = recursive && key == "right";
      if (knows_itself) known_.push_back({std::string(TextMember(node, "cte_name")), &node});
      if (member.is_object()) Visit(member);
      if (member.is_array()) ForEachChild(member, [this](Json& child) { Visit(child); });
      if (knows_itself) known_.pop_back();
    }
    known_.resize(before);
  }

 private:
  const TableVisit& visit_;
  std::vector<CteEntry> known_;
};

/// 1.5 writes a literal that is infinite (1e400) as a bare word, which JSON has not and which it
/// does not read itself. Inside of a JSON text these quotes would have backslashes.
bool HasInfinities(std::string_view text) {
  return text.find(R"("value":Infinity})") != text.npos ||
         text.find(R"("value":-Infinity})") != text.npos;
}

std::string WithQuotedInfinities(std::string text) {
  constexpr std::string_view kMember = "\"value\":";
  for (const std::string_view word : {"Infinity", "-Infinity"}) {
    const std::string bare = fmt::format("{}{}}}", kMember, word);
    const std::string quoted = fmt::format("{}\"{}\"}}", kMember, word);
    for (std::size_t at = text.find(bare); at != text.npos; at = text.find(bare, at)) {
      text.replace(at, bare.size(), quoted);
    }
  }
  return text;
}

/// Constants of type DOUBLE whose value is a text become a cast of the text.
void CastInfinities(Json& node) {
  if (!node.is_structured()) return;
  for (Json& child : node) CastInfinities(child);
  if (ClassOf(node) != "CONSTANT" || !node.contains("value")) return;
  if (!node["value"].is_object() || !node["value"].contains("type")) return;
  if (TextMember(node["value"]["type"], "id") != "DOUBLE") return;
  if (TextMember(node["value"], "value").empty()) return;
  Json text = node;
  const Json type = text["value"]["type"];
  text["value"]["type"]["id"] = "VARCHAR";
  text["alias"] = "";
  node.erase("value");
  node["class"] = "CAST";
  node["type"] = "OPERATOR_CAST";
  node["child"] = std::move(text);
  node["cast_type"] = type;
  node["try_cast"] = false;
}

}  // namespace

Json ReadTree(std::string_view text) {
  if (DepthOf(text) > kMaxDepth) Corrupt("is nested too deeply");
  const bool infinite = HasInfinities(text);
  Json tree = infinite ? Json::parse(WithQuotedInfinities(std::string(text)), nullptr, false)
                       : Json::parse(text, nullptr, false);
  if (tree.is_discarded() || !tree.is_object()) Corrupt("is not JSON");
  if (infinite) CastInfinities(tree);
  QueryNode(tree);
  return tree;
}

Json& QueryNode(Json& tree) { return const_cast<Json&>(QueryNode(static_cast<const Json&>(tree))); }

const Json& QueryNode(const Json& tree) {
  const Json& statements = Member(tree, "statements");
  if (!statements.is_array() || statements.size() != 1) Corrupt("is not of one statement");
  const Json& node = Member(statements[0], "node");
  if (!IsQueryNode(node)) Corrupt("has no query");
  return node;
}

Json MakeTree(Json node) {
  Json tree;
  tree["error"] = false;
  Json statement;
  statement["node"] = std::move(node);
  statement["named_param_map"] = Json::array();
  tree["statements"] = Json::array();
  tree["statements"].push_back(std::move(statement));
  return tree;
}

std::string_view TextMember(const Json& node, const char* key) {
  if (!node.is_object()) return {};
  const auto found = node.find(key);
  if (found == node.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

bool IsAbsent(const Json& node, const char* key) {
  return !node.contains(key) || node.at(key).is_null();
}

std::string_view ClassOf(const Json& node) { return TextMember(node, "class"); }
std::string_view TypeOf(const Json& node) { return TextMember(node, "type"); }
std::string_view AliasOf(const Json& node) { return TextMember(node, "alias"); }
bool IsExpression(const Json& node) { return !ClassOf(node).empty(); }
bool IsQueryNode(const Json& node) {
  return !IsExpression(node) && TypeOf(node).ends_with("_NODE");
}

std::optional<std::size_t> LocationOf(const Json& node) {
  if (!node.is_object()) return std::nullopt;
  const auto found = node.find("query_location");
  if (found == node.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto location = found->get<std::uint64_t>();
  if (location == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return static_cast<std::size_t>(location);
}

std::string FunctionName(const Json& node) {
  if (ClassOf(node) != "FUNCTION" && ClassOf(node) != "WINDOW") return {};
  return LowerCase(TextMember(node, "function_name"));
}

std::vector<FunctionArgument> ArgumentsOf(Json& function) {
  std::vector<FunctionArgument> out;
  if (!function.is_object()) return out;
  if (const auto found = function.find("arguments"); found != function.end() && found->is_array()) {
    for (Json& argument : *found) {
      out.push_back({TextMember(argument, "name"), &Member(argument, "expression")});
    }
  } else if (const auto children = function.find("children");
             children != function.end() && children->is_array()) {
    for (Json& child : *children) out.push_back({AliasOf(child), &child});
  }
  return out;
}

std::optional<Constant> ConstantOf(const Json& node) {
  if (ClassOf(node) == "CAST") return ReadBooleanCast(node);
  if (ClassOf(node) != "CONSTANT") return std::nullopt;
  if (node.contains("literal")) return ReadLiteral(node["literal"]);
  if (node.contains("value")) return ReadValue(node["value"]);
  return Constant{};
}

std::vector<std::string> ColumnPath(const Json& node) {
  std::vector<std::string> path;
  if (ClassOf(node) != "COLUMN_REF") return path;
  const Json& names = Member(node, "column_names");
  if (!names.is_array()) Corrupt("has a column without a name");
  for (const Json& name : names) {
    if (!name.is_string()) Corrupt("has a column without a name");
    path.push_back(name.get<std::string>());
  }
  return path;
}

void SetTableName(Json& table, const TableName& name) {
  table["catalog_name"] = name.catalog;
  table["schema_name"] = name.schema;
  table["table_name"] = name.table;
  if (!table.contains("qualified_name")) return;
  Json& path = Member(table["qualified_name"], "path");  // of 2.0, which prints it
  path = Json::array();
  for (const std::string& part : {name.catalog, name.schema, name.table}) {
    if (!part.empty()) path.push_back(part);
  }
}

bool HasClass(const Json& node, std::string_view kind) {
  return AnyNode(node, [kind](const Json& inner) { return ClassOf(inner) == kind; });
}

void ForEachChild(Json& node, const std::function<void(Json&)>& visit) {
  if (!node.is_structured()) return;
  for (Json& member : node) {
    if (member.is_object()) visit(member);
    if (member.is_array()) ForEachChild(member, visit);
  }
}

std::vector<Json*> ExpressionsOf(Json& select) {
  std::vector<Json*> out;
  if (!select.is_object()) return out;
  for (const char* key :
       {"where_clause", "group_expressions", "having", "qualify", "select_list"}) {
    AddExpression(select, key, out);
  }
  if (select.contains("modifiers") && select["modifiers"].is_array()) {
    for (Json& modifier : select["modifiers"]) AddModifier(modifier, out);
  }
  return out;
}

bool HasStar(const Json& select_list) {
  return std::ranges::any_of(select_list, [](const Json& item) { return ClassOf(item) == "STAR"; });
}

std::vector<CteEntry> CtesOf(Json& node) {
  std::vector<CteEntry> out;
  if (!node.is_object() || !node.contains("cte_map")) return out;
  Json& map = node["cte_map"];
  if (!map.is_object() || !map.contains("map") || !map["map"].is_array()) return out;
  for (Json& entry : map["map"]) {
    Json& value = Member(entry, "value");
    const bool flat = value.is_object() && value.contains("query_node");
    Json& query = flat ? value["query_node"] : Member(Member(value, "query"), "node");
    const bool renamed = value.contains("aliases") && !value["aliases"].empty();
    out.push_back({std::string(TextMember(entry, "key")), &query, &entry, renamed});
  }
  return out;
}

std::vector<CteEntry> AllCtesOf(Json& node) {
  std::vector<CteEntry> all = CtesOf(node);
  ForEachChild(node, [&all](Json& child) {
    for (CteEntry& below : AllCtesOf(child)) all.push_back(std::move(below));
  });
  return all;
}

void ForEachTable(Json& node, const TableVisit& visit) { TableWalk(visit).Visit(node); }

const CteEntry* FindCte(const std::vector<CteEntry>& known, const Json& table) {
  if (!TextMember(table, "schema_name").empty() || table.contains(kTableMark)) return nullptr;
  const std::string_view name = TextMember(table, "table_name");
  const auto found = std::find_if(known.rbegin(), known.rend(), [name](const CteEntry& entry) {
    return SameWord(entry.name, name);
  });
  return found == known.rend() ? nullptr : &*found;
}

}  // namespace quail::sql
