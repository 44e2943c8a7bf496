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
#include "sql/token_view.h"
#include "sql/translation.h"

namespace quail::sql {

namespace {

using Tokens = std::span<const Token>;
using View = TokenView;

constexpr std::string_view kFailOnError = "ai_sql_error_handling_use_fail_on_error";

/// Where a statement's query begins and ends, as token indexes.
struct Cut {
  StatementKind kind = StatementKind::kOther;
  std::size_t dropped = 0;  ///< tokens in front that are not passed on (EXPLAIN ..)
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t ctes_end = 0;  ///< tokens in front, a WITH, that go in front of the query
};

/// How many of the last tokens are WITH DATA or WITH NO DATA.
std::size_t DataWords(const View& view) {
  const std::size_t end = view.tokens.size();
  if (end < 3 || !view.WordAt(end - 1, "DATA")) return 0;
  if (view.WordAt(end - 2, "WITH")) return 2;
  return view.WordAt(end - 2, "NO") && view.WordAt(end - 3, "WITH") ? 3 : 0;
}

std::optional<Cut> CutCreate(const View& view) {
  if (!view.WordAt(0, "CREATE")) return std::nullopt;
  if (!view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TABLE"); }))
    return std::nullopt;
  const auto as = view.FindAtTop(
      1, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (!as) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, *as + 1, view.tokens.size() - DataWords(view)};
}

/// CREATE VIEW .. AS query.
std::optional<Cut> CutView(const View& view) {
  const auto word = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "VIEW"); });
  if (!word || *word > 4 || !view.WordAt(0, "CREATE")) return std::nullopt;
  const auto as = view.FindAtTop(
      *word, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (!as) return std::nullopt;
  return Cut{StatementKind::kCreateView, 0, *as + 1, view.tokens.size()};
}

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

/// The file of a COPY, or the folder where options make more than one.
void ReadCopyFile(const View& view, std::size_t from, Statement& statement) {
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

std::optional<Cut> CutInsert(const View& view) {
  if (!view.WordAt(0, "INSERT")) return std::nullopt;
  // Parentheses hold the columns, or the query.
  const auto query = view.FindAtTop(1, [&](std::size_t i) {
    std::size_t inside = i;
    while (view.SymbolAt(inside, "(")) ++inside;
    const bool column =
        inside > i && view.WordAt(inside, "VALUES") && !view.SymbolAt(inside + 1, "(");
    return view.QueryBeginsAt(inside) && !column;
  });
  if (!query) return std::nullopt;
  const auto more = view.FindAtTop(*query, [&](std::size_t i) {
    return view.WordAt(i, "RETURNING") || (view.WordAt(i, "ON") && view.WordAt(i + 1, "CONFLICT"));
  });
  return Cut{StatementKind::kQuery, 0, *query, more.value_or(view.tokens.size())};
}

std::optional<Cut> CutCopy(const View& view) {
  if (!view.WordAt(0, "COPY") || !view.SymbolAt(1, "(")) return std::nullopt;
  const auto to = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TO"); });
  if (!to || *to < 3) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, 2, *to - 1};
}

/// The end of the parentheses that open at i; i where none do.
std::size_t PastParentheses(const View& view, std::size_t i) {
  if (!view.SymbolAt(i, "(")) return i;
  return view.FindAtTop(i + 1, [&](std::size_t at) { return view.SymbolAt(at, ")"); })
             .value_or(view.tokens.size() - 1) +
         1;
}

/// The place behind the CTEs of a WITH at the beginning; 0 where none is.
std::size_t PastCtes(const View& view) {
  if (!view.WordAt(0, "WITH")) return 0;
  std::size_t i = view.WordAt(1, "RECURSIVE") && view.NameAt(2) && !view.WordAt(2, "AS") ? 2 : 1;
  for (;; ++i) {
    if (!view.NameAt(i)) return 0;
    i = PastParentheses(view, i + 1);
    if (view.WordAt(i, "USING") && view.WordAt(i + 1, "KEY")) i = PastParentheses(view, i + 2);
    if (!view.WordAt(i, "AS")) return 0;
    ++i;
    if (view.WordAt(i, "NOT")) ++i;
    if (view.WordAt(i, "MATERIALIZED")) ++i;
    const std::size_t query = i;
    i = PastParentheses(view, query);
    if (i == query) return 0;
    if (!view.SymbolAt(i, ",")) return i;
  }
}

/// WITH before a statement that changes something.
std::optional<Cut> CutBehindCtes(const View& view) {
  const std::size_t word = PastCtes(view);
  const bool insert = view.WordAt(word, "INSERT");
  if (word == 0 || !(insert || view.WordAt(word, "UPDATE") || view.WordAt(word, "DELETE") ||
                     view.WordAt(word, "MERGE"))) {
    return std::nullopt;
  }
  const auto cut = CutInsert({view.text, view.tokens.subspan(word)});
  if (!cut || view.WordAt(word + cut->begin, "WITH")) {
    return Cut{StatementKind::kOther, 0, 0, view.tokens.size()};
  }
  return Cut{StatementKind::kQuery, 0, word + cut->begin, word + cut->end, word};
}

/// Of statements that are no queries.
bool GivesRows(const View& view) {
  constexpr std::array kWords = {"SHOW", "SUMMARIZE", "DESCRIBE", "DESC", "CALL", "EXECUTE"};
  if (std::ranges::any_of(kWords, [&](const char* word) { return view.WordAt(0, word); })) {
    return true;
  }
  const std::size_t word = PastCtes(view);
  const bool changes =
      view.WordAt(word, "INSERT") || view.WordAt(word, "UPDATE") || view.WordAt(word, "DELETE");
  return changes &&
         view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "RETURNING"); }).has_value();
}

