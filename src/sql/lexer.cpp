#include "sql/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text_position.h"
#include "base/utf8.h"
#include "fmt/format.h"
#include "quail/error.h"
#include "sql/string_literal.h"

namespace quail::sql {

namespace {

constexpr std::array<std::string_view, 20> kWideSpaces = {
    "\u00a0", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005",
    "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u200b", "\u200c",
    "\u200d", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff"};

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c) || c == '$'; }

constexpr std::array<std::string_view, 11> kLongSymbols = {"->>", "::", ":=", "=>", "->", "||",
                                                           "<=",  ">=", "<>", "!=", "//"};

/// Endings of names that are files rather than dotted paths of tables.
constexpr std::array<std::string_view, 12> kFileEndings = {
    ".csv",   ".tsv",     ".json",   ".jsonl",  ".ndjson",  ".parquet",
    ".arrow", ".feather", ".csv.gz", ".tsv.gz", ".json.gz", ".jsonl.gz"};

bool IsFileName(std::string_view name) {
  if (name.find_first_of("/\\*") != std::string_view::npos) return true;
  const std::string lower = LowerCase(name);
  return std::any_of(kFileEndings.begin(), kFileEndings.end(),
                     [&lower](std::string_view ending) { return lower.ends_with(ending); });
}

class Lexer {
 public:
  Lexer(std::string_view text, const DialectRules& rules, std::size_t begin)
      : text_(text), rules_(rules), at_(begin) {}

  std::vector<Token> Run() {
    if (const auto bad = base::FirstInvalidUtf8(text_.substr(at_))) {
      Fail(at_ + *bad,
           fmt::format("the text is not UTF-8: the byte \\x{:02X} belongs to no character",
                       static_cast<unsigned char>(text_[at_ + *bad])));
    }
    while (SkipSpaceAndComments(), at_ < text_.size()) tokens_.push_back(Next());
    tokens_.push_back({TokenKind::kEnd, text_.size(), 0, "", {}});
    return std::move(tokens_);
  }

