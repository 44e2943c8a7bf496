#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace quail::base {

/// An integer id that does not mix with ids of other kinds. `Tag` is any type; `Rep` the stored
/// integer.
template <typename Tag, typename Rep>
class StrongId {
 public:
  using rep = Rep;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Rep value_ = 0;
};

/// A row of a model's vocabulary.
using TokenId = StrongId<struct TokenIdTag, std::int32_t>;
/// A distinct text (or token list) of a session; dense from 0.
using TextId = StrongId<struct TextIdTag, std::uint32_t>;

}  // namespace quail::base

template <typename Tag, typename Rep>
struct std::hash<quail::base::StrongId<Tag, Rep>> {
  std::size_t operator()(const quail::base::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
