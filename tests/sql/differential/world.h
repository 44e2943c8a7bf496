#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace quail::test {

/// Random numbers that are the same everywhere: the engine's bits, reduced by hand.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 .. n - 1
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// Tables of a few rows with NULLs and duplicates, and a truth table over their texts.
struct World {
  std::vector<std::string> tables;  ///< names; each has (id, k, n INTEGER, x, y VARCHAR), id unique
  std::vector<std::string> setup;   ///< statements that make them
  std::string oracle;               ///< JSON lines
  bool row_ids = true;              ///< queries may name them

  static World Random(Dice& dice);
};

/// Templates that the oracle knows, by their number of arguments (1, 2 or 3).
const std::vector<std::string>& Templates(std::size_t arguments);

}  // namespace quail::test
