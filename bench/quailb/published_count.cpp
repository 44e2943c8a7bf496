#include "quailb/published_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "quail/error.h"

namespace quail::quailb {
namespace {

using Ids = std::vector<std::int32_t>;

std::uint64_t SharedPrefix(const Ids& a, const Ids& b) {
  const std::size_t end = std::min(a.size(), b.size());
  std::size_t shared = 0;
  while (shared < end && a[shared] == b[shared]) ++shared;
  return shared;
}

std::uint64_t CountTrue(const std::vector<bool>& rows) {
  return static_cast<std::uint64_t>(std::count(rows.begin(), rows.end(), true));
}

/// A FROM item while its query is counted.
struct Scan {
  const std::vector<Ids>* documents = nullptr;
  std::vector<bool> left;      ///< rows that no filter or join has rejected
  std::vector<bool> computed;  ///< rows whose document was needed
};

class QueryCounter {
 public:
  QueryCounter(const SuiteData& data, const Answers& answers, const Hints& hints,
               PromptLayout layout)
      : data_(data), answers_(answers), hints_(hints), layout_(layout) {}

  TokenCount Count(const Query& query) {
    for (const QueryTable& table : query.tables) {
      const auto& documents = data_.documents_of(table.table);
      scans_.push_back({&documents, std::vector<bool>(documents.size(), true),
                        std::vector<bool>(documents.size(), false)});
      AskFilters(table.filters, scans_.back());
    }
    for (const QueryJoin& join : query.joins) AskJoin(join);
    for (const Scan& scan : scans_) CountDocuments(scan);
    return count_;
  }

 private:
  const Ids& PieceOf(std::string_view question, std::string_view part) const {
    for (const Piece& piece : data_.pieces) {
      if (piece.question == question && piece.part == part) return piece.ids;
    }
    throw Error(ErrorCode::kCorrupt, fmt::format("no prompt piece '{}' of '{}'", part, question));
  }
  std::uint64_t CommonTokens(std::string_view part) const { return PieceOf("", part).size(); }

  /// Tokens of a tail behind a document whose earlier tails are known.
  std::uint64_t TailTokens(std::string_view question,
                           std::span<const std::string_view> earlier) const {
    const Ids& tail = PieceOf(question, "tail");
    std::uint64_t shared = 0;
    for (const std::string_view other : earlier) {
      shared = std::max(shared, SharedPrefix(tail, PieceOf(other, "tail")));
    }
    return tail.size() - shared;
  }

  double ExpectedTokens(std::span<const std::string_view> order) const {
    double tokens = 0;
    double reaching = 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      tokens += reaching * static_cast<double>(TailTokens(order[i], order.first(i)));
      reaching *= hints_.find(order[i])->second;
    }
    return tokens;
  }

  std::vector<std::string_view> BestOrder(std::vector<std::string_view> filters) const {
    for (const std::string_view filter : filters) {
      if (!hints_.contains(filter)) {
        throw Error(ErrorCode::kUsage, fmt::format("no hint for the filter '{}'", filter));
      }
    }
    std::sort(filters.begin(), filters.end());
    std::vector<std::string_view> best = filters;
    while (std::next_permutation(filters.begin(), filters.end())) {
      if (ExpectedTokens(filters) < ExpectedTokens(best)) best = filters;
    }
    return best;
  }

  void AskFilters(const std::vector<std::string_view>& filters, Scan& scan) {
    const std::vector<std::string_view> order = BestOrder(filters);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint64_t tail = PieceOf(order[i], "tail").size();
      const std::vector<bool>& verdicts = answers_.filters.find(order[i])->second;
      AddFresh(CountTrue(scan.left) * TailTokens(order[i], std::span(order).first(i)));
      for (std::size_t row = 0; row < scan.left.size(); ++row) {
        if (!scan.left[row]) continue;
        ++count_.calls;
        count_.requested += CommonTokens("preamble") + (*scan.documents)[row].size() + tail;
        scan.computed[row] = true;
        scan.left[row] = verdicts[row];
      }
    }
  }

