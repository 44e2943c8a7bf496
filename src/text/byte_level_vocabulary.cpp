#include "text/byte_level_vocabulary.h"

#include <fmt/format.h>

#include <array>

#include "base/utf8.h"
#include "quail/error.h"

namespace quail::text {
namespace {

/// One past the greatest code point of the alphabet.
constexpr char32_t kAlphabetEnd = 0x144;

constexpr bool IsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// The byte of each code point below kAlphabetEnd, or -1. Bytes that are not printable in Latin-1
/// follow one another from U+0100 on (`bytes_to_unicode` of GPT-2).
constexpr std::array<int, kAlphabetEnd> kByteOfPoint = [] {
  std::array<int, kAlphabetEnd> bytes{};
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[IsItself(byte) ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return bytes;
}();

}  // namespace

std::optional<std::string> DecodePrintable(std::string_view printable) {
  if (base::FirstInvalidUtf8(printable)) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < printable.size();) {
    const base::CodePoint code = base::DecodeUtf8(printable.data() + i);
    if (code.value >= kAlphabetEnd || kByteOfPoint[code.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfPoint[code.value]);
    i += code.length;
  }
  return bytes;
}

ByteLevelVocabulary::ByteLevelVocabulary(std::size_t size) {
  vocabulary_.tokens.resize(size);
  vocabulary_.is_control.assign(size, true);
  ids_.reserve(size);
}

void ByteLevelVocabulary::SetToken(TokenId id, std::string_view printable, bool control) {
  const auto index = static_cast<std::size_t>(id.value());
  ids_.emplace(printable, id);
  std::optional<std::string> bytes = control ? std::nullopt : DecodePrintable(printable);
  vocabulary_.is_control[index] = !bytes.has_value();
  vocabulary_.tokens[index] = bytes ? std::move(*bytes) : std::string(printable);
}

void ByteLevelVocabulary::AddMerge(std::string_view left, std::string_view right) {
  const auto left_id = Find(left);
  const auto right_id = Find(right);
  if (!left_id || !right_id) {
    throw Error(ErrorCode::kModel,
                fmt::format("tokenizer vocabulary: merge {} of '{}' and '{}': no token '{}'",
                            vocabulary_.merges.size(), base::Escaped(left), base::Escaped(right),
                            base::Escaped(left_id ? right : left)));
  }
  vocabulary_.merges.emplace_back(*left_id, *right_id);
}

std::optional<TokenId> ByteLevelVocabulary::Find(std::string_view printable) const {
  const auto found = ids_.find(printable);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace quail::text
