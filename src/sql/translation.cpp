#include "sql/translation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text_position.h"
#include "base/utf8.h"
#include "fmt/format.h"
#include "quail/error.h"
#include "sql/ai_function.h"
#include "sql/slots.h"

namespace quail::sql {

namespace {

class Translator {
 public:
  Translator(std::string_view text, std::span<const Token> tokens, const DialectRules& rules)
      : text_(text), tokens_(tokens), rules_(rules) {}

  Translation Run() {
    if (!tokens_.empty()) end_of_last_ = tokens_[0].offset;
    out_.map.Stay(0, end_of_last_);
    Rewrite(tokens_.size());
    return std::move(out_);
  }

 private:
  // --- looking ahead ---

  std::string_view SpellingAt(std::size_t i) const {
    return i < tokens_.size() ? Spelling(text_, tokens_[i]) : std::string_view();
  }
  bool IsSymbol(std::size_t i, std::string_view symbol) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kSymbol && SpellingAt(i) == symbol;
  }
  bool IsName(std::size_t i) const {
    return i < tokens_.size() &&
           (tokens_[i].kind == TokenKind::kWord || tokens_[i].kind == TokenKind::kIdentifier);
  }
  /// A bare word, not a quoted name.
  bool IsWord(std::size_t i, std::string_view word) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kWord &&
           SameWord(SpellingAt(i), word);
  }
  std::string NameAt(std::size_t i) const {
    return tokens_[i].kind == TokenKind::kIdentifier ? tokens_[i].value
                                                     : std::string(SpellingAt(i));
  }
  bool NameIs(std::size_t i, std::string_view name) const {
    return IsName(i) && SameWord(NameAt(i), name);
  }
  [[noreturn]] void Fail(ErrorCode code, std::size_t offset, const std::string& message) const {
    throw Error(code, message, base::Locate(text_, offset));
  }

  // --- writing ---

  /// White space before token i as it is where ASCII has it, else as one space, as each comment.
  void EmitGap(std::size_t i) {
    std::size_t at = end_of_last_;
    const std::size_t end = tokens_[i].offset;
    while (at < end) {
      const std::size_t space = std::min(text_.find_first_not_of(" \t\n\r\f\v", at), end);
      if (space > at) EmitAsIs(at, space - at);
      at = space;
      if (at >= end) break;
      if (const std::size_t wide = SpaceSize(text_, at)) {
        EmitAt(" ", at);
        at += wide;
        continue;
      }
      const bool block = text_.substr(at, 2) == "/*";
      const std::size_t close = block ? text_.find("*/", at + 2) : text_.find('\n', at);
      EmitAt(" ", at);
      at = std::min(close == std::string_view::npos ? end : close + (block ? 2 : 0), end);
    }
  }
  void EmitAsIs(std::size_t offset, std::size_t size) {
    out_.map.Follow(out_.sql.size(), offset);
    out_.sql += text_.substr(offset, size);
  }
  void EmitAt(std::string_view sql, std::size_t origin) {
    out_.map.Stay(out_.sql.size(), origin);
    out_.sql += sql;
  }
  void Consume(std::size_t i) {
    end_of_last_ = tokens_[i].offset + tokens_[i].size;
    next_ = i + 1;
  }
  void Replace(std::size_t i, std::string_view sql) {
    EmitGap(i);
    EmitAt(sql, tokens_[i].offset);
    Consume(i);
  }
  void Keep(std::size_t i) {
    EmitGap(i);
    EmitAsIs(tokens_[i].offset, tokens_[i].size);
    Consume(i);
  }
  /// Steps over tokens without writing them.
  void Drop(std::size_t count) { Consume(next_ + count - 1); }

  // --- rewriting ---

  void Rewrite(std::size_t end) {
    while (next_ < end) {
      if (RewriteFunction() || RewritePath() || RewriteStar()) continue;
      RewriteToken(next_);
    }
  }

  void RewriteToken(std::size_t i) {
    const Token& token = tokens_[i];
    TrackBrackets(i);
    switch (token.kind) {
      case TokenKind::kString:
        return Replace(i, QuoteString(token.value));
      case TokenKind::kIdentifier:
        return Replace(i, QuoteIdentifier(token.value));
      case TokenKind::kWord:
        if (rules_.words_after_dots && i > 0 && IsSymbol(i - 1, ".") && !IsSymbol(i + 1, "(")) {
          return Replace(i, QuoteIdentifier(SpellingAt(i)));
        }
        return Keep(i);
      case TokenKind::kParameter:
        return token.value.empty() ? Keep(i) : Replace(i, token.value);
      case TokenKind::kNumber:
      case TokenKind::kSymbol:
      case TokenKind::kSemicolon:
      case TokenKind::kEnd:
        return Keep(i);
    }
  }

