#include "sql/statement.h"

#include <algorithm>
#include <array>
#include <optional>
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
};

std::optional<Cut> CutCreate(const View& view) {
  if (!view.WordAt(0, "CREATE")) return std::nullopt;
  if (!view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TABLE"); }))
    return std::nullopt;
  const auto as = view.FindAtTop(
      1, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (!as) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, *as + 1, view.tokens.size()};
}

/// CREATE VIEW .. AS query and DROP VIEW.
std::optional<Cut> CutView(const View& view) {
  const auto word = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "VIEW"); });
  if (!word || *word > 4) return std::nullopt;
  if (view.WordAt(0, "DROP")) return Cut{StatementKind::kDropView, 0, 0, view.tokens.size()};
  if (!view.WordAt(0, "CREATE")) return std::nullopt;
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
  if (const auto name = NameBehind(view, "TABLE")) statement.table = view.Name(*name);
}

std::optional<Cut> CutInsert(const View& view) {
  if (!view.WordAt(0, "INSERT")) return std::nullopt;
  const auto query = view.FindAtTop(
      1, [&](std::size_t i) { return !view.SymbolAt(i, "(") && view.QueryBeginsAt(i); });
  const auto more = view.FindAtTop(1, [&](std::size_t i) {
    return view.WordAt(i, "RETURNING") || (view.WordAt(i, "ON") && view.WordAt(i + 1, "CONFLICT"));
  });
  if (!query) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, *query, more.value_or(view.tokens.size())};
}

std::optional<Cut> CutCopy(const View& view) {
  if (!view.WordAt(0, "COPY") || !view.SymbolAt(1, "(")) return std::nullopt;
  const auto to = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TO"); });
  if (!to || *to < 3) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, 2, *to - 1};
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
  if (view.QueryBeginsAt(dropped)) return {kind, dropped, dropped, end};
  for (const auto& cut : {CutCreate(view), CutView(view), CutInsert(view), CutCopy(view)}) {
    if (cut) return *cut;
  }
  return {StatementKind::kOther, 0, 0, end};
}

/// SET name = value and ALTER SESSION SET name = value for the settings that are ours.
std::optional<Statement> ReadSetting(const View& view) {
  std::size_t name = 1;
  if (view.WordAt(0, "ALTER") && view.WordAt(1, "SESSION") && view.WordAt(2, "SET")) {
    name = 3;
  } else if (!view.WordAt(0, "SET")) {
    return std::nullopt;
  }
  if (name >= view.tokens.size()) return std::nullopt;
  const std::string setting = LowerCase(Spelling(view.text, view.tokens[name]));
  const auto fail = [&](ErrorCode code, const std::string& message) -> Error {
    return {code, message, base::Locate(view.text, view.tokens[name].offset)};
  };
  if (!setting.starts_with("quail_") && setting != kFailOnError) {
    if (name == 3) throw fail(ErrorCode::kBind, fmt::format("unknown session setting {}", setting));
    return std::nullopt;
  }
  const bool assigned = view.SymbolAt(name + 1, "=") || view.WordAt(name + 1, "TO");
  std::size_t value = name + 2;
  const bool negative = view.SymbolAt(value, "-");
  if (negative) ++value;
  if (!assigned || value + 1 != view.tokens.size()) {
    throw fail(ErrorCode::kSyntax, fmt::format("write SET {} = value", setting));
  }
  Statement statement;
  statement.kind = StatementKind::kSet;
  statement.setting = setting;
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

Statement ReadStatement(std::string_view script, const ScriptPart& part, Dialect dialect) {
  const DialectRules& rules = RulesOf(dialect);
  const std::string_view text = script.substr(0, part.offset + part.size);
  std::vector<Token> tokens = Lex(text, rules, part.offset);
  tokens.pop_back();
  while (!tokens.empty() && tokens.back().kind == TokenKind::kSemicolon) tokens.pop_back();
  const View view{text, tokens};
  if (auto setting = ReadSetting(view)) return *setting;
  if (auto change = ReadChange(view, rules)) return *std::move(change);

  const Cut cut = CutStatement(view);
  const Tokens all(tokens);
  Translation query = Translate(text, all.subspan(cut.begin, cut.end - cut.begin), rules);
  const Tokens front = all.subspan(cut.dropped, cut.begin - cut.dropped);
  Translation before = Translate(text, front, rules);
  Translation after = Translate(text, all.subspan(cut.end), rules);
  for (const Translation* side : {&before, &after}) {
    if (side->has_ai) {
      throw Error(ErrorCode::kUnsupported, "an AI call cannot stand here",
                  base::Locate(script, side->first_ai));
    }
  }
  if (cut.kind == StatementKind::kOther && query.has_ai) {
    const std::string word = UpperCase(Spelling(text, tokens[0]));
    throw Error(ErrorCode::kUnsupported, fmt::format("AI calls in {} are not supported yet", word),
                base::Locate(script, query.first_ai));
  }
  Statement statement;
  statement.kind = cut.kind;
  statement.has_ai = query.has_ai;
  if (cut.kind == StatementKind::kCreateView || cut.kind == StatementKind::kDropView) {
    ReadViewName(view, statement);
  }
  ReadCreate(view, statement);
  if (!before.sql.empty()) statement.before = fmt::format("{} ", before.sql);
  statement.query = std::move(query.sql);
  if (!after.sql.empty()) statement.after = fmt::format(" {}", after.sql);
  statement.map = std::move(query.map);
  statement.quoted_names = QuotedNames(view, cut);
  return statement;
}

}  // namespace quail::sql
