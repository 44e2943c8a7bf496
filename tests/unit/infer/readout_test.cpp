#include "infer/readout.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace quail::infer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Readout, MarginIsBestTrueMinusBestFalse) {
  const std::vector<float> logits = {1.0F, 3.0F, -2.0F, 2.5F, 0.0F};
  EXPECT_EQ(TrueFalseMargin(logits, 2), 0.5F);
  EXPECT_EQ(TrueFalseMargin(logits, 1), -2.0F);
}

TEST(Readout, Case32AnyLogitThatIsNotFiniteIsNoMargin) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<float> logits = {1.0F, 3.0F, -2.0F};
      logits[i] = bad;
      EXPECT_EQ(TrueFalseMargin(logits, 1), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace quail::infer
