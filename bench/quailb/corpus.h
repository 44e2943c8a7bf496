#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "quailb/catalogue.h"
#include "quailb/traces.h"

namespace quail::quailb {

/// Token ids of documents and prompts: [kFirstId, kFirstId + kIdCount), which every model of the
/// suite has in its vocabulary (SmolLM2's is the smallest, 49,152).
inline constexpr std::int32_t kFirstId = 1024;
inline constexpr std::int32_t kIdCount = 48'128;

/// The documents of a scale, as numbers: lengths and links, from which each row's ids follow.
struct Corpus {
  std::uint64_t seed = 0;
  Scale scale = Scale::k01;
  /// Tokens of each row. At least the rows of scale 0.1, at which the suite's totals hold.
  std::array<std::vector<std::uint32_t>, kTableCount> lengths;
  std::vector<Snapshot> snapshots;                ///< rows of agent_traces
  std::vector<std::uint32_t> page_of_claim;       ///< claims.evidence_wiki_url
  std::vector<std::uint32_t> passage_of_excerpt;  ///< what the excerpt cites

  const std::vector<std::uint32_t>& lengths_of(Table table) const {
    return lengths[static_cast<std::size_t>(table)];
  }
  std::uint32_t rows(Table table) const { return RowsOf(table, scale); }
};
Corpus MakeCorpus(std::uint64_t seed, Scale scale);

/// The ids of a document. Documents of one table begin with different ids (up to kIdCount rows),
/// but for the traces, which share a head and then are prefixes along their trajectory.
std::vector<std::int32_t> DocumentIds(const Corpus& corpus, Table table, std::uint32_t row);

/// A fixed run of ids of the prompts.
struct Piece {
  std::string question;  ///< of the catalogue; empty: in all prompts
  std::string part;      ///< preamble, tail, frame, label, cue
  std::string text;      ///< the question's template, as the queries have it
  std::vector<std::int32_t> ids;
};
std::vector<Piece> PromptPieces(std::uint64_t seed);

}  // namespace quail::quailb
