#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/bpe_tokenizer.h"

namespace quail::text {

/// The bytes that `printable` spells in GPT-2's alphabet, in which each byte is one printable
/// character; nullopt where some character is not of that alphabet.
std::optional<std::string> DecodePrintable(std::string_view printable);

/// Collects a vocabulary from a file that spells tokens in GPT-2's alphabet. What is said about the
/// file comes with Error{kModel}.
class ByteLevelVocabulary {
 public:
  /// Ids are [0, size). One that no SetToken names stays a nameless control token.
  explicit ByteLevelVocabulary(std::size_t size);

  /// `control` tokens keep `printable` as their name, as do tokens that the alphabet cannot spell:
  /// no text yields them. Of two ids with the same name, merges mean the first. REQUIRES: id in
  /// range.
  void SetToken(TokenId id, std::string_view printable, bool control);
  void AddMerge(std::string_view left, std::string_view right);
  std::optional<TokenId> Find(std::string_view printable) const;

  /// The tokens and merges; the caller fills in the rest.
  BpeVocabulary Take() { return std::move(vocabulary_); }

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  BpeVocabulary vocabulary_;
  std::unordered_map<std::string, TokenId, NameHash, std::equal_to<>> ids_;  ///< by printable name
};

}  // namespace quail::text