  void TrackBrackets(std::size_t i) {
    if (tokens_[i].kind != TokenKind::kSymbol) return;
    const char c = text_[tokens_[i].offset];
    if (c == '(' || c == '[' || c == '{') brackets_.push_back(c);
    if (brackets_.empty()) return;
    if (c == ')' || c == ']' || c == '}') brackets_.pop_back();
    if (brackets_.empty()) return;
    if (IsSymbol(i, ":") && brackets_.back() == '{') brackets_.back() = ':';
    if (c == ',' && brackets_.back() == ':') brackets_.back() = '{';
  }

  /// AI functions in all their spellings, PROMPT and STRUCT.
  bool RewriteFunction() {
    const std::size_t i = next_;
    if (!IsName(i)) return false;
    if (i > 0 && IsSymbol(i - 1, ".")) return RewriteMethod();
    if (NameIs(i, "AI") && IsSymbol(i + 1, ".") && IsName(i + 2) && IsSymbol(i + 3, "(")) {
      return EmitAiCall("AI." + NameAt(i + 2), 3);
    }
    if (rules_.cortex_prefix && NameIs(i, "SNOWFLAKE") && IsSymbol(i + 1, ".") &&
        NameIs(i + 2, "CORTEX") && IsSymbol(i + 3, ".") && IsName(i + 4) && IsSymbol(i + 5, "(")) {
      return RewriteCortex();
    }
    if (!IsSymbol(i + 1, "(")) return false;
    if (UpperCase(NameAt(i)).starts_with("AI_")) return EmitAiCall(NameAt(i), 1);
    if (NameIs(i, "PROMPT")) return RewritePrompt();
    if (rules_.struct_constructor && IsWord(i, "STRUCT")) return RewriteStruct();
    if (rules_.printf_format && IsWord(i, "FORMAT")) return RewriteFormat();
    return false;
  }

  /// x.AI_FILTER(..), the engine's spelling of AI_FILTER(x, ..).
  bool RewriteMethod() {
    const bool called = IsSymbol(next_ + 1, "(") && UpperCase(NameAt(next_)).starts_with("AI_");
    return called && FindAiFunction(NameAt(next_)) != nullptr && EmitAiCall(NameAt(next_), 1);
  }

  bool RewriteCortex() {
    const std::string name = NameAt(next_ + 4);
    if (UpperCase(name).starts_with("AI_")) return EmitAiCall(name, 5);
    if (SameWord(name, "PROMPT")) {
      EmitGap(next_);
      Drop(4);
      return RewritePrompt();
    }
    const std::size_t offset = tokens_[next_ + 4].offset;
    if (IsCortexFunction(name)) {
      Fail(ErrorCode::kUnsupported, offset,
           fmt::format("SNOWFLAKE.CORTEX.{} is known, but not supported yet; supported: {}",
                       UpperCase(name), SupportedAiFunctions()));
    }
    Fail(ErrorCode::kBind, offset,
         fmt::format("unknown function SNOWFLAKE.CORTEX.{}; supported: {}", name,
                     SupportedAiFunctions()));
  }

  bool EmitAiCall(const std::string& name, std::size_t tokens) {
    const std::size_t offset = tokens_[next_].offset;
    const AiFunction* function = FindAiFunction(name);
    if (function == nullptr) {
      Fail(ErrorCode::kBind, offset,
           fmt::format("unknown AI function {}; supported: {}", name, SupportedAiFunctions()));
    }
    if (!function->implemented()) {
      Fail(ErrorCode::kUnsupported, offset,
           fmt::format("{} is known, but not supported yet; supported: {}", UpperCase(name),
                       SupportedAiFunctions()));
    }
    if (!out_.has_ai) out_.first_ai = offset;
    out_.has_ai = true;
    EmitGap(next_);
    EmitAt(ParsedName(name), offset);
    Drop(tokens);
    return true;
  }

