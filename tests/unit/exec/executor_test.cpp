#include "exec/executor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/function_evaluator.h"
#include "exec/lookup_functions.h"
#include "quail/error.h"
#include "test_paths.h"

namespace quail::exec {
namespace {

using plan::CallId;
using plan::RelationId;

/// A database, planted answers and a plan over relations that the test makes by hand.
class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest()
      : connection_(relational::OpenDuckDb(Options())),
        evaluator_([this](auto prompt, auto arguments) { return Answer(prompt, arguments); },
                   texts_) {
    lookups_.texts = &texts_;
    RegisterLookups(*connection_, lookups_);
  }

  static relational::DuckDbOptions Options() {
    relational::DuckDbOptions options;
    options.library_path = std::string(QUAIL_DEPS_DIR) + "/duckdb/libduckdb.so";
    return options;
  }

  /// TRUE where every argument but the last occurs in the last, or a text holds "yes"; "null" and
  /// "fail" as they say.
  PlantedAnswer Answer(std::string_view prompt, std::span<const std::string_view> arguments) {
    ++evaluations_;
    (arguments.size() == 2 ? last_pair_ : last_single_) = evaluations_;
    if (arguments.size() == 2 && first_pair_ == 0) first_pair_ = evaluations_;
    const auto holds = [&](std::string_view word) {
      return std::ranges::any_of(arguments, [&](std::string_view argument) {
        return argument.find(word) != std::string_view::npos;
      });
    };
    if (holds("null")) return {Verdict::kNull, 0, ""};
    if (holds("fail")) return {Verdict::kError, 0, "planted"};
    bool yes = holds(prompt.starts_with("second") ? "also" : "yes");
    if (arguments.size() == 2) yes = arguments[0].find(arguments[1]) != std::string_view::npos;
    return yes ? PlantedAnswer{Verdict::kTrue, 1, ""} : PlantedAnswer{Verdict::kFalse, -1, ""};
  }

  void AddRelation(const std::string& alias, const std::string& rows) {
    const RelationId id(static_cast<std::uint32_t>(plan_.relations.size()));
    relational::QueryText(*connection_, "CREATE TEMP TABLE " + alias +
                                            " AS SELECT row_number() OVER () AS quail_row, *, "
                                            "quail_text_id(body) AS id_body FROM (VALUES " +
                                            rows + ") AS v(k, body)");
    plan_.relations.push_back({id, alias, alias, "", {"id_body"}});
  }

  CallId AddCall(const std::string& prompt, std::vector<std::uint32_t> relations) {
    plan::Call call;
    call.id = CallId(static_cast<std::uint32_t>(plan_.calls.size()));
    call.function = "AI_FILTER";
    call.prompt = prompt;
    for (const std::uint32_t relation : relations) {
      call.arguments.push_back({RelationId(relation), "id_body", "body"});
    }
    plan_.calls.push_back(call);
    return call.id;
  }

  std::vector<std::string> Run(const std::string& final_sql, bool fail_on_error = false) {
    verdicts_ = std::make_unique<StatementVerdicts>(plan_);
    lookups_.verdicts = verdicts_.get();
    ExecutorOptions options;
    options.fail_on_error = fail_on_error;
    options.cancel = &cancel_;
    options.on_notice = [this](const std::string& notice) { notices_.push_back(notice); };
    executor_ = std::make_unique<Executor>(*connection_, evaluator_, *verdicts_, options);
    executor_->Run(plan_);
    std::vector<std::string> rows;
    for (const auto& row : relational::QueryText(*connection_, final_sql)) {
      std::string line;
      for (const auto& cell : row) {
        if (!line.empty()) line += '|';
        line += cell.value_or("NULL");
      }
      rows.push_back(line);
    }
    return rows;
  }

  const StepCounters& step(std::size_t i) const { return executor_->steps().at(i); }

