#include "quailb/traces.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "quailb/catalogue.h"
#include "quailb/lengths.h"
#include "quailb/random.h"
#include "quailb/streams.h"

namespace quail::quailb {
namespace {

constexpr std::uint32_t kTrajectories = 376;  // at scale 0.1
constexpr std::uint64_t kTotal = 17'252'669;
constexpr std::uint64_t kDistinct = 5'366'517;
constexpr std::uint32_t kMaxSteps = 10;
constexpr std::uint32_t kMaxLength = 24'000;

/// A run of an agent: its length and how it grows from snapshot to snapshot.
struct Trajectory {
  std::uint32_t begin = 0;    ///< head and issue: tokens before the first turn
  std::uint32_t length = 0;   ///< of the last snapshot
  std::vector<double> grown;  ///< share of the rest that each snapshot has, the last 1
};

std::uint32_t DrawSteps(const CounterRandom& random, std::uint32_t trajectory) {
  std::uint32_t steps = 1;
  for (std::uint32_t i = 1; i < kMaxSteps; ++i) {
    steps += random.Unit(trajectory, 100 + i) < 0.412 ? 1 : 0;
  }
  return steps;
}

/// Snapshots of each trajectory; the first ones together those of scale 0.1.
std::vector<std::uint32_t> MakeSteps(const CounterRandom& random, std::uint32_t rows) {
  std::vector<std::uint32_t> steps;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < kTrajectories; ++i) sum += steps.emplace_back(DrawSteps(random, i));
  const std::uint32_t wanted = RowsOf(Table::kTraces, Scale::k01);
  for (std::uint32_t i = 0; sum != wanted; i = (i + 1) % kTrajectories) {
    if (sum < wanted && steps[i] < kMaxSteps) {
      ++steps[i];
      ++sum;
    } else if (sum > wanted && steps[i] > 1) {
      --steps[i];
      --sum;
    }
  }
  while (sum < rows) {
    sum += steps.emplace_back(DrawSteps(random, static_cast<std::uint32_t>(steps.size())));
  }
  return steps;
}

std::vector<double> DrawGrowth(const CounterRandom& random, std::uint32_t trajectory,
                               std::uint32_t steps) {
  std::vector<double> grown;
  double sum = 0;
  for (std::uint32_t i = 0; i < steps; ++i) {
    grown.push_back(sum += std::exp(0.4 * random.Normal(trajectory, 20 + i)));
  }
  for (double& share : grown) share /= sum;
  grown.back() = 1;
  return grown;
}

std::vector<Trajectory> MakeTrajectories(const CounterRandom& random,
                                         std::span<const std::uint32_t> steps) {
  std::vector<double> raw;
  for (std::size_t i = 0; i < steps.size(); ++i) raw.push_back(15'900 + 6'300 * random.Normal(i));
  const auto lengths = Calibrate(
      raw, {kTrajectories, kDistinct + (kTrajectories - 1) * kTraceHeadTokens, 3000, kMaxLength});
  std::vector<Trajectory> all;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const double issue = std::clamp(365 * std::exp(0.4 * random.Normal(i, 1)), 100.0, 900.0);
    all.push_back({kTraceHeadTokens + static_cast<std::uint32_t>(issue), lengths[i],
                   DrawGrowth(random, i, steps[i])});
  }
  return all;
}

std::uint32_t LengthAt(const Trajectory& trajectory, std::size_t step, double bend) {
  const double rest = trajectory.length - trajectory.begin;
  const double grown = std::pow(trajectory.grown[step], bend) * rest;
  return trajectory.begin + static_cast<std::uint32_t>(std::lround(grown));
}

std::vector<Snapshot> SnapshotsOf(std::span<const Trajectory> trajectories, double bend) {
  std::vector<Snapshot> all;
  for (std::uint32_t i = 0; i < trajectories.size(); ++i) {
    const auto steps = static_cast<std::uint32_t>(trajectories[i].grown.size());
    for (std::uint32_t step = 0; step < steps; ++step) {
      all.push_back({i, step, steps, LengthAt(trajectories[i], step, bend)});
    }
  }
  return all;
}

std::uint64_t TotalOf(std::span<const Snapshot> snapshots) {
  std::uint64_t total = 0;
  for (const Snapshot& snapshot : snapshots) total += snapshot.length;
  return total;
}

/// What rounding leaves: one token more for some snapshots that are not the last of theirs.
void AddMissing(std::span<Snapshot> snapshots, std::uint64_t missing) {
  for (std::size_t i = 0; missing > 0; ++i) {
    QUAIL_CHECK_MSG(i + 1 < snapshots.size(), "the growth model is far from its total");
    const bool inner = snapshots[i].step + 1 < snapshots[i].steps;
    if (!inner || snapshots[i].length >= snapshots[i + 1].length) continue;
    ++snapshots[i].length;
    --missing;
  }
}

}  // namespace

std::vector<Snapshot> MakeSnapshots(std::uint64_t seed, std::uint32_t rows) {
  const CounterRandom random = LatentStream(Latent::kTrajectory, seed);
  const std::vector<Trajectory> trajectories = MakeTrajectories(random, MakeSteps(random, rows));
  const auto first = std::span(trajectories).first(kTrajectories);
  // A smaller exponent lets trajectories grow early, so that their snapshots are longer.
  const double inverse_bend = Bisect(0.2, 5, static_cast<double>(kTotal), [&](double inverse) {
    return static_cast<double>(TotalOf(SnapshotsOf(first, 1 / inverse)));
  });
  std::vector<Snapshot> snapshots = SnapshotsOf(trajectories, 1 / inverse_bend);
  const auto calibrated = std::span(snapshots).first(RowsOf(Table::kTraces, Scale::k01));
  AddMissing(calibrated, kTotal - TotalOf(calibrated));
  snapshots.resize(rows);
  return snapshots;
}

}  // namespace quail::quailb
