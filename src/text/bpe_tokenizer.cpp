#include "text/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <span>
#include <unordered_map>

#include "base/check.h"
#include "base/utf8.h"
#include "quail/error.h"
#include "text/merge_table.h"
#include "text/nfc.h"
#include "text/word_cache.h"
#include "text/word_splitter.h"

namespace quail::text {
namespace {

/// Changes when the rules or the Unicode tables change the ids of some text.
constexpr std::string_view kRulesVersion = "bpe 1, unicode 16.0/17.0/9.0";

constexpr TokenId kNoToken{-1};

using TokenMap = std::unordered_map<std::string_view, TokenId>;

[[noreturn]] void Contradiction(const std::string& what) {
  throw Error(ErrorCode::kModel, "tokenizer vocabulary: " + what);
}

/// A token's bytes for a message.
std::string Quoted(std::string_view token) {
  std::string quoted = "'";
  for (const char c : token.substr(0, 64)) {
    if (c >= 0x20 && c < 0x7F) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted + "'";
}

void CheckSizes(const BpeVocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  if (size == 0) Contradiction("no tokens");
  if (size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    Contradiction(fmt::format("{} tokens are too many", size));
  }
  if (vocabulary.is_control.size() != size) {
    Contradiction(fmt::format("{} tokens, but {} token types", size, vocabulary.is_control.size()));
  }
}

/// `id` as an index; throws where the vocabulary has no such token.
std::size_t CheckedIndex(const BpeVocabulary& vocabulary, TokenId id, std::string_view role) {
  if (id.value() < 0 || static_cast<std::size_t>(id.value()) >= vocabulary.tokens.size()) {
    Contradiction(
        fmt::format("{} {} is outside its {} tokens", role, id.value(), vocabulary.tokens.size()));
  }
  return static_cast<std::size_t>(id.value());
}

/// The tokens that text may yield, by their bytes.
TokenMap TextTokens(const BpeVocabulary& vocabulary) {
  TokenMap map;
  map.reserve(vocabulary.tokens.size());
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    if (vocabulary.is_control[i] || token.empty()) continue;
    const TokenId id(static_cast<std::int32_t>(i));
    const auto [held, inserted] = map.emplace(token, id);
    if (!inserted) {
      Contradiction(
          fmt::format("tokens {} and {} are both {}", held->second.value(), i, Quoted(token)));
    }
  }
  return map;
}

MergeTable BuildMerges(const BpeVocabulary& vocabulary, const TokenMap& text_tokens) {
  std::vector<MergeTable::Merge> merges;
  merges.reserve(vocabulary.merges.size());
  std::string merged;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto [left, right] = vocabulary.merges[rank];
    const std::size_t left_index = CheckedIndex(vocabulary, left, "a merge's token");
    const std::size_t right_index = CheckedIndex(vocabulary, right, "a merge's token");
    merged = vocabulary.tokens[left_index];
    merged += vocabulary.tokens[right_index];
    const auto found = text_tokens.find(merged);
    if (vocabulary.is_control[left_index] || vocabulary.is_control[right_index] ||
        found == text_tokens.end()) {
      Contradiction(fmt::format("merge {} of {} and {} does not lead from text tokens to one", rank,
                                Quoted(vocabulary.tokens[left_index]),
                                Quoted(vocabulary.tokens[right_index])));
    }
    merges.push_back({left, right, found->second});
  }
  return MergeTable(merges);
}

/// C0, C1 and F5 to FF stand in no well-formed UTF-8.
bool OccursInUtf8(std::size_t byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

std::array<TokenId, 256> ByteTokens(const BpeVocabulary& vocabulary, const TokenMap& text_tokens) {
  std::array<TokenId, 256> ids;
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = text_tokens.find(std::string_view(&c, 1));
    if (found != text_tokens.end()) {
      ids[byte] = found->second;
    } else if (vocabulary.unknown) {
      ids[byte] = *vocabulary.unknown;
    } else if (OccursInUtf8(byte)) {
      Contradiction(fmt::format("no token for byte {:02x} and no unknown token", byte));
    } else {
      ids[byte] = kNoToken;
    }
  }
  return ids;
}

base::Hash128 HashOf(const BpeVocabulary& vocabulary) {
  std::string content(kRulesVersion);
  content +=
      fmt::format("\n{} {} {} {}\n", static_cast<int>(vocabulary.scheme), vocabulary.nfc,
                  vocabulary.ignore_merges, vocabulary.unknown ? vocabulary.unknown->value() : -1);
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto size = static_cast<std::uint32_t>(vocabulary.tokens[i].size());
    content.append(reinterpret_cast<const char*>(&size), sizeof(size));
    content += vocabulary.is_control[i] ? '\1' : '\0';
    content += vocabulary.tokens[i];
  }
  for (const auto& merge : vocabulary.merges) {
    const std::array<std::int32_t, 2> pair{merge.first.value(), merge.second.value()};
    content.append(reinterpret_cast<const char*>(pair.data()), sizeof(pair));
  }
  return base::HashBytes(content);
}

