#include "text/text_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/hash128.h"
#include "base/prefetch.h"
#include "quail/error.h"
#include "text/arena.h"

namespace quail::text {
namespace {

/// Stand-ins for the pointer to a text's tokens; never dereferenced except kNoTokens, whose count
/// is 0.
constexpr std::array<TokenId, 3> kMarks{};
constexpr const TokenId* kPending = nullptr;
constexpr const TokenId* kNoTokens = &kMarks[0];
constexpr const TokenId* kInvalid = &kMarks[1];
constexpr const TokenId* kClaimed = &kMarks[2];  ///< one thread is tokenising it

/// 24 bytes a text.
struct Record {
  const char* text = nullptr;  ///< nullptr: a token list
  std::atomic<const TokenId*> tokens{kPending};
  std::uint32_t text_size = 0;
  std::uint32_t token_count = 0;  ///< or, where tokens == kInvalid, the offset of the bad byte
};
static_assert(sizeof(Record) == 24);

/// Records by id. Grows by blocks that double, so that a record never moves and reading needs no
/// lock.
class RecordTable {
 public:
  ~RecordTable() {
    for (std::atomic<Record*>& block : blocks_) ::operator delete(block.load());
  }

  /// A fresh record; `id` receives its number.
  Record& Append(std::uint32_t& id) {
    const std::uint64_t next = size_.fetch_add(1, std::memory_order_relaxed);
    if (next >= std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorCode::kOutOfMemory, "more than 4,294,967,295 distinct texts in one session");
    }
    id = static_cast<std::uint32_t>(next);
    return *new (Address(id, true)) Record;
  }

  Record& operator[](TextId id) {
    QUAIL_CHECK_LT(id.value(), size());
    return *Address(id.value(), false);
  }

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kFirstBlock = 1024;

  Record* Address(std::uint32_t id, bool allocate) {
    const std::uint64_t shifted = std::uint64_t{id} + kFirstBlock;
    const auto block =
        static_cast<std::size_t>(std::bit_width(shifted) - std::bit_width(kFirstBlock));
    const std::uint64_t block_size = kFirstBlock << block;
    Record* records = blocks_[block].load(std::memory_order_acquire);
    if (records == nullptr) {
      QUAIL_CHECK(allocate);
      records = AllocateBlock(block, block_size);
    }
    return records + (shifted - block_size);
  }

  Record* AllocateBlock(std::size_t block, std::uint64_t block_size) {
    const std::lock_guard lock(grow_);
    Record* records = blocks_[block].load(std::memory_order_acquire);
    if (records == nullptr) {
      records = static_cast<Record*>(::operator new(block_size * sizeof(Record)));
      blocks_[block].store(records, std::memory_order_release);
    }
    return records;
  }

  std::array<std::atomic<Record*>, 23> blocks_{};
  std::atomic<std::uint64_t> size_{0};
  std::mutex grow_;
};

/// One part of the hash table. A slot is (32 bits of the hash, id + 1): 8 bytes, at most 3/4 of
/// them in use; the bits also place the slot, so growing needs no text.
struct alignas(64) Shard {
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id_plus_one = 0;
  };

  std::mutex mutex;
  std::vector<Slot> slots = std::vector<Slot>(16);
  /// What Fetch reads without the lock: a place that is no longer right costs nothing but time.
  std::atomic<const Slot*> first_slot{slots.data()};
  std::atomic<std::size_t> slot_mask{slots.size() - 1};
  std::size_t used = 0;
  Arena<char> texts;
  Arena<TokenId> tokens;

  /// The slot of the first entry with `tag` for which `equal(id)`, or the free slot where it
  /// belongs.
  template <typename Equal>
  Slot& Find(std::uint32_t tag, const Equal& equal) {
    const std::size_t mask = slots.size() - 1;
    for (std::size_t i = tag & mask;; i = (i + 1) & mask) {
      Slot& slot = slots[i];
      if (slot.id_plus_one == 0) return slot;
      if (slot.tag == tag && equal(TextId(slot.id_plus_one - 1))) return slot;
    }
  }

