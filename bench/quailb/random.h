#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace quail::quailb {

/// Random numbers addressed by place, not by order of drawing: each is a hash of (seed, stream,
/// row, index), so that any row can be made alone (splitmix64's finaliser, Steele et al., "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(Mix(Mix(seed) + stream)) {}

  std::uint64_t Bits(std::uint64_t row, std::uint64_t index = 0) const {
    return Mix(Mix(key_ + row) + index);
  }
  /// In (0, 1).
  double Unit(std::uint64_t row, std::uint64_t index = 0) const {
    return (static_cast<double>(Bits(row, index) >> 11) + 0.5) * 0x1p-53;
  }
  /// Standard normal (Box and Muller).
  double Normal(std::uint64_t row, std::uint64_t index = 0) const {
    const double radius = std::sqrt(-2 * std::log(Unit(row, 2 * index)));
    return radius * std::cos(2 * std::numbers::pi * Unit(row, 2 * index + 1));
  }

 private:
  static std::uint64_t Mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  std::uint64_t key_;
};

}  // namespace quail::quailb
