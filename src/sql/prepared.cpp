#include "sql/prepared.h"

#include <utility>

#include "base/text_position.h"
#include "sql/token_view.h"
#include "sql/translation.h"

namespace quail::sql {

namespace {

/// The tokens of a part, and what they were cut from.
class PartTokens {
 public:
  PartTokens(std::string_view script, const ScriptPart& part, Dialect dialect)
      : text_(script.substr(0, part.offset + part.size)),
        tokens_(Lex(text_, RulesOf(dialect), part.offset)) {
    tokens_.pop_back();
    while (!tokens_.empty() && tokens_.back().kind == TokenKind::kSemicolon) tokens_.pop_back();
  }
  TokenView view() const { return {text_, tokens_}; }

 private:
  std::string_view text_;
  std::vector<Token> tokens_;
};

/// The end of the parentheses that open at i; i where none do.
std::size_t PastParentheses(const TokenView& view, std::size_t i) {
  if (!view.SymbolAt(i, "(")) return i;
  return view.FindAtTop(i + 1, [&](std::size_t at) { return view.SymbolAt(at, ")"); })
             .value_or(view.tokens.size() - 1) +
         1;
}

/// The comma behind the value that begins at i, or `end`.
std::size_t ValueEnd(const TokenView& view, std::size_t i, std::size_t end) {
  std::size_t depth = 0;
  for (; i < end; ++i) {
    const auto is = [&](const char* symbol) { return view.SymbolAt(i, symbol); };
    if (depth == 0 && is(",")) return i;
    if (is("(") || is("[") || is("{")) ++depth;
    if ((is(")") || is("]") || is("}")) && depth > 0) --depth;
  }
  return end;
}

Execution::Value ReadValue(const TokenView& view, std::size_t number, const DialectRules& rules) {
  const bool named = view.NameAt(0) && (view.SymbolAt(1, ":=") || view.SymbolAt(1, "=>"));
  const TokenView value{view.text, view.tokens.subspan(named ? 2 : 0)};
  const Translation translation = Translate(value.text, value.tokens, rules);
  if (translation.has_ai) {
    throw Error(ErrorCode::kUnsupported, "an AI call cannot stand here",
                base::Locate(view.text, translation.first_ai));
  }
  return {named ? LowerCase(view.Name(0)) : std::to_string(number), translation.sql};
}

}  // namespace

std::optional<Preparation> ReadPreparation(std::string_view script, const ScriptPart& part,
                                           Dialect dialect) {
  const PartTokens tokens(script, part, dialect);
  const TokenView view = tokens.view();
  if (!view.WordAt(0, "PREPARE") || !view.NameAt(1)) return std::nullopt;
  const std::size_t as = PastParentheses(view, 2);
  if (!view.WordAt(as, "AS") || as + 1 >= view.tokens.size()) return std::nullopt;
  const std::size_t begin = view.tokens[as + 1].offset;
  const Token& last = view.tokens.back();
  return Preparation{view.Name(1), {begin, last.offset + last.size - begin}};
}

std::optional<Execution> ReadExecution(std::string_view script, const ScriptPart& part,
                                       Dialect dialect) {
  const PartTokens tokens(script, part, dialect);
  const TokenView view = tokens.view();
  if (!view.WordAt(0, "EXECUTE") || !view.NameAt(1)) return std::nullopt;
  Execution execution{view.Name(1), {}};
  const std::size_t end = PastParentheses(view, 2);
  for (std::size_t begin = 3; begin + 1 < end;) {
    const std::size_t value_end = ValueEnd(view, begin, end - 1);
    const TokenView value{view.text, view.tokens.subspan(begin, value_end - begin)};
    execution.values.push_back(ReadValue(value, execution.values.size() + 1, RulesOf(dialect)));
    begin = value_end + 1;
  }
  return execution;
}

std::optional<std::string> ReadDeallocation(std::string_view script, const ScriptPart& part,
                                            Dialect dialect) {
  const PartTokens tokens(script, part, dialect);
  const TokenView view = tokens.view();
  if (!view.WordAt(0, "DEALLOCATE")) return std::nullopt;
  const std::size_t name = view.WordAt(1, "PREPARE") && view.NameAt(2) ? 2 : 1;
  if (!view.NameAt(name)) return std::nullopt;
  return view.WordAt(name, "ALL") ? "" : view.Name(name);
}

}  // namespace quail::sql