/// What one running Encode needs; reused by later ones, so that the word cache stays warm.
struct Workspace {
  static constexpr std::size_t kBuffered = 4096;

  WordCache cache;
  MergeScratch merge;
  std::vector<TokenId> word;
  std::array<TokenId, kBuffered + WordCache::kMaxShortIds> buffer;
};

/// Collects ids in a small buffer, and passes them on when it is full or at Flush.
class IdSink {
 public:
  IdSink(Workspace& workspace, std::vector<TokenId>& ids)
      : buffer_(workspace.buffer.data()), ids_(ids) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;

  void AppendShort(const WordCache::ShortEntry& entry) {
    // Copying all is cheaper than a loop; the buffer has room for the surplus.
    for (std::size_t i = 0; i < WordCache::kMaxShortIds; ++i) buffer_[size_ + i] = entry.ids[i];
    size_ += entry.count;
    if (size_ >= Workspace::kBuffered) [[unlikely]]
      Flush();
  }

  void Append(std::span<const TokenId> word_ids) {
    Flush();
    ids_.insert(ids_.end(), word_ids.begin(), word_ids.end());
  }

  void Flush() {
    ids_.insert(ids_.end(), buffer_, buffer_ + size_);
    size_ = 0;
  }

 private:
  TokenId* const buffer_;
  std::size_t size_ = 0;
  std::vector<TokenId>& ids_;
};

/// Idle workspaces. Lock-free; a thread comes back to the one it used last.
class WorkspacePool {
 public:
  WorkspacePool() = default;
  ~WorkspacePool() {
    for (std::atomic<Workspace*>& slot : slots_) delete slot.load();
  }
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  std::unique_ptr<Workspace> Take() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      std::atomic<Workspace*>& slot = Slot(i);
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Workspace* idle = slot.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<Workspace>(idle);
      }
    }
    return std::make_unique<Workspace>();
  }

  void Return(std::unique_ptr<Workspace> workspace) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Workspace* free = nullptr;
      if (Slot(i).compare_exchange_strong(free, workspace.get(), std::memory_order_release,
                                          std::memory_order_relaxed)) {
        static_cast<void>(workspace.release());
        return;
      }
    }
  }

 private:
  std::atomic<Workspace*>& Slot(std::size_t i) {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t first = threads.fetch_add(1, std::memory_order_relaxed);
    return slots_[(first + i) % slots_.size()];
  }

  std::array<std::atomic<Workspace*>, 256> slots_{};
};

}  // namespace

struct BpeTokenizer::Tables {
  BpeVocabulary vocabulary;
  TokenMap text_tokens;
  std::array<TokenId, 256> byte_tokens;
  MergeTable merges;
  base::Hash128 hash;
  mutable WorkspacePool workspaces;

  template <SplitScheme scheme>
  void EncodeWords(std::string_view text, Workspace& workspace, std::vector<TokenId>& ids) const;
  std::span<const TokenId> EncodeUncached(std::string_view word, Workspace& workspace) const;
};

std::shared_ptr<const BpeTokenizer> BpeTokenizer::Create(BpeVocabulary vocabulary) {
  CheckSizes(vocabulary);
  if (vocabulary.unknown) {
    vocabulary.is_control[CheckedIndex(vocabulary, *vocabulary.unknown, "the unknown token")] =
        true;
  }
  auto tables = std::make_unique<Tables>();
  tables->vocabulary = std::move(vocabulary);
  tables->text_tokens = TextTokens(tables->vocabulary);
  tables->byte_tokens = ByteTokens(tables->vocabulary, tables->text_tokens);
  tables->merges = BuildMerges(tables->vocabulary, tables->text_tokens);
  tables->hash = HashOf(tables->vocabulary);
  tables->vocabulary.merges = {};
  return std::shared_ptr<const BpeTokenizer>(new BpeTokenizer(std::move(tables)));
}

BpeTokenizer::BpeTokenizer(std::unique_ptr<const Tables> tables) : tables_(std::move(tables)) {}
BpeTokenizer::~BpeTokenizer() = default;

