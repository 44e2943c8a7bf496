#include "sql/string_literal.h"

#include <cstdint>
#include <optional>
#include <string>

#include "base/text_position.h"
#include "base/utf8.h"
#include "fmt/format.h"
#include "quail/error.h"

namespace quail::sql {

namespace {

[[noreturn]] void Fail(std::string_view text, std::size_t offset, const std::string& message) {
  throw Error(ErrorCode::kSyntax, message, base::Locate(text, offset));
}

[[noreturn]] void FailUnfinished(std::string_view text, std::size_t offset) {
  throw Error(ErrorCode::kUnfinished, "unterminated string", base::Locate(text, offset));
}

std::optional<std::uint32_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

/// Decodes the body of one literal into a token.
class Decoder {
 public:
  Decoder(std::string_view text, std::size_t begin, const DialectRules& rules)
      : text_(text), begin_(begin), at_(begin), rules_(rules) {}

  Token Read(const StringForm& form) {
    at_ = begin_ + form.prefix + form.delimiter.size();
    while (!AtDelimiter(form)) {
      if (at_ >= text_.size()) FailUnfinished(text_, begin_);
      if (text_[at_] == '\\' && form.escapes) {
        ReadEscape();
      } else if (text_[at_] == '\\' && form.prefix > 0 && at_ + 1 < text_.size()) {
        Copy(2);  // a raw string keeps the backslash, which still shields the quote
      } else {
        Copy(1);
      }
    }
    token_.kind = TokenKind::kString;
    token_.offset = begin_;
    token_.size = at_ - begin_;
    if (!rules_.named_slots) token_.origins.clear();
    return std::move(token_);
  }

 private:
  /// At the closing delimiter: steps over it. A doubled quote is text, or an error that names the
  /// right way.
  bool AtDelimiter(const StringForm& form) {
    if (text_.substr(at_, form.delimiter.size()) != form.delimiter) return false;
    const std::size_t after = at_ + form.delimiter.size();
    const bool single = form.delimiter.size() == 1;
    if (single && after < text_.size() && text_[after] == form.delimiter[0]) {
      if (form.doubled_quotes) {
        Put(form.delimiter, at_);
        at_ = after + 1;
        return AtDelimiter(form);
      }
      if (form.escapes || form.prefix > 0) {
        Fail(text_, at_,
             fmt::format("a doubled quote does not stand for a quote in {}: write \\{}",
                         rules_.name, form.delimiter));
      }
    }
    at_ = after;
    return true;
  }

  void Put(std::string_view bytes, std::size_t origin) {
    token_.value += bytes;
    token_.origins.resize(token_.value.size(), origin);
  }

  void Copy(std::size_t count) {
    for (; count > 0; --count, ++at_) Put(text_.substr(at_, 1), at_);
  }

  void ReadEscape() {
    const std::size_t start = at_++;
    if (at_ >= text_.size()) FailUnfinished(text_, begin_);
    const char c = text_[at_++];
    for (std::size_t i = 0; i + 1 < rules_.simple_escapes.size(); i += 2) {
      if (rules_.simple_escapes[i] == c) return Put(rules_.simple_escapes.substr(i + 1, 1), start);
    }
    if (c >= '0' && c <= '7') return ReadOctal(start);
    if (c == 'x' || (c == 'X' && rules_.strict_escapes)) return PutCode(Digits(2, start), start);
    if (c == 'u') return ReadUtf16(start);
    if (c == 'U' && rules_.strict_escapes) return PutCode(Digits(8, start), start);
    if (rules_.strict_escapes) {
      Fail(text_, start, fmt::format("unknown escape \\{} in a {} string", c, rules_.name));
    }
    at_ = start + 1;  // \c is c, which may be the first byte of several
    Copy(1);
  }

  /// \ooo of up to three digits; strict dialects want all three, others take \0 alone.
  void ReadOctal(std::size_t start) {
    std::uint32_t code = 0;
    std::size_t digits = 0;
    for (--at_; digits < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7';
         ++at_, ++digits) {
      code = code * 8 + static_cast<std::uint32_t>(text_[at_] - '0');
    }
    if (rules_.strict_escapes && digits != 3) Fail(text_, start, "\\ooo needs three octal digits");
    PutCode(code, start);
  }

  std::uint32_t Digits(std::size_t count, std::size_t start) {
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto digit = at_ < text_.size() ? HexDigit(text_[at_]) : std::nullopt;
      if (!digit)
        Fail(text_, start,
             fmt::format("\\{} needs {} hexadecimal digits", text_[start + 1], count));
      code = code * 16 + *digit;
      ++at_;
    }
    return code;
  }

  /// \uhhhh; two that form a surrogate pair are one character.
  void ReadUtf16(std::size_t start) {
    std::uint32_t code = Digits(4, start);
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::uint32_t low = Digits(4, start);
      if (low < 0xDC00 || low > 0xDFFF) Fail(text_, start, "a lone surrogate is no character");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    PutCode(code, start);
  }

  void PutCode(std::uint32_t code, std::size_t start) {
    if (code == 0)
      Fail(text_, start, "a NUL character in a literal is not supported yet: write chr(0)");
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      Fail(text_, start, "this escape is no Unicode character");
    }
    std::string bytes;
    base::AppendUtf8(static_cast<char32_t>(code), bytes);
    Put(bytes, start);
  }

  std::string_view text_;
  std::size_t begin_;
  std::size_t at_;
  const DialectRules& rules_;
  Token token_;
};

}  // namespace

Token ReadString(std::string_view text, std::size_t offset, const StringForm& form,
                 const DialectRules& rules) {
  return Decoder(text, offset, rules).Read(form);
}

}  // namespace quail::sql
