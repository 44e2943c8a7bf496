#include "subject.h"

#include <fmt/format.h>

#include <fstream>

namespace quail::test {

void Answer::AddRow(const std::vector<std::optional<std::string>>& row) {
  std::string line;
  for (const auto& cell : row) line += cell.value_or("NULL") + "|";
  lines.push_back(line);
}

std::string Answer::Text() const {
  if (error) return fmt::format("error: {}", error->what());
  return fmt::format("{}", fmt::join(lines, "\n    "));
}

Config Threads(std::uint32_t threads) {
  Config config;
  config.threads = threads;
  return config;
}

Subject::Subject(const World& world, const std::filesystem::path& folder, Config config) {
  config.duckdb_library = QUAIL_TEST_DUCKDB;
  config.oracle = (folder / "oracle.jsonl").string();
  std::ofstream(config.oracle) << world.oracle;
  session_ = Session::Open(config);
  for (const std::string& sql : world.setup) session_->Run(sql, {sql, 0}, {});
}

Answer Subject::Rows(const std::string& sql) {
  Answer answer;
  try {
    const auto result = session_->Run(sql, {sql, 0}, {});
    for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
      for (const auto& row : rows) answer.AddRow(row);
    }
  } catch (const Error& error) {
    answer.error = error;
  }
  return answer;
}

Answer Subject::Rows(const RandomQuery& query) {
  for (const Twin& statement : query.before) {
    Answer answer = Rows(statement.ai);
    if (answer.error) return answer;
  }
  return Rows(query.sql.ai);
}

}  // namespace quail::test
