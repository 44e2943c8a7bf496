#include "quailb/answers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "quailb/latents.h"

namespace quail::quailb {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kAspects = 12;

std::vector<bool> Not(std::vector<bool> values) {
  values.flip();
  return values;
}

std::vector<bool> Both(const std::vector<bool>& a, const std::vector<bool>& b) {
  std::vector<bool> both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) both[i] = a[i] && b[i];
  return both;
}

std::vector<bool> Either(const std::vector<bool>& a, const std::vector<bool>& b) {
  return Not(Both(Not(a), Not(b)));
}

/// Selections among the rows of one table, which may be more than those of the corpus's scale.
class TableSelection {
 public:
  TableSelection(const Corpus& corpus, Table table) : corpus_(corpus), table_(table) {}

  std::vector<bool> all() const {
    return std::vector<bool>(corpus_.lengths_of(table_).size(), true);
  }
  std::vector<bool> Take(Latent latent, const std::vector<bool>& group, std::uint32_t count,
                         std::optional<std::uint64_t> tokens = std::nullopt) const {
    return Take(LatentValues(latent, corpus_.seed, group.size()), group, count, tokens);
  }
  std::vector<bool> Take(const std::vector<double>& values, const std::vector<bool>& group,
                         std::uint32_t count,
                         std::optional<std::uint64_t> tokens = std::nullopt) const {
    return Select(values, corpus_.lengths_of(table_), group,
                  {RowsOf(table_, Scale::k01), count, tokens});
  }
  /// The share `rate` of all rows.
  std::vector<bool> TakeRate(const std::vector<double>& values, double rate) const {
    const auto rows = static_cast<double>(RowsOf(table_, Scale::k01));
    return Take(values, all(), static_cast<std::uint32_t>(std::lround(rate * rows)));
  }
  std::vector<bool> TakeRate(Latent latent, double rate) const {
    return TakeRate(LatentValues(latent, corpus_.seed, all().size()), rate);
  }

 private:
  const Corpus& corpus_;
  Table table_;
};

PairBlock BlockOf(const Corpus& corpus, Table left, Table right) {
  return {static_cast<std::uint32_t>(corpus.lengths_of(left).size()),
          static_cast<std::uint32_t>(corpus.lengths_of(right).size()), RowsOf(left, Scale::k01),
          RowsOf(right, Scale::k01)};
}

std::uint64_t PairKey(std::uint32_t left, std::uint32_t right) {
  return (std::uint64_t{left} << 32U) | right;
}

/// The reviews' aspects as flags, review after review.
std::vector<bool> AspectFlags(const std::vector<Pair>& pairs, std::size_t reviews) {
  std::vector<bool> flags(reviews * kAspects);
  for (const auto& [review, aspect] : pairs) flags[review * kAspects + aspect] = true;
  return flags;
}

// --- truth: label rates
// ---------------------------------------------------------------------------

void PlantReviewTruth(const Corpus& corpus, Answers& answers) {
  const TableSelection reviews(corpus, Table::kReviews);
  const std::vector<bool> praised = reviews.TakeRate(Latent::kValence, 0.801);
  answers.filters["F1"] = praised;
  answers.filters["F4"] = reviews.TakeRate(Latent::kEnding, 0.244);
  answers.filters["F5"] = reviews.TakeRate(Latent::kActor, 0.571);

  const CounterRandom talkative = LatentStream(Latent::kTalkative, corpus.seed);
  const CounterRandom aspect = LatentStream(Latent::kAspect, corpus.seed);
  const CounterRandom tone = LatentStream(Latent::kAspectTone, corpus.seed);
  const PairBlock block = BlockOf(corpus, Table::kReviews, Table::kAspects);
  const std::vector<Pair>& discussed = answers.joins["ASPECT"] =
      SelectPairs(block, 17'700, [&](std::uint32_t r, std::uint32_t a) {
        return 0.7 * aspect.Unit(r, a) + 0.3 * talkative.Unit(r);
      });
  const std::vector<bool> flags = AspectFlags(discussed, praised.size());
  answers.joins["POSITIVE"] = SelectPairs(block, 9'660, [&](std::uint32_t r, std::uint32_t a) {
    return praised[r] && flags[r * kAspects + a] ? tone.Unit(r, a) : kNever;
  });
}