Cut CutStatement(const View& view) {
  const std::size_t end = view.tokens.size();
  std::size_t dropped = 0;
  StatementKind kind = StatementKind::kQuery;
  if (view.WordAt(0, "EXPLAIN")) {
    kind = view.WordAt(1, "ANALYZE") ? StatementKind::kExplainAnalyze : StatementKind::kExplain;
    dropped = kind == StatementKind::kExplainAnalyze ? 2 : 1;
  } else if ((view.WordAt(0, "DESCRIBE") || view.WordAt(0, "DESC")) && view.QueryBeginsAt(1)) {
    kind = StatementKind::kDescribe;
    dropped = 1;
  }
  if (const auto cut = CutBehindCtes(view)) return *cut;
  if (view.QueryBeginsAt(dropped)) return {kind, dropped, dropped, end};
  for (const auto& cut : {CutCreate(view), CutView(view), CutInsert(view), CutCopy(view)}) {
    if (cut) return *cut;
  }
  return {StatementKind::kOther, 0, 0, end};
}

/// The place of the name in SET [SESSION | GLOBAL], ALTER SESSION SET, RESET, ALTER SESSION UNSET.
std::optional<std::size_t> SettingName(const View& view) {
  if (view.WordAt(0, "ALTER")) {
    const bool session =
        view.WordAt(1, "SESSION") && (view.WordAt(2, "SET") || view.WordAt(2, "UNSET"));
    return session && view.tokens.size() > 3 ? std::optional<std::size_t>(3) : std::nullopt;
  }
  if (!view.WordAt(0, "SET") && !view.WordAt(0, "RESET")) return std::nullopt;
  const bool scope = view.WordAt(1, "SESSION") || view.WordAt(1, "GLOBAL");
  const std::size_t name = scope ? 2 : 1;
  return name < view.tokens.size() ? std::optional(name) : std::nullopt;
}

