#include "optimizer/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "optimizer/verify.h"

namespace quail::optimizer {
namespace {

using plan::AskColumnStep;
using plan::AskFilterStep;
using plan::AskJoinStep;
using plan::CallId;
using plan::LogicalPlan;
using plan::PhysicalPlan;
using plan::RelationalStep;
using plan::RelationId;

std::shared_ptr<const plan::Guard> Guarded(std::string sql,
                                           std::shared_ptr<const plan::Guard> before = nullptr) {
  return std::make_shared<const plan::Guard>(plan::Guard{std::move(sql), std::move(before)});
}

/// Builds logical plans: relations `r0`, `r1` .. with one text column each.
class PlanBuilder {
 public:
  PlanBuilder& Relation(std::uint64_t rows, double mean_tokens) {
    const auto id = static_cast<std::uint32_t>(plan_.relations.size());
    const std::string name = "r" + std::to_string(id);
    const std::string column = "t" + std::to_string(id);
    plan_.relations.push_back({RelationId(id), name, "m" + std::to_string(id), "", {column}});
    const auto count = static_cast<double>(rows);
    statistics_.push_back({RelationId(id), column, rows, 0, rows, mean_tokens, count * mean_tokens,
                           count * mean_tokens * mean_tokens, 0, false});
    return *this;
  }
  /// A predicate over the relations, in slot order.
  PlanBuilder& Ask(const std::vector<std::uint32_t>& relations,
                   std::optional<double> selectivity = std::nullopt, bool negated = false) {
    const CallId id = AddCall(relations, selectivity);
    plan::AiConjunct conjunct;
    conjunct.sql = "v" + std::to_string(id.value());
    conjunct.calls = {{id, nullptr}};
    for (const std::uint32_t relation : relations) conjunct.relations.emplace_back(relation);
    std::sort(conjunct.relations.begin(), conjunct.relations.end());
    conjunct.is_call = true;
    conjunct.negated = negated;
    plan_.ai_conjuncts.push_back(std::move(conjunct));
    return *this;
  }
  PlanBuilder& Either(std::uint32_t relation) {
    const CallId first = AddCall({relation}, std::nullopt);
    const CallId second = AddCall({relation}, std::nullopt);
    plan_.ai_conjuncts.push_back({"either",
                                  {{first, Guarded("x")}, {second, Guarded("y")}},
                                  {RelationId(relation)},
                                  false,
                                  false});
    return *this;
  }
  /// A term of calls with a guard g0, g1 .. each behind those of all before it.
  PlanBuilder& Chain(const std::vector<std::uint32_t>& relations, std::size_t calls) {
    plan::AiConjunct term{"chain", {}, {relations.begin(), relations.end()}, false, false};
    std::shared_ptr<const plan::Guard> guard;
    for (std::size_t i = 0; i < calls; ++i) {
      term.calls.push_back({AddCall(relations, std::nullopt), guard});
      guard = Guarded(fmt::format("g{}", i), guard);
    }
    plan_.ai_conjuncts.push_back(std::move(term));
    return *this;
  }
  PlanBuilder& Equal(std::uint32_t a, std::uint32_t b) {
    plan_.relational_conjuncts.push_back(
        {"r" + std::to_string(a) + ".k = r" + std::to_string(b) + ".k",
         {RelationId(a), RelationId(b)}});
    return *this;
  }
  plan::Call& LastCall() { return plan_.calls.back(); }
  LogicalPlan& logical() { return plan_; }

  PhysicalPlan Optimize(AnchorRule rule = AnchorRule::kData) const {
    spec::ModelSpec model;
    model.layers = 36;
    model.hidden = 2560;
    model.heads = 32;
    model.kv_heads = 8;
    model.head_dim = 128;
    model.ffn = 9728;
    model.weight_type = spec::WeightType::kFp8Block;
    OptimizerOptions options;
    options.anchor = rule;
    return optimizer::Optimize(plan_, statistics_, model, *spec::FindDevice("H100"), options);
  }

 private:
  CallId AddCall(const std::vector<std::uint32_t>& relations, std::optional<double> selectivity) {
    plan::Call call;
    call.id = CallId(static_cast<std::uint32_t>(plan_.calls.size()));
    call.function = "AI_FILTER";
    call.options.selectivity = selectivity;
    for (const std::uint32_t relation : relations) {
      call.prompt += fmt::format("{{{}}} ok? ", call.arguments.size());
      call.arguments.push_back({RelationId(relation), fmt::format("t{}", relation), "x"});
    }
    plan_.calls.push_back(call);
    return call.id;
  }

