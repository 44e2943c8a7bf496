// sql_records [--config NAME] [--complete] [PATH[:LINE] ..] [TEXT]: runs .test files (default: all
// of tests/sql). LINE: only the query or statement there, after what sets it up; TEXT: only queries
// and statements that contain it. NAME: how sessions run (SetupOf in runner.cpp). --complete writes
// the rows that came out into the files.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner.h"

namespace quail::test {
namespace {

namespace fs = std::filesystem;

struct Selection {
  bool complete = false;
  std::string config = "oracle";
  std::string text;
  std::vector<std::pair<fs::path, std::size_t>> files;  ///< line 0: all
};

struct Tally {
  std::size_t records = 0;
  std::size_t failed = 0;
};

void AddFiles(const fs::path& folder, Selection& selection) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".test") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) selection.files.emplace_back(path, 0);
}

Selection ReadArguments(int count, char** arguments) {
  Selection selection;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const std::size_t colon = argument.rfind(':');
    const bool numbered = colon != std::string::npos && colon + 1 < argument.size() &&
                          argument.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (argument == "--config" && i + 1 < count) {
      selection.config = arguments[++i];
    } else if (argument == "--complete") {
      selection.complete = true;
    } else if (numbered) {
      selection.files.emplace_back(argument.substr(0, colon),
                                   std::stoull(argument.substr(colon + 1)));
    } else if (fs::is_directory(argument)) {
      AddFiles(argument, selection);
    } else if (fs::exists(argument)) {
      selection.files.emplace_back(argument, 0);
    } else {
      selection.text = argument;
    }
  }
  if (selection.files.empty()) AddFiles(fs::path(QUAIL_SOURCE_DIR) / "tests" / "sql", selection);
  return selection;
}

std::string ReadFile(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The file with the rows of its queries replaced; `rows` by number of the record.
std::string Completed(const std::string& text, const std::vector<Record>& records,
                      const std::vector<std::optional<std::vector<std::string>>>& rows) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!rows[i]) continue;
    for (; next < records[i].expected_line; ++next) out += lines[next] + '\n';
    for (const std::string& row : *rows[i]) out += row + '\n';
    next = records[i].end;
  }
  for (; next < lines.size(); ++next) out += lines[next] + '\n';
  return out;
}

bool IsSelected(const Record& record, std::size_t line, const std::string& text) {
  const bool asks = record.kind == RecordKind::kQuery || record.kind == RecordKind::kStatement;
  if (!asks) return true;
  // Statements before the chosen line may set it up.
  if (line > 0 && record.kind == RecordKind::kStatement && record.end < line) return true;
  if (line > 0) return record.line <= line && line <= record.end + 1;
  return text.empty() || record.body.find(text) != std::string::npos;
}

Tally RunFile(const fs::path& path, std::size_t line, const Selection& selection) {
  const std::string text = ReadFile(path);
  const std::vector<Record> records = ReadRecords(text);
  Runner runner(fs::temp_directory_path() / fmt::format("quail_sql_test_{}", ::getpid()),
                SetupOf(selection.config));
  std::vector<std::optional<std::vector<std::string>>> rows(records.size());
  Tally tally;
  bool last_ran = true;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const bool checks = record.kind == RecordKind::kCounters || record.kind == RecordKind::kNotice;
    if (checks ? !last_ran : !IsSelected(record, line, selection.text)) {
      last_ran = last_ran && checks;
      continue;
    }
    if (record.kind == RecordKind::kQuery || record.kind == RecordKind::kStatement) last_ran = true;
    if (record.oracle_only && selection.config != "oracle") continue;
    std::vector<std::string> actual;
    const bool complete = selection.complete && record.kind == RecordKind::kQuery;
    const auto failure = runner.Run(record, complete ? &actual : nullptr);
    ++tally.records;
    if (!failure && complete) rows[i] = actual;
    if (!failure) continue;
    ++tally.failed;
    fmt::print(stderr, "{}:{}: {}\n{}\n", path.string(), record.line, *failure, record.body);
  }
  if (selection.complete) std::ofstream(path) << Completed(text, records, rows);
  return tally;
}

int Run(int count, char** arguments) {
  const Selection selection = ReadArguments(count, arguments);
  Tally total;
  for (const auto& [path, line] : selection.files) {
    const Tally tally = RunFile(path, line, selection);
    total.records += tally.records;
    total.failed += tally.failed;
  }
  fmt::print("{} records in {} files, {} failed\n", total.records, selection.files.size(),
             total.failed);
  return total.failed == 0 && total.records > 0 ? 0 : 1;
}

}  // namespace
}  // namespace quail::test

int main(int count, char** arguments) {
  // EXPLAIN would show this computer's calibration where there is one.
  ::setenv("XDG_CACHE_HOME", "/dev/null", 1);
  try {
    return quail::test::Run(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    constexpr int kSkipped = 77;
    return std::string_view(error.what()).starts_with("skipped") ? kSkipped : 2;
  }
}
