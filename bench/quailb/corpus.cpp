#include "quailb/corpus.h"

#include <algorithm>

#include "base/check.h"
#include "quailb/lengths.h"
#include "quailb/random.h"
#include "quailb/streams.h"

namespace quail::quailb {
namespace {

std::int32_t IdOf(std::uint64_t bits) {
  return kFirstId + static_cast<std::int32_t>(bits % kIdCount);
}

/// A different id for each of kIdCount numbers. The factor has no divisor in common with kIdCount.
std::int32_t DistinctId(std::uint64_t number) { return IdOf(number * 25'173 + 4'711); }

/// For each row of one table a row of another that is smaller, so that at every scale the first
/// rows link only to rows that are there. Each linked row is met first in its order, at an even
/// pace.
std::vector<std::uint32_t> MakeLinks(Table from, Table to, const CounterRandom& random,
                                     std::uint32_t rows) {
  std::vector<std::uint32_t> links;
  std::uint64_t from_begin = 0;
  std::uint64_t to_begin = 0;
  for (std::size_t scale = 0; scale < 4; ++scale) {
    const std::uint64_t from_end = InfoOf(from).rows[scale];
    const std::uint64_t to_end = InfoOf(to).rows[scale];
    const auto met = [&](std::uint64_t row) {
      return to_begin + (row - from_begin) * (to_end - to_begin) / (from_end - from_begin);
    };
    for (std::uint64_t row = from_begin; row < from_end; ++row) {
      const bool meets = met(row + 1) > met(row);
      const std::uint64_t any = met(row) == 0 ? 0 : random.Bits(row) % met(row);
      links.push_back(static_cast<std::uint32_t>(meets ? met(row) : any));
    }
    from_begin = from_end;
    to_begin = to_end;
  }
  links.resize(rows);
  return links;
}

std::vector<std::int32_t> TraceIds(const Corpus& corpus, std::uint32_t row) {
  const CounterRandom random = TokenStream(Table::kTraces, corpus.seed);
  const Snapshot& snapshot = corpus.snapshots[row];
  // Stream row 0 is the common head, row i + 1 the rest of trajectory i.
  std::vector<std::int32_t> ids(snapshot.length);
  for (std::uint32_t i = 0; i < snapshot.length; ++i) {
    ids[i] = IdOf(random.Bits(i < kTraceHeadTokens ? 0 : snapshot.trajectory + 1U, i));
  }
  ids[kTraceHeadTokens] = DistinctId(snapshot.trajectory);
  return ids;
}

std::vector<std::int32_t> TailIds(const CounterRandom& random, std::size_t question,
                                  std::uint32_t tokens, std::span<const std::int32_t> cue) {
  std::vector<std::int32_t> ids(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) {
    ids[i] = IdOf(random.Bits(i < kSharedTailTokens ? 0 : question + 1, i));
  }
  ids[kSharedTailTokens] = DistinctId(question);
  QUAIL_CHECK(tokens > kSharedTailTokens + cue.size());
  std::copy(cue.begin(), cue.end(), ids.end() - static_cast<std::ptrdiff_t>(cue.size()));
  return ids;
}

std::vector<std::int32_t> PieceIds(const CounterRandom& random, std::uint64_t number,
                                   std::uint32_t tokens) {
  std::vector<std::int32_t> ids(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) ids[i] = IdOf(random.Bits(1000 + number, i));
  ids[0] = DistinctId(1000 + number);
  return ids;
}

}  // namespace

Corpus MakeCorpus(std::uint64_t seed, Scale scale) {
  Corpus corpus{seed, scale, {}, {}, {}, {}};
  const auto made_rows = [&](Table table) {
    return std::max(RowsOf(table, scale), RowsOf(table, Scale::k01));
  };
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    if (table == Table::kTraces) continue;
    corpus.lengths[i] = DocumentLengths(table, seed, made_rows(table));
  }
  corpus.snapshots = MakeSnapshots(seed, made_rows(Table::kTraces));
  for (const Snapshot& snapshot : corpus.snapshots) {
    corpus.lengths[static_cast<std::size_t>(Table::kTraces)].push_back(snapshot.length);
  }
  corpus.page_of_claim = MakeLinks(Table::kClaims, Table::kEvidence,
                                   LatentStream(Latent::kPage, seed), made_rows(Table::kClaims));
  corpus.passage_of_excerpt =
      MakeLinks(Table::kContexts, Table::kPassages, LatentStream(Latent::kCited, seed),
                made_rows(Table::kContexts));
  return corpus;
}

std::vector<std::int32_t> DocumentIds(const Corpus& corpus, Table table, std::uint32_t row) {
  if (table == Table::kTraces) return TraceIds(corpus, row);
  const CounterRandom random = TokenStream(table, corpus.seed);
  std::vector<std::int32_t> ids(corpus.lengths_of(table)[row]);
  for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = IdOf(random.Bits(row, i));
  ids[0] = DistinctId(row);
  return ids;
}

std::vector<Piece> PromptPieces(std::uint64_t seed) {
  const CounterRandom random = LatentStream(Latent::kPrompt, seed);
  std::vector<Piece> pieces = {{"", "preamble", "", PieceIds(random, 0, kPreambleTokens)},
                               {"", "label", "", PieceIds(random, 1, kLabelTokens)},
                               {"", "cue", "", PieceIds(random, 2, kCueTokens)}};
  const std::vector<std::int32_t> cue = pieces.back().ids;
  for (std::size_t i = 0; i < Questions().size(); ++i) {
    const Question& question = Questions()[i];
    Piece piece{std::string(question.name),
                question.is_filter() ? "tail" : "frame",
                std::string(question.text),
                {}};
    piece.ids = question.is_filter() ? TailIds(random, i, question.tokens, cue)
                                     : PieceIds(random, 3 + i, question.tokens);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace quail::quailb
