#pragma once

#include <cstddef>
#include <cstdint>

/// Properties of code points, as HF `tokenizers` 0.23.3 sees them; tools/generate_unicode_tables.py
/// names the versions of Unicode and writes the tables at build time.
namespace quail::text::unicode {

enum Property : std::uint8_t {
  kLetter = 1,     ///< \p{L}
  kNumber = 2,     ///< \p{N}
  kSpace = 4,      ///< \s
  kNumeric = 8,    ///< what the Digits pre-tokenizer isolates
  kMark = 16,      ///< has a combining class
  kNfcMaybe = 32,  ///< NFC_Quick_Check is No or Maybe
};

struct Decomposition {
  char32_t point;
  std::uint16_t offset;  ///< into kDecompositionPool
  std::uint16_t count;
};

struct Composition {
  char32_t first;
  char32_t second;
  char32_t composed;
};

extern const std::uint8_t kPropertyIndex[8704];
extern const std::uint8_t kPropertyBlocks[];
extern const std::uint8_t kCombiningClassIndex[8704];
extern const std::uint8_t kCombiningClassBlocks[];
extern const Decomposition kDecompositions[];  ///< full canonical ones, by point
extern const std::size_t kDecompositionCount;
extern const char32_t kDecompositionPool[];
extern const Composition kCompositions[];  ///< by (first, second)
extern const std::size_t kCompositionCount;

/// Bits of Property. REQUIRES: point < 0x110000, as for CombiningClass.
inline std::uint8_t Properties(char32_t point) {
  return kPropertyBlocks[std::size_t{kPropertyIndex[point >> 7]} * 128 + (point & 127)];
}

inline std::uint8_t CombiningClass(char32_t point) {
  return kCombiningClassBlocks[std::size_t{kCombiningClassIndex[point >> 7]} * 128 + (point & 127)];
}

}  // namespace quail::text::unicode
