#include "sql/statement.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

#include "base/text_position.h"
#include "fmt/format.h"
#include "sql/change.h"
#include "sql/lexer.h"
#include "sql/set_statement.h"
#include "sql/statement_cut.h"
#include "sql/table_as_query.h"
#include "sql/token_view.h"
#include "sql/translation.h"

namespace quail::sql {

namespace {

using View = TokenView;

/// The place of the name behind `word`, which stands among the first ones: CREATE, DROP and
/// what qualifies them.
std::optional<std::size_t> NameBehind(const View& view, std::string_view word) {
  const auto found = view.FindAtTop(1, [&](std::size_t at) { return view.WordAt(at, word); });
  if (!found || *found > 4) return std::nullopt;
  std::size_t i = *found + 1;
  while (view.WordAt(i, "IF") || view.WordAt(i, "NOT") || view.WordAt(i, "EXISTS")) ++i;
  while (view.SymbolAt(i + 1, ".") && view.NameAt(i + 2)) i += 2;
  if (!view.NameAt(i)) return std::nullopt;
  return i;
}

/// The name behind VIEW, and the column names behind it.
void ReadViewName(const View& view, Statement& statement) {
  const auto name = NameBehind(view, "VIEW");
  if (!name) return;
  statement.view = view.Name(*name);
  if (!view.SymbolAt(*name + 1, "(")) return;
  for (std::size_t i = *name + 2; view.NameAt(i); i += 2) {
    statement.view_columns.push_back(view.Name(i));
    if (!view.SymbolAt(i + 1, ",")) return;
  }
}

/// What CREATE makes, and what it does where there is one.
void ReadCreate(const View& view, Statement& statement) {
  if (!view.WordAt(0, "CREATE")) return;
  statement.or_replace = view.WordAt(1, "OR");
  statement.if_not_exists =
      view.FindAtTop(
              1, [&](std::size_t i) { return view.WordAt(i, "IF") && view.WordAt(i + 1, "NOT"); })
          .value_or(view.tokens.size()) <= 5;
  if (!statement.view.empty()) return;
  const auto name = NameBehind(view, "TABLE");
  if (!name) return;
  statement.table = view.Name(*name);
  statement.table_offset = view.tokens[*name].offset;
  for (std::size_t i = *name; view.SymbolAt(i - 1, "."); i -= 2) {
    statement.table_path.insert(statement.table_path.begin(), view.Name(i - 2));
  }
  statement.no_data = DataWords(view) == 3;
  for (const char* word : {"TEMP", "TEMPORARY"}) {
    statement.temporary |= view.WordAt(1, word) || view.WordAt(3, word);
  }
}

/// Of statements that are no queries.
bool GivesRows(const View& view) {
  constexpr std::array kWords = {"SHOW", "SUMMARIZE", "DESCRIBE", "DESC", "CALL", "EXECUTE"};
  if (std::ranges::any_of(kWords, [&](const char* word) { return view.WordAt(0, word); })) {
    return true;
  }
  const std::size_t word = PastCtes(view);
  constexpr std::array kChanges = {"INSERT", "UPDATE", "DELETE", "MERGE"};
  const bool changes =
      std::ranges::any_of(kChanges, [&](const char* first) { return view.WordAt(word, first); });
  return changes &&
         view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "RETURNING"); }).has_value();
}

std::vector<std::string> QuotedNames(const View& view, const Cut& cut) {
  std::vector<std::string> names;
  if (cut.kind == StatementKind::kOther) return names;
  for (std::size_t i = cut.begin + 1; i < cut.end; ++i) {
    const TokenKind kind = view.tokens[i].kind;
    if (kind != TokenKind::kString && kind != TokenKind::kIdentifier) continue;
    if (view.WordAt(i - 1, "FROM") || view.WordAt(i - 1, "JOIN") || view.SymbolAt(i - 1, ",")) {
      names.push_back(view.tokens[i].value);
    }
  }
  return names;
}

std::vector<Token> LexPart(std::string_view script, const ScriptPart& part, Dialect dialect) {
  const std::string_view text = script.substr(0, part.offset + part.size);
  std::vector<Token> tokens = Lex(text, RulesOf(dialect), part.offset);
  tokens.pop_back();
  while (!tokens.empty() && tokens.back().kind == TokenKind::kSemicolon) tokens.pop_back();
  return tokens;
}

void PutValues(std::string_view text, std::vector<Token>& tokens,
               std::span<const ParameterValue> values) {
  if (values.empty()) return;
  std::set<std::string> used;
  std::size_t unnamed = 0;
  for (Token& token : tokens) {
    if (token.kind != TokenKind::kParameter) continue;
    const std::string_view spelling = Spelling(text, token);
    const std::string name =
        spelling == "?" ? std::to_string(++unnamed) : LowerCase(spelling.substr(1));
    const auto value = std::ranges::find(values, name, &ParameterValue::parameter);
    if (value == values.end()) {
      throw Error(ErrorCode::kBind, fmt::format("there is no value for the parameter {}", name),
                  base::Locate(text, token.offset));
    }
    token.value = value->literal;
    used.insert(name);
  }
  for (const ParameterValue& value : values) {
    if (used.contains(value.parameter)) continue;
    throw Error(ErrorCode::kBind,
                fmt::format("there is no parameter {} for a value", value.parameter));
  }
}

