#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_index.h"
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

  void Add(infer::SourceId source, std::uint64_t tag, std::uint64_t answers) {
    place_of_.Put(source.value(), static_cast<std::uint32_t>(open_.size()));
    open_.push_back({source, tag, answers});
  }
  /// An answer of `source` has come: its tag, nothing if the source is not open.
  std::optional<std::uint64_t> Answered(infer::SourceId source) {
    const std::uint32_t place = place_of_.Find(source.value());
    if (place == base::FlatIndex::kNone) return std::nullopt;
    const std::uint64_t tag = open_[place].tag;
    if (--open_[place].waiting == 0) Close(place);
    return tag;
  }
  void clear() {
    open_.clear();
    place_of_.clear();
  }

 private:
  void Close(std::uint32_t place) {
    place_of_.Erase(open_[place].source.value());
    if (place + std::size_t{1} < open_.size()) {
      open_[place] = open_.back();
      place_of_.Put(open_[place].source.value(), place);
    }
    open_.pop_back();
  }

  std::vector<Open> open_;
  base::FlatIndex place_of_;  ///< by source
};

}  // namespace quail::exec
