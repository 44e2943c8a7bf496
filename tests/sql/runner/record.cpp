#include "record.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace quail::test {
namespace {

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

RecordKind KindOf(const std::string& word, std::size_t line) {
  if (word == "table") return RecordKind::kTable;
  if (word == "oracle") return RecordKind::kOracle;
  if (word == "dialect") return RecordKind::kDialect;
  if (word == "statement") return RecordKind::kStatement;
  if (word == "query") return RecordKind::kQuery;
  if (word == "counters") return RecordKind::kCounters;
  if (word == "notice") return RecordKind::kNotice;
  throw std::runtime_error(fmt::format("line {}: unknown record '{}'", line, word));
}

}  // namespace

std::vector<Record> ReadRecords(std::string_view text) {
  const std::vector<std::string> lines = Lines(text);
  std::vector<Record> records;
  std::size_t i = 0;
  bool oracle_only = false;
  while (i < lines.size()) {
    if (lines[i].empty() || lines[i].front() == '#') {
      ++i;
      continue;
    }
    if (lines[i] == "onlyif oracle") {
      oracle_only = true;
      ++i;
      continue;
    }
    Record record;
    record.oracle_only = std::exchange(oracle_only, false);
    record.line = i + 1;
    const std::size_t space = std::min(lines[i].find(' '), lines[i].size());
    record.kind = KindOf(lines[i].substr(0, space), record.line);
    record.head = lines[i].substr(std::min(space + 1, lines[i].size()));
    if (record.kind == RecordKind::kQuery && record.head.ends_with(" rowsort")) {
      record.sorted = true;
      record.head.resize(record.head.size() - std::string_view(" rowsort").size());
    }
    for (++i; i < lines.size() && !lines[i].empty() && lines[i] != "----"; ++i) {
      record.body += lines[i] + '\n';
    }
    if (record.kind == RecordKind::kQuery) {
      if (i == lines.size() || lines[i] != "----") {
        throw std::runtime_error(fmt::format("line {}: a query without ----", record.line));
      }
      record.expected_line = ++i;
      for (; i < lines.size() && !lines[i].empty(); ++i) record.expected.push_back(lines[i]);
    }
    record.end = i;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace quail::test
