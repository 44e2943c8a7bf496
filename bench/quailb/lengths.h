#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "quailb/catalogue.h"

namespace quail::quailb {

/// Document lengths of a table in tokens, rows [0, rows): the published distributions, scaled by
/// one factor so that the rows of scale 0.1 have the published total to the token. A row's length
/// is the same at every scale. REQUIRES: rows >= those of scale 0.1; not the traces (traces.h).
std::vector<std::uint32_t> DocumentLengths(Table table, std::uint64_t seed, std::uint32_t rows);

/// What lengths are brought to: the sum of `rows` first ones, each within [low, high].
struct LengthTarget {
  std::uint32_t rows = 0;
  std::uint64_t total = 0;
  double low = 1;
  double high = 0;
};
/// Scales `raw` lengths by one factor and rounds; the first `target.rows` sum up to the target.
std::vector<std::uint32_t> Calibrate(std::span<const double> raw, const LengthTarget& target);

/// The x in [low, high] at which a rising function reaches `target`, to 60 halvings.
double Bisect(double low, double high, double target,
              const std::function<double(double)>& function);

}  // namespace quail::quailb