  using Rows = std::vector<std::string>;
  text::TextStore texts_;
  LookupSource lookups_;
  std::unique_ptr<relational::Connection> connection_;
  FunctionEvaluator evaluator_;
  plan::PhysicalPlan plan_;
  std::unique_ptr<StatementVerdicts> verdicts_;
  std::unique_ptr<Executor> executor_;
  base::CancelFlag cancel_;
  std::vector<std::string> notices_;
  int evaluations_ = 0;
  int last_single_ = 0;  ///< evaluation in which a filter was last asked
  int first_pair_ = 0;
  int last_pair_ = 0;
};

TEST_F(ExecutorTest, FilterJudgesDistinctTextsOnceAndCountsRows) {
  AddRelation("t", "(1,'yes'),(2,'no'),(3,'yes'),(4,NULL),(5,'fail'),(6,'null'),(7,'fail')");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, {}});
  EXPECT_EQ(Run("SELECT k FROM t WHERE quail_verdict(0, id_body) ORDER BY k"), (Rows{"1", "3"}));
  EXPECT_EQ(Run("SELECT k FROM t WHERE NOT quail_verdict(0, id_body) ORDER BY k"), (Rows{"2"}));
  EXPECT_EQ(Run("SELECT k, quail_error(0, id_body) FROM t WHERE quail_verdict(0, id_body) IS NULL "
                "ORDER BY k"),
            (Rows{"4|NULL", "5|planted", "6|NULL", "7|planted"}));
  EXPECT_EQ(step(0).asked, 7U);
  EXPECT_EQ(step(0).distinct, 4U);
  EXPECT_EQ(step(0).null_input, 1U);
  EXPECT_EQ(step(0).yes, 1U);
  EXPECT_EQ(step(0).no, 1U);
  EXPECT_EQ(step(0).null, 1U);
  EXPECT_EQ(step(0).error, 1U);
  EXPECT_EQ(step(0).error_rows.at("planted"), 2U);
  EXPECT_EQ(step(0).rows_out, 2U);
}

TEST_F(ExecutorTest, LaterPredicatesAreAskedOfSurvivorsOnly) {
  AddRelation("t", "(1,'yes also'),(2,'no also'),(3,'yes'),(4,'yes also')");
  plan_.steps.push_back(plan::AskFilterStep{
      RelationId(0), {{AddCall("first {0}", {0}), false}, {AddCall("second {0}", {0}), true}}, {}});
  EXPECT_EQ(
      Run("SELECT k FROM t WHERE quail_verdict(0, id_body) AND NOT quail_verdict(1, id_body)"),
      (Rows{"3"}));
  EXPECT_EQ(step(0).asked, 4U + 3U);
  EXPECT_EQ(step(0).distinct, 3U + 2U);
  EXPECT_EQ(step(0).rows_out, 1U);
}

TEST_F(ExecutorTest, AStepHoldsMorePredicatesThanAByteCounts) {
  AddRelation("t", "(1,'yes'),(2,'no')");
  plan::AskFilterStep filter{RelationId(0), {}, {}};
  for (int i = 0; i < 300; ++i) {
    filter.predicates.push_back({AddCall("number " + std::to_string(i) + " {0}", {0})});
  }
  plan_.steps.push_back(filter);
  EXPECT_EQ(Run("SELECT k FROM t WHERE quail_verdict(299, id_body)"), (Rows{"1"}));
  EXPECT_EQ(step(0).distinct, 301U);
}

TEST_F(ExecutorTest, CrossJoinAsksSurvivorsOfEarlierFilters) {
  AddRelation("a", "(1,'yes x'),(2,'yes w'),(3,'x'),(4,'yes x'),(5,NULL)");
  AddRelation("b", "(1,'x'),(2,'w'),(3,'x'),(4,NULL)");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, 1});
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{AddCall("{0} {1}", {0, 1})}}, ""});
  EXPECT_EQ(Run("SELECT a.k, b.k FROM a, b WHERE quail_verdict(0, a.id_body) AND "
                "quail_verdict(1, a.id_body, b.id_body) ORDER BY ALL"),
            (Rows{"1|1", "1|3", "2|2", "4|1", "4|3"}));
  EXPECT_EQ(step(1).asked, 3U * 4U);
  EXPECT_EQ(step(1).null_input, 3U);
  EXPECT_EQ(step(1).distinct, 4U);
  EXPECT_EQ(step(1).rows_out, 5U);
  EXPECT_EQ(step(1).anchor, "a");
}

