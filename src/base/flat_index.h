#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quail::base {

/// A map from 64-bit keys to 32-bit ids below 2^32 - 1: open addressing, linear probing, deletion
/// by backward shift (Knuth, TAOCP 3, 6.4, algorithm R). 12 bytes an entry, 15 to 30 a key.
class FlatIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  std::size_t size() const { return size_; }

  std::uint32_t Find(std::uint64_t key) const {
    if (entries_.empty()) return kNone;
    for (std::size_t at = Home(key);; at = (at + 1) & mask()) {
      if (entries_[at].value == kNone) return kNone;
      if (entries_[at].key() == key) return entries_[at].value;
    }
  }

  /// Inserts or replaces.
  void Put(std::uint64_t key, std::uint32_t value) {
    if (5 * (size_ + 1) > 4 * entries_.size()) Grow();
    std::size_t at = Home(key);
    while (entries_[at].value != kNone && entries_[at].key() != key) at = (at + 1) & mask();
    size_ += entries_[at].value == kNone ? 1 : 0;
    entries_[at] = Entry(key, value);
  }

  void Erase(std::uint64_t key) {
    if (entries_.empty()) return;
    std::size_t hole = Home(key);
    while (entries_[hole].value != kNone && entries_[hole].key() != key) hole = (hole + 1) & mask();
    if (entries_[hole].value == kNone) return;
    --size_;
    for (std::size_t at = (hole + 1) & mask(); entries_[at].value != kNone;
         at = (at + 1) & mask()) {
      const std::size_t distance = (at - Home(entries_[at].key())) & mask();
      if (distance < ((at - hole) & mask())) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].value = kNone;
  }

  void clear() {
    entries_.clear();
    size_ = 0;
  }

 private:
  /// The key in halves, so that nothing is padded.
  struct Entry {
    Entry() = default;
    Entry(std::uint64_t key, std::uint32_t id)
        : low(static_cast<std::uint32_t>(key)),
          high(static_cast<std::uint32_t>(key >> 32)),
          value(id) {}
    std::uint64_t key() const { return (std::uint64_t{high} << 32) | low; }

    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t value = kNone;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t Home(std::uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(key >> 20) & mask();
  }
  void Grow() {
    std::vector<Entry> old(entries_.empty() ? 16 : 2 * entries_.size());
    old.swap(entries_);
    size_ = 0;
    for (const Entry& entry : old) {
      if (entry.value != kNone) Put(entry.key(), entry.value);
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace quail::base
