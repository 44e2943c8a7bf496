#include "quailb/lengths.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quailb/random.h"
#include "quailb/streams.h"

namespace quail::quailb {
namespace {

double LogNormal(const CounterRandom& random, std::uint64_t row, double median, double sigma) {
  return median * std::exp(sigma * random.Normal(row));
}

/// 88 in 100 reports are full texts, the others abstracts.
double ReportLength(const CounterRandom& random, std::uint64_t row) {
  if (random.Unit(row, 8) < 0.12) return LogNormal(random, row, 320, 0.35);
  return std::max(600.0, LogNormal(random, row, 4000, 0.50));
}

/// 1 + a negative binomial of mean 3.77 (three geometric numbers), spread over its unit interval so
/// that scaling does not move all equal lengths at once.
double TermLength(const CounterRandom& random, std::uint64_t row) {
  constexpr double kMean = 3.77;
  const double stop = 1 / (1 + kMean / 3);
  double length = 1;
  for (std::uint64_t i = 0; i < 3; ++i) {
    length += std::floor(std::log(random.Unit(row, i)) / std::log(1 - stop));
  }
  return length + random.Unit(row, 3) - 0.5;
}

double RawLength(Table table, const CounterRandom& random, std::uint64_t row) {
  switch (table) {
    case Table::kReviews:
      return LogNormal(random, row, 222, 0.72);
    case Table::kAspects:
      return 2 + (row % 4 == 3 ? 1 : 0);
    case Table::kReports:
      return ReportLength(random, row);
    case Table::kTerms:
      return TermLength(random, row);
    case Table::kClaims:
      return 11.66 + 3.5 * random.Normal(row);
    case Table::kEvidence:
      return LogNormal(random, row, 300, 0.85);
    case Table::kContexts:
      return LogNormal(random, row, 175, 0.58);
    case Table::kPassages:
      return LogNormal(random, row, 48, 0.65);
    case Table::kTraces:
      break;
  }
  QUAIL_CHECK_MSG(false, "the traces' lengths come from their trajectories");
}

LengthTarget TargetOf(Table table) {
  const std::uint32_t rows = RowsOf(table, Scale::k01);
  switch (table) {
    case Table::kReviews:
      return {rows, 1'494'232, 12, 3000};
    case Table::kAspects:
      return {rows, 27, 1, 4};
    case Table::kReports:
      return {rows, 2'031'845, 100, 24000};
    case Table::kTerms:
      return {rows, 5'371, 1, 16};
    case Table::kClaims:
      return {rows, 5'831, 5, 30};
    case Table::kEvidence:
      return {rows, 125'851, 30, 3000};
    case Table::kContexts:
      return {rows, 103'947, 12, 3000};
    case Table::kPassages:
      return {rows, 25'621, 4, 1000};
    case Table::kTraces:
      break;
  }
  QUAIL_CHECK_MSG(false, "the traces' lengths come from their trajectories");
}

std::uint32_t Scaled(double raw, double factor, const LengthTarget& target) {
  return static_cast<std::uint32_t>(std::lround(std::clamp(raw * factor, target.low, target.high)));
}

}  // namespace

double Bisect(double low, double high, double target,
              const std::function<double(double)>& function) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (function(middle) > target ? high : low) = middle;
  }
  return low;
}

std::vector<std::uint32_t> Calibrate(std::span<const double> raw, const LengthTarget& target) {
  QUAIL_CHECK(raw.size() >= target.rows);
  const auto total = [&](double factor) {
    std::uint64_t sum = 0;
    for (const double length : raw.first(target.rows)) sum += Scaled(length, factor, target);
    return static_cast<double>(sum);
  };
  const double factor = Bisect(0.1, 10, static_cast<double>(target.total), total);
  std::vector<std::uint32_t> lengths;
  lengths.reserve(raw.size());
  for (const double length : raw) lengths.push_back(Scaled(length, factor, target));
  // What rounding leaves: one token more for some rows.
  auto missing = target.total - static_cast<std::uint64_t>(total(factor));
  for (std::size_t row = 0; missing > 0; ++row) {
    QUAIL_CHECK_MSG(row < target.rows, "the length model is far from its total");
    if (lengths[row] + 1 > target.high) continue;
    ++lengths[row];
    --missing;
  }
  return lengths;
}

std::vector<std::uint32_t> DocumentLengths(Table table, std::uint64_t seed, std::uint32_t rows) {
  const CounterRandom random = LengthStream(table, seed);
  std::vector<double> raw;
  raw.reserve(rows);
  for (std::uint32_t row = 0; row < rows; ++row) raw.push_back(RawLength(table, random, row));
  return Calibrate(raw, TargetOf(table));
}

}  // namespace quail::quailb