  /// Has the slot where a search begins brought to the cache.
  void Fetch(std::uint32_t tag) const {
    const std::size_t mask = slot_mask.load(std::memory_order_relaxed);
    __builtin_prefetch(first_slot.load(std::memory_order_relaxed) + (tag & mask));
  }

  void GrowIfFull() {
    if (used * 4 < slots.size() * 3) return;
    std::vector<Slot> old(slots.size() * 2);
    old.swap(slots);
    for (const Slot& slot : old) {
      if (slot.id_plus_one != 0) Find(slot.tag, [](TextId) { return false; }) = slot;
    }
    first_slot.store(slots.data(), std::memory_order_relaxed);
    slot_mask.store(slots.size() - 1, std::memory_order_relaxed);
  }
};

constexpr std::size_t kShards = 64;
constexpr std::uint64_t kTokenListSeed = 1;

/// Texts of one parallel task, so that the cost of handing out tasks stays small beside that of
/// short texts.
constexpr std::size_t kBatchBytes = std::size_t{1} << 16;
constexpr std::size_t kBatchTexts = 512;

std::uint32_t CheckedSize(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("a text of {} bytes: at most 4 GiB", size));
  }
  return static_cast<std::uint32_t>(size);
}

}  // namespace

struct TextStore::State {
  std::array<Shard, kShards> shards;
  RecordTable records;
  std::atomic<std::size_t> unknown_bytes{0};

  TextId Intern(std::string_view text, const base::Hash128& hash);
  template <typename Equal, typename Fill>
  TextId InternHashed(const base::Hash128& hash, const Equal& equal, const Fill& fill) {
    Shard& shard = shards[hash.high % kShards];
    const auto tag = static_cast<std::uint32_t>(hash.low);
    const std::lock_guard lock(shard.mutex);
    shard.GrowIfFull();
    Shard::Slot& slot = shard.Find(tag, [&](TextId id) { return equal(records[id]); });
    if (slot.id_plus_one == 0) {
      std::uint32_t id = 0;
      fill(records.Append(id), shard);
      slot = {tag, id + 1};
      ++shard.used;
    }
    return TextId(slot.id_plus_one - 1);
  }

  void TokenizeBatch(std::span<const TextId> ids, const BpeTokenizer& tokenizer,
                     const base::CancelFlag* cancel);
  std::vector<std::size_t> BatchStarts(std::span<const TextId> ids);
};

TextStore::TextStore() : state_(std::make_unique<State>()) {}
TextStore::~TextStore() = default;

TextId TextStore::State::Intern(std::string_view text, const base::Hash128& hash) {
  const std::uint32_t size = CheckedSize(text.size());
  const auto equal = [&](const Record& record) {
    return record.text != nullptr && std::string_view(record.text, record.text_size) == text;
  };
  const auto fill = [&](Record& record, Shard& shard) {
    record.text = size == 0 ? "" : shard.texts.Copy(text);
    record.text_size = size;
  };
  return InternHashed(hash, equal, fill);
}

TextId TextStore::Intern(std::string_view text) {
  return state_->Intern(text, base::HashBytes(text));
}

void TextStore::Intern(std::span<const std::string_view> texts, std::span<TextId> ids) {
  constexpr std::size_t kAhead = 32;
  std::array<base::Hash128, kAhead> hashes;
  for (std::size_t begin = 0; begin < texts.size(); begin += kAhead) {
    const auto some = texts.subspan(begin, std::min(kAhead, texts.size() - begin));
    for (std::size_t i = 0; i < some.size(); ++i) {
      hashes[i] = base::HashBytes(some[i]);
      state_->shards[hashes[i].high % kShards].Fetch(static_cast<std::uint32_t>(hashes[i].low));
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      ids[begin + i] = state_->Intern(some[i], hashes[i]);
    }
  }
}

TextId TextStore::InternTokens(std::span<const TokenId> tokens) {
  const std::uint32_t count = CheckedSize(tokens.size());
  const auto equal = [&](const Record& record) {
    if (record.text != nullptr) return false;
    const TokenId* held = record.tokens.load(std::memory_order_relaxed);
    return std::ranges::equal(std::span(held, record.token_count), tokens);
  };
  const auto fill = [&](Record& record, Shard& shard) {
    record.token_count = count;
    record.tokens.store(count == 0 ? kNoTokens : shard.tokens.Copy(tokens),
                        std::memory_order_release);
  };
  return state_->InternHashed(base::HashBytes(std::as_bytes(tokens), kTokenListSeed), equal, fill);
}

