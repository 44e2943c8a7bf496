#include "base/check.h"

#include <gtest/gtest.h>

namespace quail::base {
namespace {

TEST(CheckDeathTest, PrintsConditionAndOperands) {
  const int rows = 3;
  EXPECT_DEATH(QUAIL_CHECK(rows == 4), "check_test.cpp:[0-9]+: CHECK failed: rows == 4");
  EXPECT_DEATH(QUAIL_CHECK_LT(rows, 2), "CHECK failed: rows < 2: 3 vs 2");
  EXPECT_DEATH(QUAIL_CHECK_MSG(rows > 5, "only {} rows", rows), "rows > 5: only 3 rows");
}

TEST(CheckTest, EvaluatesOperandsOnce) {
  int calls = 0;
  const auto next = [&calls] { return ++calls; };
  QUAIL_CHECK_EQ(next(), 1);
  QUAIL_CHECK(next() == 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace quail::base
