#include "session/settings.h"

#include <gtest/gtest.h>

#include "quail/error.h"

namespace quail::session {
namespace {

ErrorCode CodeOf(std::string_view name, std::string_view value) {
  Settings settings;
  try {
    settings.Set(name, value);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInterrupted;
}

TEST(Settings, BothVendorsNamesSetOneThing) {
  Settings settings;
  settings.Set("quail_on_error", "FAIL");
  EXPECT_TRUE(settings.fail_on_error);
  settings.Set("ai_sql_error_handling_use_fail_on_error", "false");
  EXPECT_FALSE(settings.fail_on_error);
  settings.Set("ai_sql_error_handling_use_fail_on_error", "TRUE");
  EXPECT_TRUE(settings.fail_on_error);
  settings.Set("quail_max_pairs", "12");
  EXPECT_EQ(settings.max_pairs, 12U);
  settings.Set("quail_max_tokens", "5");
  EXPECT_EQ(settings.max_tokens, 5U);
  settings.Set("quail_max_seconds", "0.5");
  EXPECT_EQ(settings.max_seconds, 0.5);
  settings.Set("quail_max_seconds", "none");
  EXPECT_FALSE(settings.max_seconds);
  settings.Set("quail_anchor", "as_written");
  EXPECT_EQ(settings.anchor, optimizer::AnchorRule::kAsWritten);
}

TEST(Settings, RefuseWhatTheyCannotBe) {
  EXPECT_EQ(CodeOf("quail_nope", "1"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_on_error", "maybe"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_pairs", "-1"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_pairs", "1e3"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_pairs", ""), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_anchor", "b"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_tokens", "-5"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_seconds", "soon"), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf("quail_max_seconds", "inf"), ErrorCode::kUsage);
}

}  // namespace
}  // namespace quail::session