  /// PROMPT(: named slots become numbered ones with their columns behind the template.
  bool RewritePrompt() {
    const std::size_t pattern = next_ + 2;
    if (pattern >= tokens_.size()) return false;
    const Token& token = tokens_[pattern];
    const bool whole = IsSymbol(pattern + 1, ",") || IsSymbol(pattern + 1, ")");
    if (!whole) return false;
    if (token.kind == TokenKind::kIdentifier && !rules_.double_quoted_strings) {
      FailAtQuotedPrompt(token);
    }
    if (token.kind != TokenKind::kString || !rules_.named_slots) return false;
    const SlotList slots = FindSlots(token.value);
    if (slots.named.empty()) return false;
    if (!slots.numbered.empty()) {
      Fail(ErrorCode::kBind, token.origins[slots.numbered[0]],
           "a prompt has either named or numbered slots, not both");
    }
    const NumberedTemplate numbered = NumberSlots(token.value, slots.named);
    Keep(next_);
    RewriteToken(next_);
    Replace(next_, QuoteString(numbered.pattern));
    for (const NamedSlot& column : numbered.columns) {
      EmitAt(", ", token.origins[column.begin + 1]);
      EmitAt(WritePath(column.path), token.origins[column.begin + 1]);
    }
    return true;
  }

  static std::string WritePath(const std::vector<std::string>& path) {
    std::string out;
    for (const std::string& part : path) {
      if (!out.empty()) out += ".";
      out += QuoteIdentifier(part);
    }
    return out;
  }

  [[noreturn]] void FailAtQuotedPrompt(const Token& token) const {
    const NumberedTemplate numbered = NumberSlots(token.value, FindSlots(token.value).named);
    std::string arguments = numbered.columns.empty() && IsSymbol(next_ + 3, ",") ? ", .." : "";
    for (const NamedSlot& column : numbered.columns) {
      arguments += fmt::format(", {}", fmt::join(column.path, "."));
    }
    Fail(ErrorCode::kSyntax, token.offset,
         fmt::format("in {} \"..\" is a name, not a text: write PROMPT({}{})", rules_.name,
                     QuoteString(numbered.pattern), arguments));
  }

  /// FORMAT('%s', x) as printf('%s', x): the engine's FORMAT has patterns of its own, in which `%s`
  /// is text.
  bool RewriteFormat() {
    const std::size_t pattern = next_ + 2;
    if (pattern >= tokens_.size() || NamesTable(next_)) return false;
    const std::size_t offset = tokens_[pattern].offset;
    const bool literal = tokens_[pattern].kind == TokenKind::kString &&
                         (IsSymbol(pattern + 1, ",") || IsSymbol(pattern + 1, ")"));
    if (!literal) {
      Fail(ErrorCode::kUnsupported, offset,
           "FORMAT with a pattern that is no literal is not supported");
    }
    const std::size_t values = FieldEnds(next_ + 1).size() - 1;
    const std::size_t wanted = ValuesOfPattern(tokens_[pattern].value, offset);
    if (values != wanted) {
      Fail(ErrorCode::kBind, offset,
           fmt::format("the pattern of FORMAT wants {} values, and here {}", wanted, values));
    }
    Replace(next_, "printf");
    return true;
  }

  /// Whether the name at `i` is one that a statement makes or changes: columns stand behind it.
  bool NamesTable(std::size_t i) const {
    constexpr std::array<std::string_view, 6> kBefore = {"TABLE", "INTO",      "VIEW",
                                                         "WITH",  "RECURSIVE", "EXISTS"};
    return i > 0 && std::any_of(kBefore.begin(), kBefore.end(),
                                [&](std::string_view word) { return IsWord(i - 1, word); });
  }

  /// How many values a pattern of printf takes.
  std::size_t ValuesOfPattern(std::string_view pattern, std::size_t offset) const {
    constexpr std::string_view kFlags = "-+ #0123456789.*";
    constexpr std::string_view kConversions = "diouxXfFeEgGs";
    std::size_t values = 0;
    for (std::size_t at = pattern.find('%'); at != pattern.npos; at = pattern.find('%', at + 1)) {
      const std::size_t begin = at;
      for (++at; at < pattern.size() && kFlags.find(pattern[at]) != kFlags.npos; ++at) {
        values += pattern[at] == '*' ? 1 : 0;
      }
      if (at == begin + 1 && at < pattern.size() && pattern[at] == '%') continue;
      if (at == pattern.size() || kConversions.find(pattern[at]) == kConversions.npos) {
        Fail(ErrorCode::kUnsupported, offset,
             fmt::format("FORMAT's {} is not supported; %s takes CAST(.. AS STRING)",
                         base::Escaped(pattern.substr(begin, at + 1 - begin))));
      }
      ++values;
    }
    return values;
  }

