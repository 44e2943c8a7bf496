#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/ai_call.h"
#include "plan/from_items.h"
#include "quail/error.h"
#include "sql/duckdb_ast.h"
#include "sql/statement.h"

namespace {

void Visit(quail::sql::Json& node, const quail::plan::SourceText& source) {
  quail::sql::LocationOf(node);
  quail::sql::ConstantOf(node);
  quail::sql::ColumnPath(node);
  quail::sql::ExpressionsOf(node);
  quail::sql::CtesOf(node);
  for (const auto& argument : quail::sql::ArgumentsOf(node)) quail::sql::ClassOf(*argument.value);
  if (quail::plan::IsAiCall(node)) quail::plan::ReadAiCall(node, source);
  quail::sql::ForEachChild(node, [&source](quail::sql::Json& child) { Visit(child, source); });
}

}  // namespace

/// Any bytes as a syntax tree: an Error or a walk over all of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const quail::sql::Statement statement;
  const quail::plan::SourceText source("", statement);
  try {
    auto tree = quail::sql::ReadTree({reinterpret_cast<const char*>(data), size});
    Visit(tree, source);
  } catch (const quail::Error&) {
  }
  return 0;
}
