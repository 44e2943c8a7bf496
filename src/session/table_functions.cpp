#include "session/table_functions.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quail/dialect.h"
#include "sql/ai_function.h"

namespace quail::session {
namespace {

using relational::ScalarType;
using relational::TableFunction;
using Rows = std::vector<std::vector<TableFunction::Cell>>;

void RegisterErrors(SessionState& state) {
  TableFunction errors;
  errors.name = "quail_errors";
  errors.columns = {{"statement", ScalarType::kText}, {"function", ScalarType::kText},
                    {"template", ScalarType::kText},  {"args", ScalarType::kText},
                    {"reason", ScalarType::kText},    {"rows", ScalarType::kInteger}};
  errors.rows = [&state] { return state.errors; };
  state.connection->Register(std::move(errors));
}

void RegisterFunctions(relational::Connection& connection) {
  TableFunction functions;
  functions.name = "quail_functions";
  const auto column = [&](std::string_view name) {
    functions.columns.push_back({std::string(name), ScalarType::kText});
  };
  column("name");
  for (const Dialect dialect : Dialects()) column(NameOf(dialect));
  for (const char* name : {"arguments", "result_type", "status", "summary", "example"}) {
    column(name);
  }
  functions.rows = [] {
    Rows rows;
    const auto cell = [](std::string_view text) {
      return text.empty() ? TableFunction::Cell() : std::string(text);
    };
    for (const sql::AiFunction& function : sql::AiFunctions()) {
      auto& row = rows.emplace_back();
      row.push_back(cell(function.name));
      for (const Dialect dialect : Dialects()) row.push_back(cell(function.spelling(dialect)));
      for (const std::string_view text :
           {function.arguments, function.result_type,
            std::string_view(function.implemented() ? "supported" : "known, not supported yet"),
            function.summary, function.example}) {
        row.push_back(cell(text));
      }
    }
    return rows;
  };
  connection.Register(std::move(functions));
}

void RegisterSettings(SessionState& state) {
  TableFunction settings;
  settings.name = "quail_settings";
  settings.columns = {{"name", ScalarType::kText}, {"value", ScalarType::kText}};
  settings.rows = [&state] {
    Rows rows;
    for (const auto& [name, value] : state.settings.List()) rows.push_back({name, value});
    return rows;
  };
  state.connection->Register(std::move(settings));
}

}  // namespace

void RegisterTableFunctions(SessionState& state) {
  RegisterErrors(state);
  RegisterFunctions(*state.connection);
  RegisterSettings(state);
}

}  // namespace quail::session