/// A statement that the engine gets as it is, and why not if it has AI calls.
Statement WholeStatement(const View& view, Translation translation) {
  Statement statement;
  statement.has_ai = translation.has_ai;
  statement.first_ai = translation.first_ai;
  const bool with = view.WordAt(0, "WITH");
  const std::string word = UpperCase(Spelling(view.text, view.tokens[with ? PastCtes(view) : 0]));
  statement.refusal =
      with ? fmt::format(
                 "AI calls in WITH before {} are not supported yet: write the WITH inside "
                 "the query or subquery that reads it",
                 word)
           : fmt::format("AI calls in {}{} are not supported yet", word,
                         word == "MERGE" ? " outside of the query behind USING" : "");
  statement.gives_rows = GivesRows(view);
  ReadCreate(view, statement);
  statement.query = std::move(translation.sql);
  statement.map = std::move(translation.map);
  return statement;
}

/// PIVOT and UNPIVOT as queries that they are in the engine's tree too.
std::optional<Statement> ReadPivot(const View& view, const DialectRules& rules) {
  constexpr std::array kWords = {"PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"};
  if (std::ranges::none_of(kWords, [&](const char* word) { return view.WordAt(0, word); })) {
    return std::nullopt;
  }
  Translation whole = Translate(view.text, view.tokens, rules);
  Statement statement;
  statement.kind = StatementKind::kQuery;
  statement.query = std::move(whole.sql);
  statement.map = std::move(whole.map);
  return statement;
}

/// The options of the engine's EXPLAIN are about its own plan.
void RefuseExplainOptions(const View& view) {
  const bool options = view.WordAt(0, "EXPLAIN") && view.SymbolAt(1, "(") &&
                       (view.WordAt(2, "ANALYZE") || view.WordAt(2, "FORMAT"));
  if (!options) return;
  throw Error(ErrorCode::kUnsupported,
              "EXPLAIN (..) beside AI calls is not supported yet: write EXPLAIN or EXPLAIN "
              "ANALYZE; the option --explain=json gives the plan as JSON",
              base::Locate(view.text, view.tokens[1].offset));
}

Statement CutStatementAt(const View& view, const Cut& cut, const DialectRules& rules) {
  const Translation before =
      TranslateTokens(view, std::max(cut.dropped, cut.ctes_end), cut.begin, rules);
  const Translation after = TranslateTokens(view, cut.end, view.tokens.size(), rules);
  const bool merge = view.WordAt(cut.ctes_end, "MERGE");
  const bool returning = view.WordAt(cut.end, "RETURNING");
  for (const Translation* side : {&before, &after}) {
    if (side->has_ai) {
      throw Error(ErrorCode::kUnsupported,
                  merge       ? "an AI call of MERGE stands in the query behind USING only"
                  : returning ? "an AI call cannot stand in RETURNING"
                              : "an AI call cannot stand here",
                  base::Locate(view.text, side->first_ai));
    }
  }
  Translation query = TranslateTokens(view, cut.begin, cut.end, rules);
  Statement statement;
  statement.kind = cut.kind;
  statement.has_ai = query.has_ai;
  if (query.has_ai) RefuseExplainOptions(view);
  if (cut.ctes_end > 0) {
    Translation ctes = TranslateTokens(view, 0, cut.ctes_end, rules);
    statement.has_ai |= ctes.has_ai;
    statement.query = fmt::format("{} ", ctes.sql);
    statement.map = std::move(ctes.map);
  }
  statement.map.Append(statement.query.size(), query.map);
  statement.query += query.sql;
  if (cut.kind == StatementKind::kCreateView) ReadViewName(view, statement);
  statement.quoted_names = QuotedNames(view, cut);
  statement.gives_rows = cut.dropped == 0 && GivesRows(view);
  statement.summarizes = view.WordAt(0, "SUMMARIZE");
  ReadCreate(view, statement);
  ReadCopyFile(view, cut.end, statement);
  if (!before.sql.empty()) {
    statement.before = fmt::format("{} ", before.sql);
    statement.before_map = before.map;
  }
  if (!after.sql.empty()) {
    statement.after = fmt::format(" {}", after.sql);
    statement.after_map.Stay(0, view.tokens[cut.end].offset);
    statement.after_map.Append(1, after.map);
  }
  return statement;
}