  LogicalPlan plan_;
  std::vector<plan::ArgumentStatistics> statistics_;
};

template <typename Step>
const Step& StepAt(const PhysicalPlan& plan, std::size_t index) {
  EXPECT_LT(index, plan.steps.size());
  return std::get<Step>(plan.steps.at(index));
}

TEST(Optimizer, FiltersOfATableAreOneStepByRank) {
  PlanBuilder builder;
  builder.Relation(100, 300).Ask({0}, 0.9).Ask({0}, 0.1).Ask({0}, 0.5, true);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 1U);
  const auto& step = StepAt<AskFilterStep>(plan, 0);
  ASSERT_EQ(step.predicates.size(), 3U);
  EXPECT_EQ(step.predicates[0].call.value(), 1U);
  EXPECT_EQ(step.predicates[1].call.value(), 2U);
  EXPECT_TRUE(step.predicates[1].negated);
  EXPECT_NEAR(plan.estimates[0].selectivity, 0.1 * 0.5 * 0.9, 1e-12);
  EXPECT_NEAR(plan.estimates[0].asks, 100 * (1 + 0.1 + 0.05), 1e-9);
  EXPECT_EQ(plan.estimates[0].selectivity_from, "hint");
}

TEST(Optimizer, TheLongSideIsTheAnchorWhicheverIsWrittenFirst) {
  for (const bool long_first : {true, false}) {
    PlanBuilder builder;
    builder.Relation(50, long_first ? 2000 : 10).Relation(200, long_first ? 10 : 2000).Ask({0, 1});
    const PhysicalPlan plan = builder.Optimize();
    const auto& join = StepAt<AskJoinStep>(plan, 0);
    EXPECT_EQ(join.anchor.value(), long_first ? 0U : 1U);
    EXPECT_TRUE(join.pairs_sql.empty());
    EXPECT_NE(plan.estimates[0].anchor_reason.find("anchor r"), std::string::npos);
  }
}

TEST(Optimizer, TheAnchorFollowsRuleAndOptionButNeverHints) {
  PlanBuilder builder;
  builder.Relation(50, 10).Relation(200, 2000).Ask({0, 1});
  EXPECT_EQ(StepAt<AskJoinStep>(builder.Optimize(AnchorRule::kAsWritten), 0).anchor.value(), 0U);
  for (const double hint : {0.0, 0.01, 1.0}) {
    builder.LastCall().options.selectivity = hint;
    EXPECT_EQ(StepAt<AskJoinStep>(builder.Optimize(), 0).anchor.value(), 1U);
  }
  builder.LastCall().options.anchor = "R0";
  const PhysicalPlan plan = builder.Optimize();
  EXPECT_EQ(StepAt<AskJoinStep>(plan, 0).anchor.value(), 0U);
  EXPECT_EQ(plan.estimates[0].anchor_reason, "option");
}

TEST(Optimizer, PredicatesOfOnePairWithOneAnchorAreStages) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Ask({0, 1}, 0.5).Ask({1, 0}, 0.1);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 1U);
  const auto& join = StepAt<AskJoinStep>(plan, 0);
  ASSERT_EQ(join.stages.size(), 2U);
  EXPECT_EQ(join.stages[0].call.value(), 1U) << "the selective one first";
  EXPECT_NEAR(plan.estimates[0].asks, 10000 + 0.1 * 10000, 1e-6);
}

TEST(Optimizer, AFilteredAnchorFeedsItsJoin) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Ask({0, 1}).Ask({0}, 0.5).Ask({1}, 0.5);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_FALSE(StepAt<AskFilterStep>(plan, 0).feeds);
  EXPECT_EQ(StepAt<AskFilterStep>(plan, 1).relation, RelationId(0)) << "next to its join";
  EXPECT_EQ(StepAt<AskFilterStep>(plan, 1).feeds, 2U);
  EXPECT_NEAR(plan.estimates[2].asks, 50 * 200 * 0.25, 1e-6);
}

TEST(Optimizer, PartnersOfJoinsWithOneAnchorAreFilteredBeforeTheAnchor) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Relation(100, 10).Ask({0, 1}).Ask({0, 2});
  builder.Ask({0}, 0.5).Ask({1}, 0.5).Ask({2}, 0.5);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 6U);
  EXPECT_EQ(StepAt<AskFilterStep>(plan, 0).relation, RelationId(1));
  EXPECT_EQ(StepAt<AskFilterStep>(plan, 1).relation, RelationId(2));
  EXPECT_EQ(StepAt<AskFilterStep>(plan, 2).relation, RelationId(0));
  EXPECT_EQ(StepAt<AskJoinStep>(plan, 3).partner, RelationId(1));
  EXPECT_EQ(StepAt<RelationalStep>(plan, 4).keeps_matched, RelationId(0));
  EXPECT_EQ(StepAt<AskJoinStep>(plan, 5).partner, RelationId(2));
}

