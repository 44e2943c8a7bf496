#pragma once

#include <array>
#include <cstdint>

#include "base/utf8.h"
#include "text/bpe_tokenizer.h"
#include "text/unicode.h"

/// The split patterns of HF's pre-tokenizers as hand-written scanners. Each alternative of a
/// pattern is tried in its order, so the words are those of the (leftmost, first alternative,
/// greedy) regex. Text is well-formed UTF-8.
///
///   GPT-2   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///   SmolLM  each numeric character a piece of its own; the pieces between are split as GPT-2,
///   unaware of each other Llama 3
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
///           |\s*[\r\n]+|\s+(?!\S)|\s+
///   Qwen2   as Llama 3 with \p{N} in place of \p{N}{1,3}
namespace quail::text::splitter {

enum class CharClass : std::uint8_t { kOther, kLetter, kNumber, kSpace, kIsolated };

struct Char {
  CharClass char_class;
  std::uint8_t length;
};

constexpr CharClass AsciiClass(unsigned char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return CharClass::kSpace;
  return CharClass::kOther;
}

constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (std::size_t c = 0; c < 128; ++c) classes[c] = AsciiClass(static_cast<unsigned char>(c));
  return classes;
}();

/// The scanner of one scheme over one text.
template <SplitScheme scheme>
class Splitter {
 public:
  explicit Splitter(const char* end) : end_(end) {}

  /// The end of the word that begins at `p`. REQUIRES: p < end.
  const char* WordEnd(const char* p) const {
    if constexpr (scheme == SplitScheme::kGpt2 || scheme == SplitScheme::kSmolLm) {
      return GptWordEnd(p);
    } else {
      return LlamaWordEnd(p);
    }
  }

 private:
  static Char Read(const char* p) {
    const auto lead = static_cast<unsigned char>(*p);
    if (lead < 0x80) {
      const CharClass char_class = kAsciiClasses[lead];
      if constexpr (scheme == SplitScheme::kSmolLm) {
        if (char_class == CharClass::kNumber) return {CharClass::kIsolated, 1};
      }
      return {char_class, 1};
    }
    const base::CodePoint code = base::DecodeUtf8(p);
    return {ClassOf(unicode::Properties(code.value)), static_cast<std::uint8_t>(code.length)};
  }

  static CharClass ClassOf(unsigned properties) {
    if constexpr (scheme == SplitScheme::kSmolLm) {
      if ((properties & unicode::kNumeric) != 0) return CharClass::kIsolated;
    }
    if ((properties & unicode::kLetter) != 0) return CharClass::kLetter;
    if ((properties & unicode::kNumber) != 0) return CharClass::kNumber;
    return (properties & unicode::kSpace) != 0 ? CharClass::kSpace : CharClass::kOther;
  }

  const char* Skip(const char* p, CharClass char_class) const {
    while (p < end_) {
      const Char c = Read(p);
      if (c.char_class != char_class) break;
      p += c.length;
    }
    return p;
  }

  const char* SkipLineEnds(const char* p) const {
    while (p < end_ && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

  static bool IsLineEnd(char c) { return c == '\r' || c == '\n'; }

  /// Bytes of the contraction at the apostrophe `p`, or 0.
  std::size_t ContractionLength(const char* p) const {
    const auto left = end_ - p;
    if (left < 2) return 0;
    const char a = Folded(p[1]);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if constexpr (scheme == SplitScheme::kLlama3 || scheme == SplitScheme::kQwen2) {
      // U+017F, the long s, folds to s.
      if (left >= 3 && p[1] == '\xC5' && p[2] == '\xBF') return 3;
    }
    if (left < 3) return 0;
    const char b = Folded(p[2]);
    return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? 3 : 0;
  }

  static char Folded(char c) {
    constexpr bool kFold = scheme == SplitScheme::kLlama3 || scheme == SplitScheme::kQwen2;
    return kFold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }

  const char* GptWordEnd(const char* p) const {
    if (*p == '\'') {
      if (const std::size_t length = ContractionLength(p)) return p + length;
    }
    const Char first = Read(p);
    const char* second = p + first.length;
    if (first.char_class == CharClass::kIsolated) return second;
    if (first.char_class != CharClass::kSpace) return Skip(second, first.char_class);
    if (*p == ' ' && second < end_) {
      const Char next = Read(second);
      if (next.char_class != CharClass::kSpace && next.char_class != CharClass::kIsolated) {
        return Skip(second + next.length, next.char_class);
      }
    }
    return SpaceEnd(p);
  }

  const char* LlamaWordEnd(const char* p) const {
    if (*p == '\'') {
      if (const std::size_t length = ContractionLength(p)) return p + length;
    }
    const Char first = Read(p);
    const char* second = p + first.length;
    if (first.char_class == CharClass::kLetter) return Skip(second, CharClass::kLetter);
    if (first.char_class == CharClass::kNumber) return NumberEnd(second);
    const bool has_second = second < end_;
    const CharClass next = has_second ? Read(second).char_class : CharClass::kSpace;
    if (next == CharClass::kLetter && !IsLineEnd(*p)) return Skip(second, CharClass::kLetter);
    if (first.char_class == CharClass::kOther || (*p == ' ' && next == CharClass::kOther)) {
      return SkipLineEnds(Skip(second, CharClass::kOther));
    }
    return SpaceEnd(p);
  }

  const char* NumberEnd(const char* p) const {
    if constexpr (scheme == SplitScheme::kLlama3) {
      for (int i = 0; i < 2 && p < end_; ++i) {
        const Char c = Read(p);
        if (c.char_class != CharClass::kNumber) break;
        p += c.length;
      }
    }
    return p;
  }

  /// The last alternatives, from a white-space character on.
  const char* SpaceEnd(const char* p) const {
    const char* last = p;
    const char* after_line_end = nullptr;
    const char* q = p;
    while (q < end_) {
      const Char c = Read(q);
      if (c.char_class != CharClass::kSpace) break;
      last = q;
      if (IsLineEnd(*q)) after_line_end = q + 1;
      q += c.length;
    }
    if constexpr (scheme == SplitScheme::kLlama3 || scheme == SplitScheme::kQwen2) {
      if (after_line_end != nullptr) return after_line_end;
    }
    // An isolated character is the end of its piece's text, so no character follows the space.
    const bool at_end = q == end_ || Read(q).char_class == CharClass::kIsolated;
    return at_end || last == p ? q : last;
  }

  const char* end_;
};

}  // namespace quail::text::splitter
