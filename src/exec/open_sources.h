#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "infer/prompt_forest.h"

namespace quail::exec {

/// Where the answers of sources go that are not all answered.
class OpenSources {
 public:
  struct Open {
    infer::SourceId source;
    std::uint64_t tag = 0;
    std::uint64_t waiting = 0;  ///< answers
  };

  std::size_t size() const { return open_.size(); }
  std::span<const Open> all() const { return open_; }

  /// REQUIRES: a later source than all before it (the forest numbers them as they are added).
  void Add(infer::SourceId source, std::uint64_t tag, std::uint64_t answers) {
    if (places_.empty()) first_ = source.value();
    QUAIL_CHECK_GE(source.value(), first_ + places_.size());
    places_.resize(source.value() - first_, kClosed);
    places_.push_back(static_cast<std::uint32_t>(open_.size()));
    open_.push_back({source, tag, answers});
  }
  /// An answer of `source` has come: its tag, nothing if the source is not open.
  std::optional<std::uint64_t> Answered(infer::SourceId source) {
    const std::size_t at = source.value() - first_;
    if (source.value() < first_ || at >= places_.size() || places_[at] == kClosed) {
      return std::nullopt;
    }
    Open& open = open_[places_[at]];
    const std::uint64_t tag = open.tag;
    if (--open.waiting == 0) Close(at);
    return tag;
  }
  void clear() {
    open_.clear();
    places_.clear();
  }

 private:
  static constexpr std::uint32_t kClosed = 0xFFFFFFFFU;

  void Close(std::size_t at) {
    const std::uint32_t place = std::exchange(places_[at], kClosed);
    open_[place] = open_.back();
    if (place + std::size_t{1} < open_.size())
      places_[open_[place].source.value() - first_] = place;
    open_.pop_back();
    for (; !places_.empty() && places_.front() == kClosed; ++first_) places_.pop_front();
  }

  std::vector<Open> open_;
  std::uint64_t first_ = 0;           ///< source of the first place
  std::deque<std::uint32_t> places_;  ///< in `open_`, from the first open source to the last
};

}  // namespace quail::exec
