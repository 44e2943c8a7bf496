#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/cancel.h"
#include "base/strong_id.h"
#include "base/thread_pool.h"
#include "text/bpe_tokenizer.h"

namespace quail::text {

using base::TextId;

enum class TextStatus : std::uint8_t {
  kPending,  ///< not tokenised
  kReady,
  kInvalidUtf8,  ///< no tokens; `bad_offset` says where
};

/// The distinct texts of a session, each interned once and tokenised at most once. Equal bytes have
/// equal ids; a token list (a value of a TOKENS column) is a text of its own, keyed by its ids.
/// Texts live as long as the store. Thread-safe: Intern from any threads (DuckDB's workers call
/// it), Tokenize from one at a time.
class TextStore {
 public:
  TextStore();
  ~TextStore();

  /// The dense id of `text`; copies the bytes the first time.
  TextId Intern(std::string_view text);
  /// The ids of many texts, in less time than one by one. REQUIRES: as many of both.
  void Intern(std::span<const std::string_view> texts, std::span<TextId> ids);
  /// The dense id of a token list, which is ready as it is.
  TextId InternTokens(std::span<const TokenId> tokens);

  std::size_t size() const;
  /// Empty for a token list.
  std::string_view text(TextId id) const;
  bool is_token_list(TextId id) const;
  TextStatus status(TextId id) const;
  std::size_t bad_offset(TextId id) const;

  /// Tokenises every pending id of `ids` in parallel. Stops early when `cancel` is set: the rest
  /// stays pending.
  void Tokenize(std::span<const TextId> ids, const BpeTokenizer& tokenizer, base::ThreadPool& pool,
                const base::CancelFlag* cancel = nullptr);
  /// REQUIRES: status(id) == kReady. Valid as long as the store.
  std::span<const TokenId> tokens(TextId id) const;
  /// The tokens of a text, if it has any yet, are going to be read soon.
  void Prefetch(TextId id) const;
  /// Bytes of all texts that had no token in the vocabulary, so far.
  std::size_t unknown_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quail::text