TEST(Optimizer, EqualitiesRestrictPairsAndEarlierVerdictsToo) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Equal(0, 1).Ask({0, 1}).Ask({0});
  const PhysicalPlan plan = builder.Optimize();
  EXPECT_EQ(StepAt<AskJoinStep>(plan, 1).pairs_sql,
            "SELECT \"r0\".\"t0\", \"r1\".\"t1\" FROM \"m0\" AS \"r0\", \"m1\" AS \"r1\" WHERE "
            "(r0.k = r1.k) AND (v1)");
}

TEST(Optimizer, PairsLinkedThroughAThirdTable) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Relation(9, 1).Equal(0, 2).Equal(1, 2).Ask({0, 1});
  EXPECT_EQ(StepAt<AskJoinStep>(builder.Optimize(), 0).pairs_sql,
            "SELECT \"r0\".\"t0\", \"r1\".\"t1\" FROM \"m0\" AS \"r0\", \"m1\" AS \"r1\" WHERE "
            "EXISTS (SELECT 1 FROM \"m2\" AS \"r2\" WHERE (r0.k = r2.k) AND (r1.k = r2.k))");
}

TEST(Optimizer, BetweenJoinsUnmatchedRowsAreDropped) {
  PlanBuilder builder;
  builder.Relation(50, 2000).Relation(200, 10).Relation(70, 30).Ask({0, 1}).Ask({1, 2});
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(StepAt<RelationalStep>(plan, 1).sql,
            "DELETE FROM \"m1\" WHERE quail_row NOT IN (SELECT \"r1\".quail_row FROM \"m0\" AS "
            "\"r0\", \"m1\" AS \"r1\" WHERE (v0))");
  StepAt<AskJoinStep>(plan, 2);
}

TEST(Optimizer, ConditionsUnderOrComeAfterThePredicates) {
  PlanBuilder builder;
  builder.Relation(100, 300).Either(0).Ask({0});
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 3U);
  StepAt<AskFilterStep>(plan, 0);
  EXPECT_EQ(StepAt<AskColumnStep>(plan, 1).domain_sql,
            "SELECT \"r0\".\"t0\" FROM \"m0\" AS \"r0\" WHERE (v2) AND (x)");
  EXPECT_EQ(StepAt<AskColumnStep>(plan, 2).domain_sql,
            "SELECT \"r0\".\"t0\" FROM \"m0\" AS \"r0\" WHERE (v2) AND (y)");
}

TEST(Optimizer, ACallInALongChainReadsTheLastGuardsOfIt) {
  PlanBuilder builder;
  builder.Relation(100, 300).Chain({0}, 50);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 53U) << "the open rows are kept three times";
  EXPECT_EQ(StepAt<AskColumnStep>(plan, 16).domain_sql,
            "SELECT \"r0\".\"t0\" FROM \"m0\" AS \"r0\" WHERE (g0 AND g1 AND g2 AND g3 AND g4 AND "
            "g5 AND g6 AND g7 AND g8 AND g9 AND g10 AND g11 AND g12 AND g13 AND g14 AND g15)");
  EXPECT_EQ(
      StepAt<RelationalStep>(plan, 17).sql,
      "CREATE TEMP TABLE \"m0_open_17\" AS SELECT \"r0\".quail_row AS q0 FROM \"m0\" AS \"r0\" "
      "WHERE "
      "(g0 AND g1 AND g2 AND g3 AND g4 AND g5 AND g6 AND g7 AND g8 AND g9 AND g10 AND g11 AND "
      "g12 AND g13 AND g14 AND g15)");
  EXPECT_EQ(StepAt<AskColumnStep>(plan, 18).domain_sql,
            "SELECT \"r0\".\"t0\" FROM \"m0\" AS \"r0\", \"m0_open_17\" WHERE \"r0\".quail_row = "
            "\"m0_open_17\".q0 AND (g16)");
  std::size_t longest = 0;
  for (const plan::Step& step : plan.steps) {
    if (const auto* column = std::get_if<AskColumnStep>(&step)) {
      longest = std::max(longest, column->domain_sql.size());
    }
  }
  EXPECT_LT(longest, 250U);
  EXPECT_EQ(plan.cleanup_sql.size(), 3U);
}

