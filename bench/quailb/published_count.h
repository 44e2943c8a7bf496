#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "quailb/answers.h"
#include "quailb/catalogue.h"
#include "quailb/corpus.h"

namespace quail::quailb {

/// The suite's tables and prompts as token ids, complete.
struct SuiteData {
  std::array<std::vector<std::vector<std::int32_t>>, kTableCount> documents;
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> page_of_claim;

  const std::vector<std::vector<std::int32_t>>& documents_of(Table table) const {
    return documents[static_cast<std::size_t>(table)];
  }
};
/// All rows of the corpus's scale; about 4 bytes a token.
SuiteData MakeSuiteData(const Corpus& corpus);

struct TokenCount {
  std::uint64_t calls = 0;
  std::uint64_t pairs = 0;
  std::uint64_t requested = 0;  ///< full prompts of all calls
  std::uint64_t fresh = 0;      ///< distinct prefixes, see CountTokens
  std::uint64_t unshared = 0;   ///< the same with each document in full
};

/// Counts the tokens of a query from the tables alone, without planner and engine, by the published
/// accounting: each FROM item is a scan of its own; a document is computed once (distinct prefixes
/// among the scan's documents, the preamble for each row); filters are asked in the order of least
/// expected tokens under `hints`, later ones reuse the ids that their tail shares with an earlier
/// one; joins are asked in the order in which they are written, over the rows that are left on both
/// sides, an anchor's frame once and the partner for each pair; a row is left after a join when it
/// has a TRUE partner.
TokenCount CountTokens(const Query& query, const SuiteData& data, const Answers& answers,
                       const Hints& hints, PromptLayout layout);

/// Distinct prefixes of some documents, which is the number of nodes of their trie.
std::uint64_t CountDistinctPrefixes(const std::vector<std::vector<std::int32_t>>& documents,
                                    const std::vector<bool>& rows);

}  // namespace quail::quailb