/// Changes of the settings that are ours.
std::optional<Statement> ReadSetting(const View& view) {
  const auto place = SettingName(view);
  if (!place) return std::nullopt;
  const std::size_t name = *place;
  const std::string setting = LowerCase(Spelling(view.text, view.tokens[name]));
  const auto fail = [&](ErrorCode code, const std::string& message) -> Error {
    return {code, message, base::Locate(view.text, view.tokens[name].offset)};
  };
  if (!setting.starts_with("quail_") && setting != kFailOnError) {
    if (name == 3) throw fail(ErrorCode::kBind, fmt::format("unknown session setting {}", setting));
    return std::nullopt;
  }
  Statement statement;
  statement.kind = StatementKind::kSet;
  statement.setting = setting;
  statement.setting_offset = statement.value_offset = view.tokens[name].offset;
  const bool assigned = view.SymbolAt(name + 1, "=") || view.WordAt(name + 1, "TO");
  std::size_t value = name + 2;
  const std::size_t end = view.tokens.size();
  const bool is_reset = view.WordAt(0, "RESET") || view.WordAt(2, "UNSET");
  statement.resets = is_reset || (assigned && value + 1 == end && view.WordAt(value, "DEFAULT"));
  if (is_reset && name + 1 != end) {
    throw fail(ErrorCode::kSyntax, fmt::format("write RESET {}", setting));
  }
  if (statement.resets) return statement;
  const bool negative = view.SymbolAt(value, "-");
  if (value < end) statement.value_offset = view.tokens[value].offset;
  if (negative) ++value;
  if (!assigned || value + 1 != end) {
    throw fail(ErrorCode::kSyntax, fmt::format("write SET {} = value", setting));
  }
  const Token& token = view.tokens[value];
  const bool decoded = token.kind == TokenKind::kString || token.kind == TokenKind::kIdentifier;
  statement.value =
      fmt::format("{}{}", negative ? "-" : "", decoded ? token.value : Spelling(view.text, token));
  return statement;
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
           : fmt::format("AI calls in {} are not supported yet", word);
  statement.gives_rows = GivesRows(view);
  ReadCreate(view, statement);
  statement.query = std::move(translation.sql);
  statement.map = std::move(translation.map);
  return statement;
}

Translation TranslateTokens(const View& view, std::size_t begin, std::size_t end,
                            const DialectRules& rules) {
  return Translate(view.text, view.tokens.subspan(begin, end - begin), rules);
}

Statement CutStatementAt(const View& view, const Cut& cut, const DialectRules& rules) {
  const Translation before =
      TranslateTokens(view, std::max(cut.dropped, cut.ctes_end), cut.begin, rules);
  const Translation after = TranslateTokens(view, cut.end, view.tokens.size(), rules);
  for (const Translation* side : {&before, &after}) {
    if (side->has_ai) {
      throw Error(ErrorCode::kUnsupported, "an AI call cannot stand here",
                  base::Locate(view.text, side->first_ai));
    }
  }
  Translation query = TranslateTokens(view, cut.begin, cut.end, rules);
  Statement statement;
  statement.kind = cut.kind;
  statement.has_ai = query.has_ai;
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
    if (auto change = ReadChange(view, rules)) {
      change->has_ai = true;
      return *std::move(change);
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

/// COPY name TO and COPY name (columns) TO as COPY (SELECT columns FROM name) TO.
std::optional<Statement> ReadCopyOfTable(const View& view, const DialectRules& rules) {
  if (!view.WordAt(0, "COPY") || !view.NameAt(1)) return std::nullopt;
  std::size_t name_end = 2;
  while (view.SymbolAt(name_end, ".") && view.NameAt(name_end + 1)) name_end += 2;
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
  const Translation after = TranslateTokens(view, to, view.tokens.size(), rules);
  statement.after = fmt::format(") {}", after.sql);
  statement.after_map.Stay(0, view.tokens[to].offset);
  statement.after_map.Append(2, after.map);
  ReadCopyFile(view, to, statement);
  return statement;
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
  const DialectRules& rules = RulesOf(dialect);
  if (auto change = ReadChange(view, rules)) return change;
  const auto cut = CutBehindCtes(view);
  if (cut && cut->kind == StatementKind::kQuery) return CutStatementAt(view, *cut, rules);
  return ReadCopyOfTable(view, rules);
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
