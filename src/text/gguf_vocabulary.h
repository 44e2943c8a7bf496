#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "text/bpe_tokenizer.h"

namespace quail::text {

/// The `tokenizer.ggml.*` entries of a GGUF file, as they stand there.
struct GgufVocabularyFields {
  std::string_view model;                    ///< tokenizer.ggml.model
  std::string_view pre;                      ///< tokenizer.ggml.pre
  std::span<const std::string_view> tokens;  ///< [vocabulary], in GPT-2's printable alphabet
  std::span<const std::int32_t>
      token_types;  ///< [vocabulary]; 1 normal, 6 byte, all others no part of text
  std::span<const std::string_view> merges;  ///< `left right`, in rank order
  std::optional<std::uint32_t> unknown_token_id;
};

/// Throws Error{kModel} on a tokenizer of another kind, on a `pre` that is not known (naming it and
/// those known), and on entries that contradict each other.
BpeVocabulary ReadGgufVocabulary(const GgufVocabularyFields& fields);

}  // namespace quail::text