std::size_t TextStore::size() const { return state_->records.size(); }

std::string_view TextStore::text(TextId id) const {
  const Record& record = state_->records[id];
  return {record.text, record.text_size};
}

bool TextStore::is_token_list(TextId id) const { return state_->records[id].text == nullptr; }

TextStatus TextStore::status(TextId id) const {
  const TokenId* tokens = state_->records[id].tokens.load(std::memory_order_acquire);
  if (tokens == kPending || tokens == kClaimed) return TextStatus::kPending;
  return tokens == kInvalid ? TextStatus::kInvalidUtf8 : TextStatus::kReady;
}

std::size_t TextStore::bad_offset(TextId id) const {
  QUAIL_CHECK(status(id) == TextStatus::kInvalidUtf8);
  return state_->records[id].token_count;
}

std::span<const TokenId> TextStore::tokens(TextId id) const {
  QUAIL_CHECK(status(id) == TextStatus::kReady);
  const Record& record = state_->records[id];
  return {record.tokens.load(std::memory_order_acquire), record.token_count};
}

void TextStore::Prefetch(TextId id) const {
  if (status(id) != TextStatus::kReady) return;
  const std::span<const TokenId> list = tokens(id);
  base::Prefetch(list.data(), list.size_bytes());
}

std::size_t TextStore::unknown_bytes() const {
  return state_->unknown_bytes.load(std::memory_order_relaxed);
}

void TextStore::Tokenize(std::span<const TextId> ids, const BpeTokenizer& tokenizer,
                         base::ThreadPool& pool, const base::CancelFlag* cancel) {
  const std::vector<std::size_t> starts = state_->BatchStarts(ids);
  pool.ForEach(starts.size() - 1, [&](std::size_t batch) {
    state_->TokenizeBatch(ids.subspan(starts[batch], starts[batch + 1] - starts[batch]), tokenizer,
                          cancel);
  });
}

std::vector<std::size_t> TextStore::State::BatchStarts(std::span<const TextId> ids) {
  std::vector<std::size_t> starts{0};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Record& record = records[ids[i]];
    if (record.tokens.load(std::memory_order_relaxed) == kPending) bytes += record.text_size;
    if (bytes >= kBatchBytes || i + 1 - starts.back() >= kBatchTexts) {
      starts.push_back(i + 1);
      bytes = 0;
    }
  }
  if (starts.back() != ids.size()) starts.push_back(ids.size());
  return starts;
}

void TextStore::State::TokenizeBatch(std::span<const TextId> ids, const BpeTokenizer& tokenizer,
                                     const base::CancelFlag* cancel) {
  std::vector<TokenId> buffer;
  std::size_t unknown = 0;
  for (const TextId id : ids) {
    if (cancel != nullptr && cancel->cancelled()) break;
    Record& record = records[id];
    const TokenId* expected = kPending;
    if (!record.tokens.compare_exchange_strong(expected, kClaimed)) continue;
    const TokenId* outcome = kNoTokens;
    try {
      buffer.clear();
      const auto bad = tokenizer.Encode({record.text, record.text_size}, buffer, &unknown);
      record.token_count =
          bad ? static_cast<std::uint32_t>(*bad) : static_cast<std::uint32_t>(buffer.size());
      if (bad) {
        outcome = kInvalid;
      } else if (!buffer.empty()) {
        Shard& shard = shards[id.value() % kShards];
        const std::lock_guard lock(shard.mutex);
        outcome = shard.tokens.Copy(buffer);
      }
    } catch (...) {
      record.tokens.store(kPending, std::memory_order_release);
      throw;
    }
    record.tokens.store(outcome, std::memory_order_release);
  }
  unknown_bytes.fetch_add(unknown, std::memory_order_relaxed);
}

}  // namespace quail::text