TEST_F(ExecutorTest, JoinAsksAnchorsWhileTheirFilterStillRuns) {
  AddRelation("a", "(0,'-')");
  AddRelation("b", "(1,'yes'),(2,'7')");
  relational::QueryText(*connection_,
                        "INSERT INTO a SELECT i, i, 'yes ' || i, quail_text_id('yes ' || i) "
                        "FROM range(1, 40001) r(i)");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, 1});
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{AddCall("{0} {1}", {0, 1})}}, ""});
  Run("SELECT 1");
  EXPECT_LT(first_pair_, last_single_) << "a barrier between filter and join";
  EXPECT_EQ(step(0).rows_out, 40000U);
  EXPECT_EQ(step(1).rows_in, 80000U);
  EXPECT_EQ(step(1).asked, 80000U);
  EXPECT_EQ(step(1).rows_out, 40000U + 13756U);
}

TEST_F(ExecutorTest, AnAnchorGoesFromJoinToJoinWhereItHasAPair) {
  AddRelation("a", "(1,'yes x w'),(2,'yes x'),(3,'x w'),(4,'yes w'),(5,NULL)");
  AddRelation("b", "(1,'x'),(2,'nothing')");
  AddRelation("c", "(1,'w'),(2,'x'),(3,NULL)");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, 1});
  const CallId first = AddCall("{0} {1}", {0, 1});
  plan_.steps.push_back(plan::AskJoinStep{RelationId(0), RelationId(1), {{first}}, ""});
  plan_.steps.push_back(plan::RelationalStep{
      "DELETE FROM a WHERE quail_row NOT IN (SELECT a.quail_row FROM a, b WHERE "
      "quail_verdict(0, a.id_body) AND quail_verdict(1, a.id_body, b.id_body))",
      RelationId(0)});
  const CallId second = AddCall("other {0} {1}", {0, 2});
  plan_.steps.push_back(plan::AskJoinStep{RelationId(0), RelationId(2), {{second}}, ""});
  EXPECT_EQ(Run("SELECT a.k, c.k FROM a, c WHERE quail_verdict(2, a.id_body, c.id_body) "
                "ORDER BY ALL"),
            (Rows{"1|1", "1|2", "2|2"}));
  ASSERT_EQ(executor_->steps().size(), 3U);
  EXPECT_EQ(step(0).rows_out, 3U);
  EXPECT_EQ(step(1).rows_in, 3U * 2U);
  EXPECT_EQ(step(1).asked, 3U * 2U);
  EXPECT_EQ(step(1).rows_out, 2U);
  EXPECT_EQ(step(2).rows_in, 2U * 3U) << "(4) found no pair in the first join";
  EXPECT_EQ(step(2).null_input, 2U);
  EXPECT_EQ(step(2).distinct, 4U);
  EXPECT_EQ(relational::QueryText(*connection_, "SELECT k FROM a ORDER BY k").size(), 2U);
}

TEST_F(ExecutorTest, AJoinWhoseKeysRepeatWaitsForAllItsAnchors) {
  AddRelation("a", "(1,'yes x'),(2,'yes x'),(3,'yes y')");
  AddRelation("b", "(1,'x'),(2,'y')");
  relational::QueryText(*connection_, "ALTER TABLE a ADD COLUMN id_k INTEGER");
  relational::QueryText(*connection_, "UPDATE a SET id_k = quail_text_id('k' || k)");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, 1});
  const CallId first = AddCall("{0} {1}", {0, 1});
  const CallId second = AddCall("other {0} {1}", {0, 1});
  plan_.calls[second.value()].arguments[0].id_column = "id_k";
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{first, false}, {second, true}}, ""});
  EXPECT_EQ(Run("SELECT a.k, b.k FROM a, b WHERE quail_verdict(1, a.id_body, b.id_body) AND NOT "
                "quail_verdict(2, a.id_k, b.id_body) ORDER BY ALL"),
            (Rows{"1|1", "1|2", "2|1", "2|2", "3|2"}));
  EXPECT_EQ(step(1).asked, 6U + 5U);
}

TEST_F(ExecutorTest, AnErrorThatFailsTheQueryIsFoundWhileTheFilterRuns) {
  AddRelation("a", "(1,'fail')");
  AddRelation("b", "(1,'x')");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, 1});
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{AddCall("{0} {1}", {0, 1})}}, ""});
  EXPECT_THROW(Run("SELECT 1", true), Error);
  ASSERT_EQ(executor_->steps().size(), 2U);
  EXPECT_EQ(step(0).error, 1U);
  EXPECT_EQ(step(1).asked, 0U);
}

