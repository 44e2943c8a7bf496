#include "session/self_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "byte_vocabulary.h"
#include "infer/counting/counting_backend.h"

namespace quail::session {
namespace {

/// The built-in question over the counting backend; a byte is a token.
class SelfTestOverCounting : public testing::Test {
 protected:
  std::optional<SelfTest> Run(std::int32_t context = 1000) {
    infer::CountingBackend backend(counting_);
    backend.ReserveKv({}, 10);
    spec::ModelSpec spec;
    spec.context = context;
    const infer::CountingModel model(spec);
    const auto result = RunSelfTest({.model = model,
                                     .backend = backend,
                                     .tokenizer = *tokenizer_,
                                     .words = words_,
                                     .chat = chat_,
                                     .margin_scale = 2});
    EXPECT_EQ(backend.fault(), "");
    return result;
  }

  std::shared_ptr<const text::BpeTokenizer> tokenizer_ =
      text::BpeTokenizer::Create(text::ByteVocabulary());
  text::AnswerWords words_;
  const text::ChatPieces* chat_ = nullptr;
  infer::CountingOptions counting_{.validate = true};
};

TEST_F(SelfTestOverCounting, Case34TheSameScoreForAllIsTold) {
  counting_.margin = [](std::uint64_t) { return 0.25F; };
  const auto test = Run();
  ASSERT_TRUE(test);
  EXPECT_EQ(test->of_true, 0.5F);
  EXPECT_NE(DoubtOfSelfTest(*test), "");
}

TEST_F(SelfTestOverCounting, Case34TwoTextsAreAskedInTheLayoutOfAllPrompts) {
  std::set<std::uint64_t> paths;
  counting_.margin = [&](std::uint64_t path) {
    paths.insert(path);
    return 0.0F;
  };
  Run();
  EXPECT_EQ(paths.size(), 2U);
  const text::ChatPieces chat{{base::TokenId(65)}, {base::TokenId(66)}};
  chat_ = &chat;
  Run();
  EXPECT_EQ(paths.size(), 4U);
}

TEST_F(SelfTestOverCounting, AContextThatIsTooShortHasNone) { EXPECT_FALSE(Run(20)); }

TEST(SelfTest, Case34ItTakesAMarginInTheRightDirection) {
  EXPECT_EQ(DoubtOfSelfTest({5.0F, -4.0F}), "");
  EXPECT_EQ(DoubtOfSelfTest({9.0F, 7.5F}), "");
  EXPECT_NE(DoubtOfSelfTest({0.1F, -0.1F}).find("-0.10 that"), std::string::npos);
  EXPECT_NE(DoubtOfSelfTest({-4.0F, 5.0F}), "");
  EXPECT_NE(DoubtOfSelfTest({std::nullopt, 5.0F}).find("not finite"), std::string::npos);
}

}  // namespace
}  // namespace quail::session