 private:
  bool Ahead(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  char Peek(std::size_t distance = 0) const {
    return at_ + distance < text_.size() ? text_[at_ + distance] : '\0';
  }
  [[noreturn]] void Fail(std::size_t offset, const std::string& message,
                         ErrorCode code = ErrorCode::kSyntax) const {
    throw Error(code, message, base::Locate(text_, offset));
  }

  void SkipSpaceAndComments() {
    for (;;) {
      while (const std::size_t space = SpaceSize(text_, at_)) at_ += space;
      if (Ahead("--") || (rules_.slash_comments && Ahead("//")) ||
          (rules_.hash_comments && Ahead("#"))) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (Ahead("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          Fail(at_, "unterminated comment", ErrorCode::kUnfinished);
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  /// b'..', rb".." and the like.
  void RefuseBytes() const {
    const auto is = [this](std::size_t i, char lower) {
      return Peek(i) == lower || Peek(i) == lower - 32;
    };
    const std::size_t prefix = is(0, 'b') ? (is(1, 'r') ? 2 : 1) : is(0, 'r') && is(1, 'b') ? 2 : 0;
    const char quote = prefix == 0 ? '\0' : Peek(prefix);
    if (rules_.raw_strings && (quote == '\'' || quote == '"')) {
      Fail(at_, "a bytes literal is not supported; leave out the b for a text");
    }
  }

  Token Next() {
    const char c = Peek();
    RefuseBytes();
    if (c == '\0') Fail(at_, "the text has a NUL character");
    if (const auto form = FormOfString()) return Advance(ReadString(text_, at_, *form, rules_));
    if (c == '"') return ReadIdentifier(c);
    if (c == '`' && rules_.backtick_identifiers) return LastOfPath(ReadIdentifier(c));
    if (c == ';') return Take(TokenKind::kSemicolon, 1);
    if (IsWordStart(c)) return Take(TokenKind::kWord, WordSize(1));
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)) && !AfterOperand())) {
      return Take(TokenKind::kNumber, NumberSize());
    }
    // DuckDB's #1 is the first column of the select list.
    if (c == '#' && !IsDigit(Peek(1))) {
      Fail(at_, fmt::format("no comment of dialect {} begins with #: write -- (dialect bigquery "
                            "has #)",
                            rules_.name));
    }
    if (c == '?') return Take(TokenKind::kParameter, 1);
    if (c == '$' && IsWordPart(Peek(1))) return Take(TokenKind::kParameter, WordSize(1));
    for (const auto symbol : kLongSymbols) {
      if (Ahead(symbol)) return Take(TokenKind::kSymbol, symbol.size());
    }
    return Take(TokenKind::kSymbol, 1);
  }

  Token Take(TokenKind kind, std::size_t size) { return Advance({kind, at_, size, "", {}}); }
  Token Advance(Token token) {
    at_ += token.size;
    return token;
  }

  /// The form of the string literal that begins here, if one does.
  std::optional<StringForm> FormOfString() const {
    std::size_t prefix = 0;
    if (rules_.raw_strings && (Peek() == 'r' || Peek() == 'R')) prefix = 1;
    if (!rules_.double_quoted_strings && (Peek() == 'e' || Peek() == 'E')) prefix = 1;
    const char quote = Peek(prefix);
    if (prefix == 0 && rules_.dollar_quotes && Ahead("$$"))
      return StringForm{0, "$$", false, false};
    if (quote != '\'' && !(quote == '"' && rules_.double_quoted_strings)) return std::nullopt;
    const bool escapes = prefix == 1 ? !rules_.raw_strings : !rules_.plain_strings;
    const std::string_view triple = quote == '\'' ? "'''" : "\"\"\"";
    const bool tripled =
        rules_.triple_quotes && text_.substr(at_ + prefix, triple.size()) == triple;
    return StringForm{prefix, triple.substr(0, tripled ? 3 : 1), escapes, rules_.doubled_quotes};
  }

  Token ReadIdentifier(char quote) {
    Token token{TokenKind::kIdentifier, at_, 0, "", {}};
    std::size_t end = at_ + 1;
    for (;; ++end) {
      if (end >= text_.size()) Fail(at_, "unterminated quoted name", ErrorCode::kUnfinished);
      if (text_[end] == quote) {
        if (end + 1 >= text_.size() || text_[end + 1] != quote) break;
        ++end;
      }
      token.value.push_back(text_[end]);
    }
    if (token.value.empty()) Fail(at_, "a quoted name is empty");
    token.size = end + 1 - at_;
    return Advance(std::move(token));
  }

  /// In backticks a dot ends a name, but for a file's: the last of `path`, those before it are
  /// kept.
  Token LastOfPath(Token path) {
    if (path.value.find('.') == path.value.npos || IsFileName(path.value)) return path;
    const std::size_t end = path.offset + path.size - 1;
    for (std::size_t begin = path.offset + 1;;) {
      const std::size_t dot = std::min(text_.find('.', begin), end);
      if (dot == begin) Fail(path.offset, "a part of this quoted name is empty");
      Token name{TokenKind::kIdentifier, begin, dot - begin, "", {}};
      for (std::size_t i = begin; i < dot; i += text_[i] == '`' ? 2 : 1) name.value += text_[i];
      if (begin == path.offset + 1) name = {name.kind, path.offset, name.size + 1, name.value, {}};
      if (dot == end) return {name.kind, name.offset, name.size + 1, name.value, {}};
      tokens_.push_back(std::move(name));
      tokens_.push_back({TokenKind::kSymbol, dot, 1, "", {}});
      begin = dot + 1;
    }
  }

  /// Whether a dot here would continue a name or an expression rather than begin a number.
  bool AfterOperand() const {
    if (tokens_.empty()) return false;
    const Token& last = tokens_.back();
    const std::string_view spelling = Spelling(text_, last);
    return last.offset + last.size == at_ &&
           (last.kind == TokenKind::kWord || last.kind == TokenKind::kIdentifier ||
            spelling == ")" || spelling == "]");
  }

  std::size_t WordSize(std::size_t size) const {
    while (IsWordPart(Peek(size)) && SpaceSize(text_, at_ + size) == 0) ++size;
    return size;
  }

  std::size_t NumberSize() const {
    std::size_t size = 0;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) return WordSize(2);
    while (IsDigit(Peek(size)) || Peek(size) == '_') ++size;
    if (Peek(size) == '.') ++size;
    while (IsDigit(Peek(size)) || Peek(size) == '_') ++size;
    if (Peek(size) == 'e' || Peek(size) == 'E') {
      const std::size_t sign = Peek(size + 1) == '+' || Peek(size + 1) == '-' ? 1 : 0;
      if (IsDigit(Peek(size + 1 + sign))) {
        size += 1 + sign;
        while (IsDigit(Peek(size))) ++size;
      }
    }
    return size;
  }

  std::string_view text_;
  const DialectRules& rules_;
  std::size_t at_;
  std::vector<Token> tokens_;
};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::string Quote(std::string_view value, char quote) {
  std::string out(1, quote);
  for (const char c : value) {
    if (c == quote) out.push_back(quote);
    out.push_back(c);
  }
  out.push_back(quote);
  return out;
}

}  // namespace

std::vector<Token> Lex(std::string_view text, const DialectRules& rules, std::size_t begin) {
  return Lexer(text, rules, begin).Run();
}

std::size_t SpaceSize(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  if (IsSpace(text[at])) return 1;
  if (static_cast<unsigned char>(text[at]) < 0x80) return 0;
  for (const std::string_view space : kWideSpaces) {
    if (text.substr(at, space.size()) == space) return space.size();
  }
  return 0;
}

bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), Lower);
  return out;
}

std::string UpperCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), Upper);
  return out;
}

std::string QuoteString(std::string_view value) { return Quote(value, '\''); }
std::string QuoteIdentifier(std::string_view name) { return Quote(name, '"'); }

}  // namespace quail::sql