  /// STRUCT(x AS a, ..) as struct_pack(a := x, ..), or row(..) where a field has no name.
  bool RewriteStruct() {
    const std::size_t open = next_ + 1;
    const std::vector<std::size_t> ends = FieldEnds(open);
    if (ends.empty()) return false;
    const auto named = [this](std::size_t end) { return IsName(end - 1) && IsWord(end - 2, "AS"); };
    const bool all_named = std::all_of(ends.begin(), ends.end(), named);
    Replace(next_, all_named ? "struct_pack" : "row");
    RewriteToken(open);
    for (const std::size_t end : ends) {
      if (all_named) {
        EmitGap(next_);
        end_of_last_ = tokens_[next_].offset;
        EmitAt(QuoteIdentifier(NameAt(end - 1)), tokens_[end - 1].offset);
        EmitAt(" := ", tokens_[end - 1].offset);
      }
      Rewrite(named(end) ? end - 2 : end);
      if (named(end)) Drop(2);
      if (IsSymbol(end, ",")) RewriteToken(end);
    }
    return true;
  }

  /// Ends (the index of `,` or `)`) of the fields between the parenthesis at `open` and its
  /// partner.
  std::vector<std::size_t> FieldEnds(std::size_t open) const {
    std::vector<std::size_t> ends;
    std::size_t depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::kSymbol) continue;
      const char c = text_[tokens_[i].offset];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      if ((c == ',' && depth == 1) || depth == 0) ends.push_back(i);
      if (depth == 0) return i == open + 1 ? std::vector<std::size_t>() : ends;
    }
    return {};
  }

  /// f(..):name[0].other as f(..)."name"[1].other: path indexes count from 0, the engine's lists
  /// from 1.
  bool RewritePath() {
    const std::size_t i = next_;
    if (!rules_.path_access || !IsSymbol(i, ":") || i == 0 || !IsName(i + 1)) return false;
    // The colon of a slice, or behind a key of MAP {..}.
    const bool separates =
        !brackets_.empty() && (brackets_.back() == '[' || brackets_.back() == '{');
    if (!IsSymbol(i - 1, ")") || separates) return false;
    Replace(i, ".");
    Replace(i + 1, QuoteIdentifier(NameAt(i + 1)));
    for (;;) {
      const std::size_t at = next_;
      const bool subscript = IsSymbol(at, "[") && IsSymbol(at + 2, "]");
      if (subscript && tokens_[at + 1].kind == TokenKind::kNumber) {
        RewriteIndex(at);
      } else if (subscript && tokens_[at + 1].kind == TokenKind::kString) {
        Replace(at, fmt::format(".{}", QuoteIdentifier(tokens_[at + 1].value)));
        Drop(2);
      } else if (IsSymbol(at, ".") && IsName(at + 1)) {
        Keep(at);
        Replace(at + 1, QuoteIdentifier(NameAt(at + 1)));
      } else {
        return true;
      }
    }
  }

  void RewriteIndex(std::size_t open) {
    const std::string digits(SpellingAt(open + 1));
    const bool integer =
        digits.size() <= 9 && digits.find_first_not_of("0123456789") == digits.npos;
    if (!integer) Fail(ErrorCode::kSyntax, tokens_[open + 1].offset, "a path index is an integer");
    Keep(open);
    Replace(open + 1, std::to_string(std::stol(digits) + 1));
    Keep(open + 2);
  }

  bool RewriteStar() {
    const std::size_t i = next_;
    if (!rules_.star_except || !IsSymbol(i, "*") || !IsWord(i + 1, "EXCEPT") ||
        !IsSymbol(i + 2, "(")) {
      return false;
    }
    Keep(i);
    Replace(i + 1, "EXCLUDE");
    return true;
  }

  std::string_view text_;
  std::span<const Token> tokens_;
  const DialectRules& rules_;
  std::size_t next_ = 0;
  std::size_t end_of_last_ = 0;
  std::vector<char> brackets_;  ///< the open ones; `:` for a `{` behind the colon of a key
  Translation out_;
};

}  // namespace

Translation Translate(std::string_view text, std::span<const Token> tokens,
                      const DialectRules& rules) {
  return Translator(text, tokens, rules).Run();
}

}  // namespace quail::sql