TEST(Optimizer, OpenCombinationsOfRowsAreKeptForALongChainAboutSeveralRelations) {
  PlanBuilder builder;
  builder.Relation(100, 300).Relation(20, 10).Equal(0, 1).Chain({0, 1}, 50);
  const PhysicalPlan plan = builder.Optimize();
  ASSERT_EQ(plan.steps.size(), 53U);
  EXPECT_TRUE(StepAt<RelationalStep>(plan, 17).sql.starts_with(
      "CREATE TEMP TABLE \"m0_open_17\" AS SELECT \"r0\".quail_row AS q0, \"r1\".quail_row AS q1 "
      "FROM \"m0\" AS \"r0\", \"m1\" AS \"r1\" WHERE (r0.k = r1.k) AND (g0 AND g1"))
      << StepAt<RelationalStep>(plan, 17).sql;
  const std::string& domain = StepAt<AskColumnStep>(plan, 18).domain_sql;
  EXPECT_NE(domain.find(" FROM \"m0\" AS \"r0\", \"m1\" AS \"r1\", \"m0_open_17\" WHERE "
                        "\"r0\".quail_row = \"m0_open_17\".q0 AND \"r1\".quail_row = "
                        "\"m0_open_17\".q1 AND (g16)"),
            std::string::npos)
      << domain;
}

TEST(Optimizer, AStepStopsEarlyWhereItDecidesALimitedBlockAlone) {
  PlanBuilder builder;
  builder.Relation(100, 300).Ask({0});
  builder.logical().limits = {{5, {0}}};
  EXPECT_EQ(StepAt<AskFilterStep>(builder.Optimize(), 0).enough, 5U);
  builder.Relation(10, 3).Ask({1});
  const PhysicalPlan two_blocks = builder.Optimize();
  EXPECT_EQ(StepAt<AskFilterStep>(two_blocks, 0).enough, 5U);
  EXPECT_FALSE(StepAt<AskFilterStep>(two_blocks, 1).enough);
  builder.logical().limits = {{5, {0, 1}}};
  const PhysicalPlan one_block = builder.Optimize();
  EXPECT_FALSE(StepAt<AskFilterStep>(one_block, 0).enough);
  EXPECT_FALSE(StepAt<AskFilterStep>(one_block, 1).enough);
}

TEST(Optimizer, WithoutStatisticsOrModelThePlanIsAsWritten) {
  PlanBuilder builder;
  builder.Relation(0, 0).Relation(0, 0).Ask({1, 0}).Ask({0});
  OptimizerOptions options;
  const PhysicalPlan plan = optimizer::Optimize(builder.logical(), {}, spec::ModelSpec{},
                                                spec::UncalibratedCpu(2), options);
  EXPECT_EQ(StepAt<AskJoinStep>(plan, 1).anchor.value(), 1U);
  EXPECT_EQ(plan.estimates[1].predicted_seconds, 0);
}

TEST(OptimizerDeathTest, VerifyFindsALostPredicate) {
  PlanBuilder builder;
  builder.Relation(100, 300).Ask({0}).Ask({0});
  PhysicalPlan plan = builder.Optimize();
  std::get<AskFilterStep>(plan.steps[0]).predicates.pop_back();
  EXPECT_DEATH(Verify(builder.logical(), plan), "predicates");
  plan = builder.Optimize();
  std::get<AskFilterStep>(plan.steps[0]).feeds = 0;
  EXPECT_DEATH(Verify(builder.logical(), plan), "feeds");
}

// Published wrong-anchor ratios are in the hundreds for 2,000-token anchors with short partners.
TEST(CostModel, TheWrongAnchorCostsAMultiple) {
  const spec::ModelSpec model;
  const spec::DeviceSpec device;
  const CostModel cost(model, device,
                       [](std::string_view text) { return static_cast<double>(text.size()) / 4; });
  plan::Call call;
  call.prompt = "{0} mentions {1}?";
  const PromptTokens prompt = cost.PromptOf(call);
  const TextSide documents{500, 4000, 4000.0 * 4000};
  const TextSide terms{1000, 5, 25};
  const double right = cost.Join(documents, terms, 500000, prompt).tokens;
  const double wrong = cost.Join(terms, documents, 500000, prompt).tokens;
  EXPECT_GT(wrong / right, 150);
}

}  // namespace
}  // namespace quail::optimizer
