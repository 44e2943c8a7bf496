#include "quailb/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace quail::quailb {
namespace {

constexpr std::uint64_t kSeed = 7;

std::size_t CountTrue(const std::vector<bool>& values) {
  return static_cast<std::size_t>(std::count(values.begin(), values.end(), true));
}

/// Rows at which all of some filters are TRUE.
std::size_t CountAll(const Answers& answers, std::vector<std::string> names) {
  std::size_t count = 0;
  for (std::size_t row = 0; row < answers.filters.at(names[0]).size(); ++row) {
    count += std::all_of(names.begin(), names.end(),
                         [&](const std::string& name) { return answers.filters.at(name)[row]; });
  }
  return count;
}

std::set<std::uint32_t> Partners(const std::vector<Pair>& pairs) {
  std::set<std::uint32_t> rows;
  for (const Pair& pair : pairs) rows.insert(pair.second);
  return rows;
}

TEST(Flow4b, HasTheMeasuredSurvivors) {
  const Answers flow = PlantFlow4b(MakeCorpus(kSeed, Scale::k01));
  EXPECT_EQ(CountAll(flow, {"F1"}), 4380U);
  EXPECT_EQ(CountAll(flow, {"F4"}), 1361U);
  EXPECT_EQ(CountAll(flow, {"F4", "F5"}), 763U);
  EXPECT_EQ(CountAll(flow, {"F4", "F5", "F1"}), 727U);
  EXPECT_EQ(CountAll(flow, {"F4", "F1"}), 1257U);
  EXPECT_EQ(CountAll(flow, {"SERIOUS"}), 376U);
  EXPECT_EQ(CountAll(flow, {"NEURO"}) + CountAll(flow, {"CARDIO"}), 641U);
  EXPECT_EQ(CountAll(flow, {"F11"}), 361U);
  EXPECT_EQ(CountAll(flow, {"F11", "F12"}), 47U);
  EXPECT_EQ(CountAll(flow, {"F13"}), 171U);
  EXPECT_EQ(CountAll(flow, {"LEP1"}), 356U);
  EXPECT_EQ(CountAll(flow, {"LEP1", "LEP2"}), 150U);
  EXPECT_EQ(CountAll(flow, {"LEPS1"}), 420U);
  EXPECT_EQ(Partners(flow.joins.at("SUPPORTS")).size(), 437U);
  std::set<std::uint32_t> reviews;
  for (const Pair& pair : flow.joins.at("ASPECT")) reviews.insert(pair.first);
  EXPECT_EQ(reviews.size(), 2649U);
}

TEST(Truth, HasTheLabelRates) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k01);
  const Answers truth = PlantTruth(corpus);
  const std::map<std::string, double> rates = {
      {"F1", .801},    {"F4", .244},    {"F5", .571},     {"SERIOUS", .638}, {"NEURO", .448},
      {"CARDIO", .35}, {"F11", .592},   {"F12", .138},    {"F13", .554},     {"LEP1", .028},
      {"LEP2", .458},  {"LEPS1", .811}, {"AGENT1", .322}, {"AGENT2", .303}};
  for (const auto& [name, rate] : rates) {
    const std::vector<bool>& values = truth.filters.at(name);
    EXPECT_NEAR(static_cast<double>(CountTrue(values)) / static_cast<double>(values.size()), rate,
                0.6 / static_cast<double>(values.size()))
        << name;
  }
  EXPECT_EQ(truth.joins.at("ASPECT").size(), 17'700U);
  EXPECT_EQ(truth.joins.at("POSITIVE").size(), 9'660U);
  EXPECT_EQ(truth.joins.at("REACTION").size(), 19'159U);
  EXPECT_EQ(truth.joins.at("SUPPORTS").size(), 316U);
  EXPECT_EQ(truth.joins.at("REFUTES").size(), 474U);
  EXPECT_EQ(truth.joins.at("CITES").size(), 500U);
}

TEST(Truth, IsConsistentAcrossQuestions) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k01);
  const Answers truth = PlantTruth(corpus);
  const auto& discussed = truth.joins.at("ASPECT");
  for (const Pair& pair : truth.joins.at("POSITIVE")) {
    EXPECT_TRUE(std::binary_search(discussed.begin(), discussed.end(), pair));
    EXPECT_TRUE(truth.filters.at("F1")[pair.first]);
  }
  const auto& refutes = truth.joins.at("REFUTES");
  for (const Pair& pair : truth.joins.at("SUPPORTS")) {
    EXPECT_FALSE(std::binary_search(refutes.begin(), refutes.end(), pair));
  }
  EXPECT_EQ(Partners(truth.joins.at("CITES")).size(), 433U);
  // A run that has recovered stays so.
  for (std::size_t row = 1; row < 1772; ++row) {
    if (corpus.snapshots[row].step == 0) continue;
    EXPECT_LE(truth.filters.at("AGENT1")[row - 1], truth.filters.at("AGENT1")[row]);
  }
}

/// Rows of FEV-8: page e1 supports c1 and refutes c2, which page e2 supports; FEV-9 with its
/// filters.
std::uint64_t ChainRows(const Answers& answers, bool filtered) {
  const auto keeps = [&](const Pair& pair) {
    return !filtered ||
           (answers.filters.at("F13")[pair.first] && answers.filters.at("F11")[pair.second]);
  };
  std::map<std::uint32_t, std::uint64_t> claims_of_page;
  std::map<std::uint32_t, std::uint64_t> pages_of_claim;
  for (const Pair& pair : answers.joins.at("SUPPORTS")) {
    if (!keeps(pair)) continue;
    ++claims_of_page[pair.first];
    ++pages_of_claim[pair.second];
  }
  std::uint64_t rows = 0;
  for (const auto& [page, claim] : answers.joins.at("REFUTES")) {
    rows += claims_of_page[page] * pages_of_claim[claim];
  }
  return rows;
}

TEST(Chains, AreBoundedUnderTruthAndExplodeUnderFlow4b) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k01);
  const Answers truth = PlantTruth(corpus);
  EXPECT_GE(ChainRows(truth, false), 11U);
  EXPECT_LE(ChainRows(truth, false), 150U);
  EXPECT_GE(ChainRows(truth, true), 1U);
  EXPECT_GE(ChainRows(PlantFlow4b(corpus), true), 100'000'000U);
}

TEST(Answers, OfASmallerScaleAreAPrefix) {
  const Corpus small = MakeCorpus(kSeed, Scale::k001);
  const Corpus large = MakeCorpus(kSeed, Scale::k05);
  for (const auto plant : {&PlantTruth, &PlantFlow4b}) {
    const Answers few = plant(small);
    const Answers many = plant(large);
    for (const auto& [name, values] : few.filters) {
      EXPECT_EQ(values.size(), small.rows(FindQuestion(name).document));
      EXPECT_TRUE(std::equal(values.begin(), values.end(), many.filters.at(name).begin())) << name;
    }
    for (const auto& [name, pairs] : few.joins) {
      std::vector<Pair> first = many.joins.at(name);
      const Question& question = FindQuestion(name);
      std::erase_if(first, [&](const Pair& pair) {
        return pair.first >= small.rows(question.document) ||
               pair.second >= small.rows(question.partner);
      });
      EXPECT_EQ(pairs, first) << name;
    }
  }
}

}  // namespace
}  // namespace quail::quailb
