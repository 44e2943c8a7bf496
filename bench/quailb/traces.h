#pragma once

#include <cstdint>
#include <vector>

namespace quail::quailb {

/// Ids with which every trace begins.
inline constexpr std::uint32_t kTraceHeadTokens = 1200;

/// A row of agent_traces: the first `length` tokens of its trajectory.
struct Snapshot {
  std::uint32_t trajectory = 0;
  std::uint32_t step = 0;   ///< 0 is the snapshot after 5 turns
  std::uint32_t steps = 0;  ///< snapshots of the whole trajectory, 1 to 10
  std::uint32_t length = 0;
};

/// Rows [0, rows) of agent_traces, trajectory after trajectory; each row is a literal prefix of the
/// next one of its trajectory. The rows of scale 0.1 are 376 whole trajectories with 17,252,669
/// tokens, of which 5,366,517 are distinct prefixes. REQUIRES: rows >= those of scale 0.1.
std::vector<Snapshot> MakeSnapshots(std::uint64_t seed, std::uint32_t rows);

}  // namespace quail::quailb
