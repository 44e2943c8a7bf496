#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash128.h"
#include "base/strong_id.h"

namespace quail::text {

using base::TokenId;

/// How a model's tokenizer cuts text into words before the merges.
enum class SplitScheme {
  kGpt2,    ///< GPT-2's pattern
  kSmolLm,  ///< single digits first, then GPT-2's pattern
  kLlama3,  ///< groups of up to three digits, case-insensitive contractions
  kQwen2,   ///< as Llama 3, single digits (Qwen2, Qwen3)
};

/// A byte-level BPE vocabulary, whatever file it came from.
struct BpeVocabulary {
  std::vector<std::string>
      tokens;                    ///< index = token id; raw bytes, not the printable GPT-2 alphabet
  std::vector<bool> is_control;  ///< index = token id; control tokens never come out of text
  std::vector<std::pair<TokenId, TokenId>> merges;  ///< in rank order
  SplitScheme scheme = SplitScheme::kGpt2;
  bool nfc = false;            ///< normalise to NFC first
  bool ignore_merges = false;  ///< a word that is a token is that token, whatever the merges say
  std::optional<TokenId> unknown;  ///< stands for a byte that has no token
};

/// Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2). Immutable and thread-safe; equal, id
/// for id, to the HF `tokenizers` library with its added tokens emptied: text never yields a
/// control token.
class BpeTokenizer {
 public:
  /// Throws Error{kModel} on a vocabulary that contradicts itself.
  static std::shared_ptr<const BpeTokenizer> Create(BpeVocabulary vocabulary);
  ~BpeTokenizer();

  /// Appends the ids of `text`. When `text` is not UTF-8 (surrogates and overlong forms included)
  /// appends nothing and returns the byte offset of the first bad byte. `unknown_bytes`, if given,
  /// is increased by the bytes without token.
  std::optional<std::size_t> Encode(std::string_view text, std::vector<TokenId>& ids,
                                    std::size_t* unknown_bytes = nullptr) const;
  /// The bytes of the tokens, concatenated; control tokens by their name.
  std::string Decode(const std::vector<TokenId>& ids) const;
  /// The id whose bytes are exactly `bytes` and that text can yield, if there is one.
  std::optional<TokenId> Find(std::string_view bytes) const;
  /// The control token of that name, which no text yields, if there is one.
  std::optional<TokenId> FindControl(std::string_view name) const;

  std::size_t vocabulary_size() const;
  /// Content hash of everything that decides the ids: part of the token store's key.
  const base::Hash128& hash() const;

 private:
  struct Tables;
  explicit BpeTokenizer(std::unique_ptr<const Tables> tables);
  std::unique_ptr<const Tables> tables_;
};

}  // namespace quail::text
