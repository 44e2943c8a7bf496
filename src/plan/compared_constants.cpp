#include "plan/compared_constants.h"

#include <string_view>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "sql/ai_function.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

void AddPair(const Json& one, const Json& two, std::vector<ComparedConstant>& found) {
  const auto constant = sql::ConstantOf(one);
  if (!constant || constant->kind != sql::ConstantKind::kText || sql::ConstantOf(two)) return;
  found.push_back({&one, &two, constant->text});
}

void Collect(const Json& node, std::vector<ComparedConstant>& found) {
  const std::string_view kind = sql::ClassOf(node);
  const std::string_view type = sql::TypeOf(node);
  if (kind == "COMPARISON") {
    AddPair(node["left"], node["right"], found);
    AddPair(node["right"], node["left"], found);
  } else if (kind == "BETWEEN") {
    AddPair(node["lower"], node["input"], found);
    AddPair(node["upper"], node["input"], found);
  } else if (type == "COMPARE_IN" || type == "COMPARE_NOT_IN") {
    const Json& children = node["children"];
    for (std::size_t i = 1; i < children.size(); ++i) AddPair(children[i], children[0], found);
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) Collect(child, found);
}

/// The simple type of a call's value, empty where it has none.
std::string_view TypeOfValue(const Json& call) {
  switch (sql::FindAiFunction(sql::FunctionName(call))->readout) {
    case sql::Readout::kVerdict:
      return AsksForErrorDetails(call) ? "" : "BOOLEAN";
    case sql::Readout::kProbability:
      return "DOUBLE";
    case sql::Readout::kTokenCount:
      return "INTEGER";
    case sql::Readout::kOther:
      return "";
  }
  return "";
}

}  // namespace

std::vector<ComparedConstant> ComparedConstants(const Json& tree) {
  std::vector<ComparedConstant> found;
  Collect(tree, found);
  return found;
}

void RefuseImpossibleConstants(const Json& tree, const SourceText& source, Catalog& catalog) {
  for (const ComparedConstant& compared : ComparedConstants(tree)) {
    if (!IsAiCall(*compared.other)) continue;
    const std::string_view type = TypeOfValue(*compared.other);
    if (type.empty()) continue;
    const auto row = catalog.Row(
        fmt::format("SELECT TRY_CAST({} AS {}) IS NULL", sql::QuoteString(compared.text), type));
    if (row.at(0) != "true") continue;
    throw source.At(
        *compared.constant, ErrorCode::kBind,
        fmt::format("Could not convert string '{}' to {}, which {} gives", compared.text, type,
                    sql::FindAiFunction(sql::FunctionName(*compared.other))->name));
  }
}

}  // namespace quail::plan