/// The ids of `word`, in workspace.word.
std::span<const TokenId> BpeTokenizer::Tables::EncodeUncached(std::string_view word,
                                                              Workspace& workspace) const {
  workspace.word.clear();
  if (const auto cached = workspace.cache.FindLong(word); !cached.empty()) {
    workspace.word.assign(cached.begin(), cached.end());
    return workspace.word;
  }
  if (vocabulary.ignore_merges) {
    if (const auto whole = text_tokens.find(word); whole != text_tokens.end()) {
      workspace.word.push_back(whole->second);
      return workspace.word;
    }
  }
  for (const char c : word) workspace.word.push_back(byte_tokens[static_cast<unsigned char>(c)]);
  merges.Apply(workspace.word, workspace.merge);
  if (!WordCache::FitsShort(word.size(), workspace.word.size())) {
    workspace.cache.AddLong(word, workspace.word);
  }
  return workspace.word;
}

template <SplitScheme scheme>
void BpeTokenizer::Tables::EncodeWords(std::string_view text, Workspace& workspace,
                                       std::vector<TokenId>& ids) const {
  const char* const end = text.data() + text.size();
  const splitter::Splitter<scheme> splitter(end);
  IdSink sink(workspace, ids);
  for (const char* p = text.data(); p < end;) {
    const char* const word_end = splitter.WordEnd(p);
    const std::string_view word(p, static_cast<std::size_t>(word_end - p));
    if (word.size() <= WordCache::kMaxShortBytes) [[likely]] {
      const auto key = WordCache::MakeShortKey(p, word.size(), static_cast<std::size_t>(end - p));
      WordCache::ShortEntry& place = workspace.cache.ShortPlace(key);
      if (place.key == key) [[likely]] {
        sink.AppendShort(place);
      } else {
        sink.Append(EncodeUncached(word, workspace));
        place.Fill(key, workspace.word);
      }
    } else {
      sink.Append(EncodeUncached(word, workspace));
    }
    p = word_end;
  }
  sink.Flush();
}

std::optional<std::size_t> BpeTokenizer::Encode(std::string_view text, std::vector<TokenId>& ids,
                                                std::size_t* unknown_bytes) const {
  if (const auto invalid = base::FirstInvalidUtf8(text)) return invalid;
  const BpeVocabulary& vocabulary = tables_->vocabulary;
  std::string normalised;
  if (vocabulary.nfc && !QuickCheckNfc(text)) {
    normalised = ToNfc(text);
    text = normalised;
  }
  const std::size_t first = ids.size();
  std::unique_ptr<Workspace> workspace = tables_->workspaces.Take();
  switch (vocabulary.scheme) {
    case SplitScheme::kGpt2:
      tables_->EncodeWords<SplitScheme::kGpt2>(text, *workspace, ids);
      break;
    case SplitScheme::kSmolLm:
      tables_->EncodeWords<SplitScheme::kSmolLm>(text, *workspace, ids);
      break;
    case SplitScheme::kLlama3:
      tables_->EncodeWords<SplitScheme::kLlama3>(text, *workspace, ids);
      break;
    case SplitScheme::kQwen2:
      tables_->EncodeWords<SplitScheme::kQwen2>(text, *workspace, ids);
      break;
  }
  tables_->workspaces.Return(std::move(workspace));
  if (unknown_bytes != nullptr && vocabulary.unknown) {
    *unknown_bytes += static_cast<std::size_t>(std::count(
        ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(), *vocabulary.unknown));
  }
  return std::nullopt;
}

std::string BpeTokenizer::Decode(const std::vector<TokenId>& ids) const {
  std::string text;
  for (const TokenId id : ids) {
    QUAIL_CHECK(id.value() >= 0 && static_cast<std::size_t>(id.value()) < vocabulary_size());
    text += tables_->vocabulary.tokens[static_cast<std::size_t>(id.value())];
  }
  return text;
}

std::optional<TokenId> BpeTokenizer::Find(std::string_view bytes) const {
  std::vector<TokenId> ids;
  if (Encode(bytes, ids) || ids.size() != 1) return std::nullopt;
  if (tables_->vocabulary.tokens[static_cast<std::size_t>(ids.front().value())] != bytes) {
    return std::nullopt;
  }
  return ids.front();
}

std::optional<TokenId> BpeTokenizer::FindControl(std::string_view name) const {
  const BpeVocabulary& vocabulary = tables_->vocabulary;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.is_control[i] && vocabulary.tokens[i] == name) {
      return TokenId(static_cast<std::int32_t>(i));
    }
  }
  return std::nullopt;
}

std::size_t BpeTokenizer::vocabulary_size() const { return tables_->vocabulary.tokens.size(); }

const base::Hash128& BpeTokenizer::hash() const { return tables_->hash; }

}  // namespace quail::text
