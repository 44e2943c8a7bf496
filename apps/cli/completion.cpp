#include "completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace quail::cli {
namespace {

constexpr std::array<std::string_view, 9> kCommands = {
    ".dialect", ".explain", ".help", ".model", ".quit", ".report", ".schema", ".tables", ".timer"};
constexpr int kMostNames = 100;

constexpr std::string_view kTables = "SELECT table_name AS name FROM information_schema.tables";
constexpr std::string_view kColumns =
    "SELECT column_name AS name FROM duckdb_columns() WHERE NOT internal";
/// Functions of ours that are for the SQL that we write stay out.
constexpr std::string_view kEngineFunctions =
    "SELECT function_name FROM duckdb_functions() WHERE (NOT starts_with(function_name, 'quail_') "
    "OR function_name IN ('quail_errors', 'quail_functions', 'quail_settings')) AND "
    "regexp_full_match(function_name, '[a-z0-9_]+')";

std::vector<std::string> NamesOf(Session& session, std::string_view source,
                                 std::string_view begin) {
  const std::string sql = fmt::format(
      "SELECT DISTINCT name FROM ({}) s(name) WHERE starts_with(lower(name), lower({})) "
      "ORDER BY name LIMIT {}",
      source, TextLiteral(begin), kMostNames);
  std::vector<std::string> names;
  const auto result = session.Run(sql, {sql, 0}, {});
  for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
    for (const auto& row : rows) names.push_back(row[0].value_or(""));
  }
  return names;
}

std::vector<std::string_view> NamesOfDialects() {
  std::vector<std::string_view> names;
  std::ranges::transform(Dialects(), std::back_inserter(names), NameOf);
  std::ranges::sort(names);
  return names;
}

/// Functions as each dialect spells them, and the engine's.
std::string Functions() {
  std::string all(kEngineFunctions);
  for (const Dialect dialect : Dialects()) {
    all += fmt::format(" UNION ALL SELECT {} FROM quail_functions()", NameOf(dialect));
  }
  return all;
}

std::vector<std::string> Beginning(std::span<const std::string_view> words,
                                   std::string_view begin) {
  std::vector<std::string> found;
  for (const std::string_view word : words) {
    if (word.starts_with(begin)) found.emplace_back(word);
  }
  return found;
}

std::vector<std::string> OfCommand(Session& session, std::string_view before,
                                   std::string_view word) {
  if (before.find(' ') == std::string_view::npos) return Beginning(kCommands, word);
  if (before.starts_with(".dialect ")) return Beginning(NamesOfDialects(), word);
  if (before.starts_with(".schema ")) return NamesOf(session, kTables, word);
  return {};
}

std::vector<std::string> Find(Session& session, std::string_view before, std::string_view word) {
  const bool command = before.starts_with('.');
  if (command && !before.starts_with(".explain ")) return OfCommand(session, before, word);
  if (word.empty()) return {};
  const std::string all =
      fmt::format("{} UNION ALL {} UNION ALL {}", kTables, kColumns, Functions());
  std::vector<std::string> names = NamesOf(session, all, word);
  const std::size_t dot = word.rfind('.');
  if (!names.empty() || dot == std::string_view::npos) return names;
  names = NamesOf(session, kColumns, word.substr(dot + 1));
  for (std::string& name : names) name.insert(0, word.substr(0, dot + 1));
  return names;
}

}  // namespace

std::vector<std::string> CompletionsOf(Session& session, std::string_view before,
                                       std::string_view word) {
  try {
    return Find(session, before, word);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace quail::cli
