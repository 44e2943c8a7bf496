#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quail::quailb {

/// The tables of QUAIL-B, in the order in which they are written.
enum class Table : std::uint8_t {
  kReviews,
  kAspects,
  kReports,
  kTerms,
  kClaims,
  kEvidence,
  kContexts,
  kPassages,
  kTraces,
};
inline constexpr std::size_t kTableCount = 9;

enum class Scale : std::uint8_t { k001, k01, k05, k1 };

/// "0.01", "0.1", "0.5", "1.0" (or "1"). Throws Error{kUsage}.
Scale ReadScale(std::string_view text);
std::string_view ScaleName(Scale scale);

struct TableInfo {
  std::string_view name;
  std::string_view text_column;         ///< the TOKENS column
  std::array<std::uint32_t, 4> rows{};  ///< by scale
};
const TableInfo& InfoOf(Table table);
inline std::uint32_t RowsOf(Table table, Scale scale) {
  return InfoOf(table).rows[static_cast<std::size_t>(scale)];
}

/// A question of the suite: a filter over one table, or a join of an anchor and a partner.
struct Question {
  std::string_view name;
  std::string_view text;     ///< the template, as the queries have it
  std::uint32_t tokens = 0;  ///< of a filter's tail (answer cue included) or of a join's frame
  Table document{};          ///< the filtered table, or the anchor's
  Table partner{};           ///< equal to `document` for a filter
  bool is_filter() const { return document == partner; }
};
std::span<const Question> Questions();
/// Throws Error{kUsage} for an unknown name.
const Question& FindQuestion(std::string_view name);

/// Lengths of the prompt's other pieces in tokens ("plain" layout).
inline constexpr std::uint32_t kPreambleTokens = 2;
inline constexpr std::uint32_t kLabelTokens = 6;
inline constexpr std::uint32_t kCueTokens = 4;
/// Leading ids that all filter tails have in common.
inline constexpr std::uint32_t kSharedTailTokens = 18;

/// Where the label that opens a join's partner stands, and what a row pays for its preamble.
///
///   own        preamble, document | tail          preamble, anchor, frame, label | partner, cue
///   published  document, preamble | tail          anchor, preamble, frame | partner, label, cue
///
/// The published engine computes the preamble with every row and the label with every pair. Its
/// order of the ids would let a forest share both, so they stand behind the document and the
/// partner here: the same lengths, and just the work that is published.
enum class PromptLayout : std::uint8_t { kPublished, kOwn };

/// One FROM item of a query and its filters.
struct QueryTable {
  Table table{};
  std::vector<std::string_view> filters;
};
/// One AI join of a query between FROM items, by their numbers.
struct QueryJoin {
  std::string_view question;
  std::size_t anchor = 0;
  std::size_t partner = 0;
  bool same_page = false;  ///< restricted by claims.evidence_wiki_url = evidence.id
};
/// What a query asks: the shape of queries/NAME.sql.
struct Query {
  std::string_view name;
  std::vector<QueryTable> tables;
  std::vector<QueryJoin> joins;  ///< in the order in which they are written
};
std::span<const Query> Queries();
/// Throws Error{kUsage} for an unknown name, with the known ones.
const Query& FindQuery(std::string_view name);

/// Pass rate of each question, as the planner is told it.
using Hints = std::map<std::string, double, std::less<>>;
/// Reads hints.json. Throws Error{kCorrupt}.
Hints ReadHints(std::string_view json);

}  // namespace quail::quailb
