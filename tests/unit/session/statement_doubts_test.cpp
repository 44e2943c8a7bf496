#include "session/statement_doubts.h"

#include <gtest/gtest.h>

namespace quail::session {
namespace {

TEST(StatementDoubts, Case34EqualScoresOfAllRows) {
  EXPECT_EQ(DoubtOfModel(0), "");
  EXPECT_EQ(DoubtOfModel(3), "");
  EXPECT_NE(DoubtOfModel(20).find("all 20 answers"), std::string::npos);
}

TEST(StatementDoubts, Case58PassesThatKeptKvShrinks) {
  infer::ForestConfig config;
  config.kv_tokens = 1000;
  config.chunk_tokens = 400;
  infer::ForestCounters counters;
  counters.chunk_sizes = {400, 400, 199, 199, 199, 199, 199, 30};
  counters.kv_peak_tokens = 900;
  const std::string doubt = DoubtOfKvRoom(counters, config);
  EXPECT_NE(doubt.find("199 of 400 tokens"), std::string::npos) << doubt;
  counters.kv_peak_tokens = 700;
  EXPECT_EQ(DoubtOfKvRoom(counters, config), "") << "there was room";
  counters.evictions = 1;
  EXPECT_NE(DoubtOfKvRoom(counters, config), "");
  counters.chunk_sizes.back() = 200;
  counters.chunk_sizes[2] = counters.chunk_sizes[3] = 200;
  EXPECT_EQ(DoubtOfKvRoom(counters, config), "");
  counters.chunk_sizes = {1, 1, 1};
  EXPECT_EQ(DoubtOfKvRoom(counters, config), "") << "too few to tell";
}

}  // namespace
}  // namespace quail::session