TEST_F(ExecutorTest, AnchorMayBeTheSecondArgument) {
  AddRelation("a", "(1,'x y'),(2,'y')");
  AddRelation("b", "(1,'x'),(2,'y')");
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(1), RelationId(0), {{AddCall("{0} {1}", {0, 1})}}, ""});
  EXPECT_EQ(Run("SELECT a.k, b.k FROM a, b WHERE quail_verdict(0, a.id_body, b.id_body) "
                "ORDER BY ALL"),
            (Rows{"1|1", "1|2", "2|2"}));
  EXPECT_EQ(verdicts_->question(0).is_anchor, (std::vector<bool>{false, true}));
}

TEST_F(ExecutorTest, PairQueryRestrictsPairsAndLaterStagesSurvivors) {
  AddRelation("a", "(1,'xy'),(1,'x'),(2,'xy')");
  AddRelation("b", "(1,'x'),(1,'y'),(2,'z'),(1,'x')");
  const CallId first = AddCall("{0} {1}", {0, 1});
  const CallId second = AddCall("other {0} {1}", {0, 1});
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0),
                        RelationId(1),
                        {{first, false}, {second, true}},
                        "SELECT a.id_body, b.id_body FROM a JOIN b ON a.k = b.k"});
  EXPECT_TRUE(Run("SELECT 1 FROM a JOIN b USING (k) WHERE quail_verdict(0, a.id_body, b.id_body) "
                  "AND NOT quail_verdict(1, a.id_body, b.id_body)")
                  .empty());
  // (xy x) twice, (xy y), (x x) twice, (x y), (xy z); of these (x y) and (xy z) are dropped.
  EXPECT_EQ(step(0).asked, 7U + 5U);
  EXPECT_EQ(step(0).distinct, 5U + 3U);
}

TEST_F(ExecutorTest, SelfJoinSharesVerdictsOfBothOrdersOnlyWhereTextsAreEqual) {
  AddRelation("a", "(1,'x'),(2,'y'),(3,'x')");
  plan_.relations.push_back({RelationId(1), "b", "a", "", {"id_body"}});
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{AddCall("{0} {1}", {0, 1})}}, ""});
  Run("SELECT 1");
  EXPECT_EQ(step(0).asked, 9U);
  EXPECT_EQ(step(0).distinct, 4U);
}

TEST_F(ExecutorTest, ColumnStepAsksWhatItsDomainSelects) {
  AddRelation("t", "(1,'yes'),(2,'no'),(3,'yes'),(4,NULL)");
  plan_.steps.push_back(
      plan::AskColumnStep{AddCall("{0}", {0}), "SELECT id_body FROM t WHERE k > 1", {}});
  EXPECT_EQ(Run("SELECT k, quail_verdict(0, id_body) FROM t WHERE k > 1 ORDER BY k"),
            (Rows{"2|false", "3|true", "4|NULL"}));
  EXPECT_EQ(step(0).asked, 3U);
  EXPECT_EQ(step(0).null_input, 1U);
  EXPECT_EQ(step(0).distinct, 2U);
}

TEST_F(ExecutorTest, PromptWithoutColumnIsEvaluatedOnce) {
  AddRelation("t", "(1,'a'),(2,'b')");
  plan_.steps.push_back(plan::AskColumnStep{AddCall("Is water yes?", {}), "SELECT 1 FROM t", {}});
  EXPECT_EQ(Run("SELECT k FROM t WHERE NOT quail_verdict(0)").size(), 2U);
  EXPECT_EQ(step(0).asked, 2U);
  EXPECT_EQ(step(0).distinct, 1U);
}

TEST_F(ExecutorTest, SecondCallOfTheSameQuestionAsksNothing) {
  AddRelation("t", "(1,'yes'),(2,'no')");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, {}});
  const CallId probability = AddCall("{0}", {0});
  plan_.calls[probability.value()].kind = plan::CallKind::kProbability;
  plan_.steps.push_back(plan::AskColumnStep{
      probability, "SELECT id_body FROM t WHERE quail_verdict(0, id_body)", {}});
  EXPECT_EQ(Run("SELECT round(quail_probability(1, id_body), 3) FROM t WHERE "
                "quail_verdict(0, id_body)"),
            (Rows{"0.731"}));
  EXPECT_EQ(evaluations_, 2);
  EXPECT_EQ(step(1).asked, 1U);
  EXPECT_EQ(step(1).distinct, 0U);
}

