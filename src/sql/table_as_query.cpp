#include "sql/table_as_query.h"

#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "sql/statement_cut.h"

namespace quail::sql {

namespace {

/// The place behind a name that may be qualified.
std::size_t PastName(const TokenView& view, std::size_t name) {
  std::size_t end = name + 1;
  while (view.SymbolAt(end, ".") && view.NameAt(end + 1)) end += 2;
  return end;
}

/// `tokens` behind `sql`, as what follows the query.
void PutAfter(const TokenView& view, std::size_t begin, const DialectRules& rules,
              std::string_view sql, Statement& statement) {
  const Translation after = TranslateTokens(view, begin, view.tokens.size(), rules);
  statement.after = fmt::format("{}{}", sql, after.sql);
  statement.after_map.Stay(0, view.tokens[begin].offset);
  statement.after_map.Append(sql.size(), after.map);
}

}  // namespace

Translation TranslateTokens(const TokenView& view, std::size_t begin, std::size_t end,
                            const DialectRules& rules) {
  return Translate(view.text, view.tokens.subspan(begin, end - begin), rules);
}

void ReadCopyFile(const TokenView& view, std::size_t from, Statement& statement) {
  const auto to = view.FindAtTop(from, [&](std::size_t i) { return view.WordAt(i, "TO"); });
  if (!view.WordAt(0, "COPY") || !to || *to + 1 >= view.tokens.size()) return;
  for (std::size_t i = *to + 2; i < view.tokens.size(); ++i) {
    if (view.WordAt(i, "USE_TMP_FILE")) return;  // says in what way the file is written
    for (const char* option : {"PARTITION_BY", "PER_THREAD_OUTPUT", "FILE_SIZE_BYTES"}) {
      statement.many_files |= view.WordAt(i, option);
    }
  }
  const Token& name = view.tokens[*to + 1];
  if (name.kind != TokenKind::kString) return;
  statement.file = name.value;
  statement.file_offset = name.offset;
}

std::optional<Statement> ReadCopyOfTable(const TokenView& view, const DialectRules& rules) {
  if (!view.WordAt(0, "COPY") || !view.NameAt(1)) return std::nullopt;
  const std::size_t name_end = PastName(view, 1);
  const std::size_t to = PastParentheses(view, name_end);
  if (!view.WordAt(to, "TO")) return std::nullopt;
  Statement statement;
  statement.kind = StatementKind::kQuery;
  const auto emit = [&](std::string_view sql, std::size_t token) {
    statement.map.Stay(statement.query.size(), view.tokens[token].offset);
    statement.query += sql;
  };
  emit("SELECT ", 0);
  emit(to == name_end ? "*" : TranslateTokens(view, name_end + 1, to - 1, rules).sql, name_end);
  emit(" FROM ", 0);
  emit(TranslateTokens(view, 1, name_end, rules).sql, 1);
  statement.before = "COPY (";
  statement.before_map.Stay(0, view.tokens[0].offset);
  PutAfter(view, to, rules, ") ", statement);
  ReadCopyFile(view, to, statement);
  return statement;
}

std::optional<Statement> ReadSummaryOfTable(const TokenView& view, const DialectRules& rules) {
  if (!view.WordAt(0, "SUMMARIZE") || !view.NameAt(1)) return std::nullopt;
  constexpr std::string_view kSelect = "SELECT * FROM ";
  Statement statement;
  statement.kind = StatementKind::kQuery;
  statement.gives_rows = statement.summarizes = true;
  statement.before = "SUMMARIZE ";
  statement.before_map.Stay(0, view.tokens[0].offset);
  const Translation name = TranslateTokens(view, 1, view.tokens.size(), rules);
  statement.query = fmt::format("{}{}", kSelect, name.sql);
  statement.map.Stay(0, view.tokens[1].offset);
  statement.map.Append(kSelect.size(), name.map);
  return statement;
}

std::optional<Statement> ReadMergeOfTable(const TokenView& view, const DialectRules& rules) {
  const std::size_t merge = PastCtes(view);
  if (!view.WordAt(merge, "MERGE")) return std::nullopt;
  const auto word = view.FindAtTop(merge, [&](std::size_t i) { return view.WordAt(i, "USING"); });
  if (!word || !view.NameAt(*word + 1)) return std::nullopt;
  const std::size_t name = *word + 1;
  const std::size_t end = PastName(view, name);
  if (end >= view.tokens.size() || view.SymbolAt(end, "(")) return std::nullopt;
  const bool asks_elsewhere = TranslateTokens(view, merge, name, rules).has_ai ||
                              TranslateTokens(view, end, view.tokens.size(), rules).has_ai;
  if (asks_elsewhere) return std::nullopt;
  Statement statement;
  statement.kind = StatementKind::kQuery;
  statement.gives_rows =
      view.FindAtTop(end, [&](std::size_t i) { return view.WordAt(i, "RETURNING"); }).has_value();
  const auto emit = [&](std::string_view sql, const Translation& part) {
    statement.map.Stay(statement.query.size(), view.tokens[name].offset);
    statement.query += sql;
    statement.map.Append(statement.query.size(), part.map);
    statement.query += part.sql;
  };
  emit("", TranslateTokens(view, 0, merge, rules));
  emit(merge > 0 ? " SELECT * FROM " : "SELECT * FROM ", TranslateTokens(view, name, end, rules));
  const Translation before = TranslateTokens(view, merge, name, rules);
  statement.before = fmt::format("{} (", before.sql);
  statement.before_map = before.map;
  const bool named = !view.WordAt(end, "ON") && !view.WordAt(end, "USING");
  PutAfter(view, end, rules,
           named ? ") " : fmt::format(") AS {} ", QuoteIdentifier(view.Name(end - 1))), statement);
  return statement;
}

}  // namespace quail::sql
