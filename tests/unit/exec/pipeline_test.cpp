#include "exec/pipeline.h"

#include <gtest/gtest.h>

namespace quail::exec {
namespace {

using plan::CallId;
using plan::RelationId;
using Steps = std::vector<std::size_t>;

/// Plans over relations 0, 1 .. with the columns that a test names.
class PipelineTest : public testing::Test {
 protected:
  struct Read {
    std::uint32_t relation = 0;
    std::string column = "text";
  };

  plan::Predicate Call(const std::vector<Read>& reads) {
    plan::Call call;
    call.id = CallId(static_cast<std::uint32_t>(plan_.calls.size()));
    for (const Read& read : reads) {
      call.arguments.push_back({RelationId(read.relation), read.column, ""});
    }
    plan_.calls.push_back(call);
    return {call.id};
  }
  void Filter(Read read) {
    plan_.steps.push_back(
        plan::AskFilterStep{RelationId(read.relation), {Call({read})}, std::nullopt});
  }
  void Join(Read anchor, Read partner, const std::string& pairs_sql = "") {
    plan_.steps.push_back(plan::AskJoinStep{RelationId(anchor.relation),
                                            RelationId(partner.relation),
                                            {Call({anchor, partner})},
                                            pairs_sql});
  }
  void Keep(std::uint32_t relation) {
    plan_.steps.push_back(plan::RelationalStep{"DELETE", RelationId(relation)});
  }

  plan::PhysicalPlan plan_;
};

TEST_F(PipelineTest, FilterAndTheJoinsOfItsRelationRunAtOnce) {
  Filter({0});
  Join({0}, {1});
  Keep(0);
  Join({0}, {2});
  Keep(0);
  const Pipeline pipeline = PipelineAt(plan_, 0);
  EXPECT_EQ(pipeline.asking, (Steps{0, 1, 3}));
  EXPECT_EQ(pipeline.relational, (Steps{2}));
  EXPECT_EQ(pipeline.end, 4U);
  EXPECT_EQ(PipelineAt(plan_, 4).relational, (Steps{4}));
}

TEST_F(PipelineTest, AnotherRelationsStepIsAlone) {
  Filter({0});
  Filter({1});
  Join({0}, {1});
  EXPECT_EQ(PipelineAt(plan_, 0).asking, (Steps{0}));
  EXPECT_EQ(PipelineAt(plan_, 1).asking, (Steps{1})) << "a partner's filter ends before the join";
  EXPECT_EQ(PipelineAt(plan_, 2).asking, (Steps{2}));
}

TEST_F(PipelineTest, ColumnsThatTheAnchorsHaveNotEndIt) {
  Filter({0, "title"});
  Join({0, "text"}, {1});
  EXPECT_EQ(PipelineAt(plan_, 0).asking, (Steps{0}));
}

TEST_F(PipelineTest, PairsThatSqlSelectsEndIt) {
  Filter({0});
  Join({0}, {1}, "SELECT 1, 2");
  Join({0}, {2});
  EXPECT_EQ(PipelineAt(plan_, 0).asking, (Steps{0}));
  EXPECT_EQ(PipelineAt(plan_, 1).asking, (Steps{1}));
}

TEST_F(PipelineTest, APartnerThatAnEarlierJoinReducesEndsIt) {
  Join({0}, {1});
  Keep(0);
  Keep(1);
  Join({0}, {1, "title"});
  EXPECT_EQ(PipelineAt(plan_, 0).asking, (Steps{0})) << "unmatched partners must go first";
}

TEST_F(PipelineTest, SqlThatMayReadTheVerdictsEndsIt) {
  Filter({0});
  plan_.steps.push_back(plan::RelationalStep{"DELETE FROM a WHERE quail_verdict(0, id)"});
  Join({0}, {1});
  EXPECT_EQ(PipelineAt(plan_, 0).asking, (Steps{0}));
}

}  // namespace
}  // namespace quail::exec