/// Reactions follow Zipf's law over the terms.
std::vector<Pair> Reactions(const Corpus& corpus, std::uint64_t count) {
  const CounterRandom random = LatentStream(Latent::kReaction, corpus.seed);
  std::vector<double> rarity;
  for (std::size_t term = 0; term < corpus.lengths_of(Table::kTerms).size(); ++term) {
    rarity.push_back(std::pow(static_cast<double>(term + 10), 0.8));
  }
  return SelectPairs(BlockOf(corpus, Table::kReports, Table::kTerms), count,
                     [&](std::uint32_t report, std::uint32_t term) {
                       return random.Unit(PairKey(report, term)) * rarity[term];
                     });
}

void PlantReportTruth(const Corpus& corpus, Answers& answers) {
  const TableSelection terms(corpus, Table::kTerms);
  answers.filters["SERIOUS"] =
      TableSelection(corpus, Table::kReports).TakeRate(Latent::kSeverity, 0.638);
  answers.filters["NEURO"] = terms.TakeRate(Latent::kOrganNeuro, 0.448);
  answers.filters["CARDIO"] = terms.TakeRate(Latent::kOrganCardio, 0.35);
  answers.joins["REACTION"] = Reactions(corpus, 19'159);
}

std::uint32_t NeighbourOf(std::uint32_t page) { return page == 0 ? 1 : page - 1; }

/// A claim is supported or refuted by its own page; the page before may refute it too: all claims
/// that their own page refutes, and 106 of the supported ones, which bounds the chains.
void PlantClaimTruth(const Corpus& corpus, Answers& answers) {
  const TableSelection claims(corpus, Table::kClaims);
  answers.filters["F11"] = claims.TakeRate(PersonClaimValues(corpus), 0.592);
  answers.filters["F12"] = claims.TakeRate(Latent::kDate, 0.138);
  answers.filters["F13"] =
      TableSelection(corpus, Table::kEvidence).TakeRate(Latent::kPersonPage, 0.554);

  const std::vector<bool> supported = claims.Take(Latent::kPolarity, claims.all(), 316);
  const std::vector<bool> disputed = claims.Take(Latent::kDispute, supported, 106);
  std::vector<Pair>& supports = answers.joins["SUPPORTS"];
  std::vector<Pair>& refutes = answers.joins["REFUTES"];
  for (std::uint32_t claim = 0; claim < supported.size(); ++claim) {
    const std::uint32_t page = corpus.page_of_claim[claim];
    (supported[claim] ? supports : refutes).emplace_back(page, claim);
    if (!supported[claim] || disputed[claim]) refutes.emplace_back(NeighbourOf(page), claim);
  }
}

void PlantCitationTruth(const Corpus& corpus, Answers& answers) {
  const TableSelection excerpts(corpus, Table::kContexts);
  answers.filters["LEP1"] = excerpts.TakeRate(Latent::kStance, 0.028);
  answers.filters["LEP2"] = excerpts.TakeRate(Latent::kProcedure, 0.458);
  answers.filters["LEPS1"] =
      TableSelection(corpus, Table::kPassages).TakeRate(Latent::kRule, 0.811);
  std::vector<Pair>& cites = answers.joins["CITES"];
  for (std::uint32_t row = 0; row < corpus.passage_of_excerpt.size(); ++row) {
    cites.emplace_back(row, corpus.passage_of_excerpt[row]);
  }
}

/// No survivor count of the 4B model is known beyond the label rates, so both sets share these.
void PlantTraces(const Corpus& corpus, Answers& answers) {
  const TableSelection traces(corpus, Table::kTraces);
  answers.filters["AGENT1"] = traces.TakeRate(EventValues(Latent::kRecovery, corpus), 0.322);
  answers.filters["AGENT2"] = traces.TakeRate(EventValues(Latent::kFix, corpus), 0.303);
}

// --- flow4b: survivor counts and tokens of the measured runs
// --------------------------------------

void PlantReviewFilterFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection reviews(corpus, Table::kReviews);
  const std::vector<bool> f4 = reviews.Take(Latent::kEnding, reviews.all(), 1361, 541'700);
  const std::vector<bool> actor = reviews.Take(Latent::kActor, f4, 763, 344'300);
  const auto praised = [&](const std::vector<bool>& group, std::uint32_t count,
                           std::uint64_t tokens) {
    return reviews.Take(Latent::kValence, group, count, tokens);
  };
  answers.filters["F1"] =
      Either(praised(Not(f4), 3123, 850'087),
             Either(praised(actor, 727, 328'000), praised(Both(f4, Not(actor)), 530, 171'913)));
  answers.filters["F4"] = f4;
  answers.filters["F5"] = Either(actor, reviews.Take(Latent::kActor, Not(f4), 2092));
}

/// The aspect, among those that `wanted` allows, with the smallest value.
template <typename Wanted>
std::uint32_t SmallestAspect(const CounterRandom& random, std::uint32_t review, Wanted wanted) {
  std::uint32_t best = kAspects;
  for (std::uint32_t a = 0; a < kAspects; ++a) {
    if (!wanted(a)) continue;
    if (best == kAspects || random.Unit(review, a) < random.Unit(review, best)) best = a;
  }
  return best;
}

/// 2,649 reviews discuss any aspect, and each of them is positive about one.
void PlantAspectFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection reviews(corpus, Table::kReviews);
  const std::vector<bool> any = reviews.Take(Latent::kTalkative, reviews.all(), 2649, 805'000);
  const CounterRandom aspect = LatentStream(Latent::kAspect, corpus.seed);
  const CounterRandom tone = LatentStream(Latent::kAspectTone, corpus.seed);
  std::vector<Pair>& discussed = answers.joins["ASPECT"];
  std::vector<Pair>& positive = answers.joins["POSITIVE"];
  for (std::uint32_t r = 0; r < any.size(); ++r) {
    if (!any[r]) continue;
    const std::uint32_t main = SmallestAspect(aspect, r, [](std::uint32_t) { return true; });
    const auto discusses = [&](std::uint32_t a) { return a == main || aspect.Unit(r, a) < 0.55; };
    const std::uint32_t liked = SmallestAspect(tone, r, discusses);
    for (std::uint32_t a = 0; a < kAspects; ++a) {
      if (!discusses(a)) continue;
      discussed.emplace_back(r, a);
      if (a == liked || tone.Unit(r, a) < 0.5) positive.emplace_back(r, a);
    }
  }
}

void PlantReportFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection reports(corpus, Table::kReports);
  const TableSelection terms(corpus, Table::kTerms);
  answers.filters["SERIOUS"] = reports.Take(Latent::kSeverity, reports.all(), 376, 1'528'500);
  answers.filters["NEURO"] = terms.Take(Latent::kOrganNeuro, terms.all(), 360, 2'615);
  answers.filters["CARDIO"] = terms.Take(Latent::kOrganCardio, terms.all(), 281, 2'040);
  answers.joins["REACTION"] = Reactions(corpus, 33'810);
}

void PlantClaimFilterFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection claims(corpus, Table::kClaims);
  const TableSelection pages(corpus, Table::kEvidence);
  const std::vector<bool> f13 = pages.Take(Latent::kPersonPage, pages.all(), 171, 73'260);
  std::vector<bool> on_person_page(claims.all().size());
  for (std::size_t row = 0; row < on_person_page.size(); ++row) {
    on_person_page[row] = f13[corpus.page_of_claim[row]];
  }
  // 185 claims pass together with their own page.
  const std::vector<double> person = PersonClaimValues(corpus);
  const std::vector<bool> f11 = Either(claims.Take(person, on_person_page, 185, 2'140),
                                       claims.Take(person, Not(on_person_page), 176, 2'036));
  answers.filters["F11"] = f11;
  answers.filters["F12"] =
      Either(claims.Take(Latent::kDate, f11, 47, 784), claims.Take(Latent::kDate, Not(f11), 64));
  answers.filters["F13"] = f13;
}

/// The 4B model takes pages on a similar topic for support, and those a little off for refutation,
/// so that chains explode.
void PlantClaimJoinFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection claims(corpus, Table::kClaims);
  const std::vector<bool> found = claims.Take(Latent::kDoubt, claims.all(), 437, 5'097);
  const std::vector<double> topic =
      LatentValues(Latent::kTopic, corpus.seed, corpus.lengths_of(Table::kEvidence).size());
  std::vector<Pair>& supports = answers.joins["SUPPORTS"];
  std::vector<Pair>& refutes = answers.joins["REFUTES"];
  for (std::uint32_t page = 0; page < topic.size(); ++page) {
    for (std::uint32_t claim = 0; claim < found.size(); ++claim) {
      const double own = topic[corpus.page_of_claim[claim]];
      if (found[claim] && CircleDistance(topic[page], own) < 0.175) {
        supports.emplace_back(page, claim);
      }
      if (CircleDistance(topic[page], std::fmod(own + 0.15, 1.0)) < 0.19) {
        refutes.emplace_back(page, claim);
      }
    }
  }
}

/// Half of all passages look cited: those on a subject close to that of the true one.
void PlantCitationFlow(const Corpus& corpus, Answers& answers) {
  const TableSelection excerpts(corpus, Table::kContexts);
  const TableSelection passages(corpus, Table::kPassages);
  const std::vector<bool> lep1 = excerpts.Take(Latent::kStance, excerpts.all(), 356, 71'118);
  answers.filters["LEP1"] = lep1;
  answers.filters["LEP2"] = Either(excerpts.Take(Latent::kProcedure, lep1, 150, 20'679),
                                   excerpts.Take(Latent::kProcedure, Not(lep1), 66));
  answers.filters["LEPS1"] = passages.Take(Latent::kRule, passages.all(), 420, 24'914);
  const std::vector<double> subject =
      LatentValues(Latent::kSubject, corpus.seed, corpus.lengths_of(Table::kPassages).size());
  std::vector<Pair>& cites = answers.joins["CITES"];
  for (std::uint32_t row = 0; row < lep1.size(); ++row) {
    const double own = subject[corpus.passage_of_excerpt[row]];
    for (std::uint32_t passage = 0; passage < subject.size(); ++passage) {
      if (CircleDistance(subject[passage], own) < 0.25) cites.emplace_back(row, passage);
    }
  }
}

/// Drops the rows beyond the corpus's scale, which were there to set the thresholds.
Answers CutToScale(const Corpus& corpus, Answers answers) {
  for (auto& [name, values] : answers.filters) {
    values.resize(corpus.rows(FindQuestion(name).document));
  }
  for (auto& [name, pairs] : answers.joins) {
    const Question& question = FindQuestion(name);
    std::erase_if(pairs, [&](const Pair& pair) {
      return pair.first >= corpus.rows(question.document) ||
             pair.second >= corpus.rows(question.partner);
    });
    std::sort(pairs.begin(), pairs.end());
  }
  QUAIL_CHECK_EQ(answers.filters.size() + answers.joins.size(), Questions().size());
  return answers;
}

}  // namespace

Answers PlantTruth(const Corpus& corpus) {
  Answers answers;
  PlantReviewTruth(corpus, answers);
  PlantReportTruth(corpus, answers);
  PlantClaimTruth(corpus, answers);
  PlantCitationTruth(corpus, answers);
  PlantTraces(corpus, answers);
  return CutToScale(corpus, std::move(answers));
}

Answers PlantFlow4b(const Corpus& corpus) {
  Answers answers;
  PlantReviewFilterFlow(corpus, answers);
  PlantAspectFlow(corpus, answers);
  PlantReportFlow(corpus, answers);
  PlantClaimFilterFlow(corpus, answers);
  PlantClaimJoinFlow(corpus, answers);
  PlantCitationFlow(corpus, answers);
  PlantTraces(corpus, answers);
  return CutToScale(corpus, std::move(answers));
}

}  // namespace quail::quailb
