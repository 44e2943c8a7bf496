#include "exec/unasked_lookups.h"

#include <gtest/gtest.h>

#include "exec/lookup_functions.h"
#include "quail/error.h"
#include "test_paths.h"

namespace quail::exec {
namespace {

/// Texts 'yes', 'no', 'unasked' and NULL; the first two have verdicts.
class UnaskedLookupsTest : public testing::Test {
 protected:
  UnaskedLookupsTest() : connection_(relational::OpenDuckDb(Options())) {
    lookups_.texts = &texts_;
    RegisterLookups(*connection_, lookups_);
    relational::QueryText(*connection_,
                          "CREATE TEMP TABLE t AS SELECT k, quail_text_id(body) AS id FROM (VALUES "
                          "(1, 'yes'), (2, 'no'), (3, 'unasked'), (4, NULL)) AS v(k, body)");
    plan::Call call;
    call.id = plan::CallId(0);
    call.function = "AI_FILTER";
    call.prompt = "{0}";
    call.arguments.push_back({plan::RelationId(0), "id", "body"});
    call.position = TextPosition{5, 1, 6};
    plan_.calls.push_back(call);
    call.id = plan::CallId(1);
    call.kind = plan::CallKind::kProbability;
    call.function = "AI_PROB";
    plan_.calls.push_back(call);
    verdicts_ = std::make_unique<StatementVerdicts>(plan_);
    Set("yes", Verdict::kTrue, 1);
    Set("no", Verdict::kFalse, -1);
    lookups_.verdicts = verdicts_.get();
  }

  static relational::DuckDbOptions Options() {
    relational::DuckDbOptions options;
    options.library_path = std::string(QUAIL_DEPS_DIR) + "/duckdb/libduckdb.so";
    return options;
  }

  void Set(std::string_view text, Verdict verdict, float margin) {
    TextId id{0};
    texts_.Intern(std::span(&text, 1), std::span(&id, 1));
    verdicts_->table(0).Set(std::span(&id, 1), verdict, margin, "");
  }

  /// The error's message, "" where there is none, after the rows of a query were read.
  std::string FaultOf(const std::string& sql) {
    lookups_.unasked.Restart();
    plan_.repeatable_sql = sql;
    relational::QueryText(*connection_, sql);
    try {
      CheckUnasked(*connection_, lookups_, plan_);
    } catch (const Error& error) {
      EXPECT_EQ(error.position()->offset, 5U);
      return error.what();
    }
    return "";
  }

  text::TextStore texts_;
  LookupSource lookups_;
  std::unique_ptr<relational::Connection> connection_;
  plan::PhysicalPlan plan_;
  std::unique_ptr<StatementVerdicts> verdicts_;
};

TEST_F(UnaskedLookupsTest, RowsThatDependOnAVerdictThatIsNotThereAreAFault) {
  for (const char* sql :
       {"SELECT k FROM t WHERE quail_verdict(0, id)",
        "SELECT k FROM t WHERE NOT quail_verdict(0, id)",
        "SELECT CASE WHEN quail_verdict(0, id) THEN 1 ELSE 2 END FROM t",
        "SELECT count(*) FROM t WHERE quail_verdict(0, id) IS NULL",
        "SELECT quail_probability(1, id) FROM t", "SELECT 1, 1, quail_verdict(0, id) FROM t"}) {
    EXPECT_TRUE(FaultOf(sql).starts_with("internal error: the result depends on answers of AI_"))
        << sql;
  }
}

TEST_F(UnaskedLookupsTest, LookupsOnWhichNothingDependsAreNone) {
  for (const char* sql : {"SELECT k FROM t WHERE k < 3 AND quail_verdict(0, id)",
                          "SELECT k > 2 OR quail_verdict(0, id) FROM t",
                          "SELECT max(k) FROM t WHERE quail_verdict(0, id) OR k = 4",
                          "SELECT quail_verdict(0, id) FROM t WHERE k <> 3"}) {
    EXPECT_EQ(FaultOf(sql), "") << sql;
  }
}

TEST_F(UnaskedLookupsTest, RowsThatChangeFromRunToRunTellNothing) {
  EXPECT_EQ(FaultOf("SELECT random(), quail_verdict(0, id) FROM t"), "");
}

TEST_F(UnaskedLookupsTest, AStandInThatLeadsToAnErrorIsNoFault) {
  EXPECT_EQ(FaultOf("SELECT k > 2 OR CASE WHEN quail_verdict(0, id) AND k > 2 "
                    "THEN CAST(error('no') AS BOOLEAN) END FROM t"),
            "");
}

TEST_F(UnaskedLookupsTest, IsToldBeforeAnEffect) {
  lookups_.unasked.Restart();
  plan_.repeatable_sql = "SELECT k FROM t WHERE quail_verdict(0, id)";
  EXPECT_THROW(CheckUnaskedBefore(*connection_, lookups_, plan_), Error);
  plan_.repeatable_sql = "SELECT k FROM t WHERE k < 3 AND quail_verdict(0, id)";
  EXPECT_NO_THROW(CheckUnaskedBefore(*connection_, lookups_, plan_));
}

TEST_F(UnaskedLookupsTest, TheEngineKeepsItsThreads) {
  const auto threads = [&] {
    return relational::QueryText(*connection_, "SELECT current_setting('threads')").at(0).at(0);
  };
  const auto before = threads();
  FaultOf("SELECT quail_verdict(0, id) FROM t");
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace quail::exec