TEST_F(ExecutorTest, LimitStopsAfterTheChunkAndSaysWhatIsLeft) {
  AddRelation("t", "(0,'')");
  relational::QueryText(*connection_,
                        "INSERT INTO t SELECT i, i, 'yes ' || i, quail_text_id('yes ' || i) "
                        "FROM range(1, 50001) r(i)");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, {}, 5});
  EXPECT_EQ(Run("SELECT k FROM t WHERE quail_verdict(0, id_body) LIMIT 5").size(), 5U);
  EXPECT_EQ(step(0).asked, FunctionEvaluator::kChunkAsks);
  EXPECT_EQ(step(0).distinct, FunctionEvaluator::kChunkAsks);
  EXPECT_EQ(notices_, (Rows{"LIMIT 5 was reached: 33617 rows were left unjudged"}));
}

TEST_F(ExecutorTest, LimitStopsAJoin) {
  AddRelation("a", "(0,'-')");
  AddRelation("b", "(0,'-')");
  for (const std::string table : {"a", "b"}) {
    relational::QueryText(*connection_, "INSERT INTO " + table +
                                            " SELECT i, i, 'x' || i, quail_text_id('x' || i) "
                                            "FROM range(1, 200) r(i)");
  }
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{AddCall("{0} {1}", {0, 1})}}, "", {}, 3});
  EXPECT_GE(Run("SELECT 1 FROM a, b WHERE quail_verdict(0, a.id_body, b.id_body)").size(), 3U);
  EXPECT_EQ(step(0).asked, FunctionEvaluator::kChunkAsks);
  EXPECT_EQ(step(0).asked + step(0).unjudged, 40000U);
}

TEST_F(ExecutorTest, ErrorsFailTheQueryWhereAsked) {
  AddRelation("t", "(1,'yes'),(2,'fail'),(3,'no'),(4,'fail')");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, {}});
  EXPECT_THROW(Run("SELECT 1", true), Error);
  plan_.calls[0].options.max_error_ratio = 0.3;
  try {
    Run("SELECT 1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kQuery);
    EXPECT_NE(std::string(error.what()).find("1 of 3"), std::string::npos) << error.what();
  }
  plan_.calls[0].options.max_error_ratio = 0.34;
  EXPECT_NO_THROW(Run("SELECT 1"));
}

TEST_F(ExecutorTest, CancelKeepsCounts) {
  AddRelation("t", "(1,'yes'),(2,'no')");
  plan_.steps.push_back(plan::AskFilterStep{RelationId(0), {{AddCall("{0}", {0})}}, {}});
  plan_.steps.push_back(plan::AskColumnStep{AddCall("b {0}", {0}), "SELECT id_body FROM t", {}});
  cancel_.Cancel();
  EXPECT_THROW(Run("SELECT 1"), Error);
  ASSERT_EQ(executor_->steps().size(), 1U);
  EXPECT_EQ(step(0).asked, 0U);
}

TEST_F(ExecutorTest, JudgesOnceWhereStagesUseDifferentColumns) {
  AddRelation("a", "(1,'x'),(2,'x'),(3,'y')");
  AddRelation("b", "(1,'x'),(2,'y')");
  relational::QueryText(*connection_, "ALTER TABLE a ADD COLUMN id_k INTEGER");
  relational::QueryText(*connection_, "UPDATE a SET id_k = quail_text_id('k' || k)");
  const CallId first = AddCall("{0} {1}", {0, 1});
  const CallId second = AddCall("other {0} {1}", {0, 1});
  plan_.calls[second.value()].arguments[0].id_column = "id_k";
  plan_.steps.push_back(
      plan::AskJoinStep{RelationId(0), RelationId(1), {{first, false}, {second, true}}, ""});
  EXPECT_EQ(Run("SELECT a.k, b.k FROM a, b WHERE quail_verdict(0, a.id_body, b.id_body) AND NOT "
                "quail_verdict(1, a.id_k, b.id_body) ORDER BY ALL"),
            (Rows{"1|1", "2|1", "3|2"}));
  EXPECT_EQ(step(0).asked, 6U + 3U);
  EXPECT_EQ(step(0).distinct, 4U + 3U);
  EXPECT_EQ(step(0).rows_out, 3U);
}

}  // namespace
}  // namespace quail::exec