Statement ReadTokens(const View& view, const DialectRules& rules) {
  const Cut cut = CutStatement(view);
  if (cut.kind != StatementKind::kOther && cut.ctes_end == 0) {
    return CutStatementAt(view, cut, rules);
  }
  Translation whole = Translate(view.text, view.tokens, rules);
  if (whole.has_ai) {
    for (const auto read : {ReadChange, ReadMergeOfTable, ReadPivot}) {
      if (auto statement = read(view, rules)) {
        statement->has_ai = true;
        return *std::move(statement);
      }
    }
  }
  const bool as_it_is = cut.kind == StatementKind::kOther || !whole.has_ai;
  return as_it_is ? WholeStatement(view, std::move(whole)) : CutStatementAt(view, cut, rules);
}

/// EXPLAIN of a statement that is no query by itself; nullopt: other statements.
std::optional<Statement> ReadExplained(const View& view, const DialectRules& rules) {
  if (!view.WordAt(0, "EXPLAIN")) return std::nullopt;
  const std::size_t words = view.WordAt(1, "ANALYZE") ? 2 : 1;
  const View explained{view.text, view.tokens.subspan(words)};
  const bool query = explained.QueryBeginsAt(0) && !CutBehindCtes(explained);
  if (explained.tokens.empty() || query) return std::nullopt;
  Statement statement = ReadTokens(explained, rules);
  if (statement.kind == StatementKind::kQuery) {
    statement.kind = words == 2 ? StatementKind::kExplainAnalyze : StatementKind::kExplain;
    return statement;
  }
  Statement whole = WholeStatement(view, Translate(view.text, view.tokens, rules));
  if (!statement.refusal.empty()) whole.refusal = statement.refusal;
  return whole;
}

std::optional<Statement> ReadAsAsking(const View& view, const DialectRules& rules) {
  if (auto change = ReadChange(view, rules)) return change;
  const auto cut = CutBehindCtes(view);
  if (cut && cut->kind == StatementKind::kQuery) return CutStatementAt(view, *cut, rules);
  for (const auto read : {ReadSummaryOfTable, ReadMergeOfTable, ReadPivot, ReadCopyOfTable}) {
    if (auto statement = read(view, rules)) return statement;
  }
  return std::nullopt;
}

}  // namespace

TextPosition Statement::Locate(std::string_view script, std::size_t query_offset) const {
  return base::Locate(script, map.ToInput(query_offset));
}

std::vector<ScriptPart> SplitScript(std::string_view script, Dialect dialect) {
  std::vector<ScriptPart> parts;
  std::optional<std::size_t> begin;
  std::size_t end = 0;
  for (const Token& token : Lex(script, RulesOf(dialect))) {
    if (token.kind == TokenKind::kSemicolon || token.kind == TokenKind::kEnd) {
      if (begin) parts.push_back({*begin, end - *begin});
      begin.reset();
      continue;
    }
    if (!begin) begin = token.offset;
    end = token.offset + token.size;
  }
  return parts;
}

Statement ReadStatement(std::string_view script, const ScriptPart& part, Dialect dialect,
                        std::span<const ParameterValue> values) {
  std::vector<Token> tokens = LexPart(script, part, dialect);
  PutValues(script, tokens, values);
  const View view{script.substr(0, part.offset + part.size), tokens};
  if (auto setting = ReadSetting(view)) return *setting;
  const DialectRules& rules = RulesOf(dialect);
  if (auto explained = ReadExplained(view, rules)) return *std::move(explained);
  return ReadTokens(view, rules);
}

std::optional<Statement> ReadAsAsking(std::string_view script, const ScriptPart& part,
                                      Dialect dialect) {
  const std::vector<Token> tokens = LexPart(script, part, dialect);
  const View view{script.substr(0, part.offset + part.size), tokens};
  const std::size_t words = !view.WordAt(0, "EXPLAIN") ? 0 : view.WordAt(1, "ANALYZE") ? 2 : 1;
  auto read = ReadAsAsking({view.text, view.tokens.subspan(words)}, RulesOf(dialect));
  if (read && words > 0) {
    read->kind = words == 2 ? StatementKind::kExplainAnalyze : StatementKind::kExplain;
  }
  return read;
}

std::optional<std::size_t> FindName(std::string_view script, const ScriptPart& part,
                                    Dialect dialect, std::string_view name) {
  const std::vector<Token> tokens = LexPart(script, part, dialect);
  const View view{script.substr(0, part.offset + part.size), tokens};
  std::optional<std::size_t> text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (view.NameAt(i) && SameWord(view.Name(i), name)) return tokens[i].offset;
    const bool is_text = tokens[i].kind == TokenKind::kString && tokens[i].value == name;
    if (is_text && !text) text = tokens[i].offset;
  }
  return text;
}

std::optional<std::size_t> FindParameter(std::string_view script, const ScriptPart& part,
                                         Dialect dialect) {
  const std::vector<Token> tokens = LexPart(script, part, dialect);
  const auto found = std::ranges::find(tokens, TokenKind::kParameter, &Token::kind);
  return found == tokens.end() ? std::nullopt : std::optional(found->offset);
}

}  // namespace quail::sql