  /// Rows of the partner that an anchor's row is asked with.
  std::vector<bool> PartnersOf(const QueryJoin& join, std::size_t anchor_row) const {
    std::vector<bool> rows = scans_[join.partner].left;
    if (!join.same_page) return rows;
    for (std::size_t claim = 0; claim < rows.size(); ++claim) {
      rows[claim] = rows[claim] && data_.page_of_claim[claim] == anchor_row;
    }
    return rows;
  }

  void AskJoin(const QueryJoin& join) {
    Scan& anchor = scans_[join.anchor];
    const Scan& partner = scans_[join.partner];
    const std::uint64_t frame = PieceOf(join.question, "frame").size();
    for (std::size_t row = 0; row < anchor.left.size(); ++row) {
      if (!anchor.left[row]) continue;
      const std::vector<bool> partners = PartnersOf(join, row);
      std::uint64_t pairs = 0;
      std::uint64_t tokens = 0;
      for (std::size_t other = 0; other < partners.size(); ++other) {
        if (!partners[other]) continue;
        ++pairs;
        tokens += (*partner.documents)[other].size() + CommonTokens("cue");
      }
      if (pairs == 0) continue;
      anchor.computed[row] = true;
      const std::uint64_t label = CommonTokens("label");
      AddFresh(frame + tokens + label * (layout_ == PromptLayout::kPublished ? pairs : 1));
      count_.calls += pairs;
      count_.pairs += pairs;
      const std::uint64_t prefix = CommonTokens("preamble") + (*anchor.documents)[row].size();
      count_.requested += pairs * (prefix + frame + label) + tokens;
    }
    KeepMatched(join);
  }

  void KeepMatched(const QueryJoin& join) {
    Scan& anchor = scans_[join.anchor];
    Scan& partner = scans_[join.partner];
    std::vector<bool> anchors(anchor.left.size());
    std::vector<bool> partners(partner.left.size());
    for (const auto& [a, p] : answers_.joins.find(join.question)->second) {
      if (!anchor.left[a] || !partner.left[p]) continue;
      if (join.same_page && data_.page_of_claim[p] != a) continue;
      anchors[a] = true;
      partners[p] = true;
    }
    anchor.left = std::move(anchors);
    partner.left = std::move(partners);
  }

  void CountDocuments(const Scan& scan) {
    const std::uint64_t rows = CountTrue(scan.computed);
    AddFresh(rows * CommonTokens("preamble"));
    count_.fresh += CountDistinctPrefixes(*scan.documents, scan.computed);
    for (std::size_t row = 0; row < scan.computed.size(); ++row) {
      if (scan.computed[row]) count_.unshared += (*scan.documents)[row].size();
    }
  }

  void AddFresh(std::uint64_t tokens) {
    count_.fresh += tokens;
    count_.unshared += tokens;
  }

  const SuiteData& data_;
  const Answers& answers_;
  const Hints& hints_;
  PromptLayout layout_;
  std::vector<Scan> scans_;
  TokenCount count_;
};

}  // namespace

SuiteData MakeSuiteData(const Corpus& corpus) {
  SuiteData data{{}, PromptPieces(corpus.seed), corpus.page_of_claim};
  data.page_of_claim.resize(corpus.rows(Table::kClaims));
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    for (std::uint32_t row = 0; row < corpus.rows(table); ++row) {
      data.documents[i].push_back(DocumentIds(corpus, table, row));
    }
  }
  return data;
}

std::uint64_t CountDistinctPrefixes(const std::vector<Ids>& documents,
                                    const std::vector<bool>& rows) {
  std::vector<const Ids*> sorted;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row]) sorted.push_back(&documents[row]);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Ids* a, const Ids* b) { return *a < *b; });
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    count += sorted[i]->size() - (i == 0 ? 0 : SharedPrefix(*sorted[i - 1], *sorted[i]));
  }
  return count;
}

TokenCount CountTokens(const Query& query, const SuiteData& data, const Answers& answers,
                       const Hints& hints, PromptLayout layout) {
  return QueryCounter(data, answers, hints, layout).Count(query);
}

}  // namespace quail::quailb
