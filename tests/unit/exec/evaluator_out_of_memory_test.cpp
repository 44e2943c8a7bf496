#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "byte_vocabulary.h"
#include "exec/model_evaluator.h"
#include "exec/verdicts.h"
#include "failing_allocation.h"
#include "infer/counting/counting_backend.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

using Margins = std::map<std::pair<std::uint64_t, std::uint32_t>, float>;

/// A filter and a join over five texts of their own, which fill the KV arena more than once.
class EvaluatorOutOfMemory : public testing::Test {
 protected:
  EvaluatorOutOfMemory()
      : tokenizer_(text::BpeTokenizer::Create(text::ByteVocabulary())), pool_(1) {
    backend_.ReserveKv({}, kKvTokens);
    infer::ForestConfig config;
    config.kv_tokens = kKvTokens;
    config.chunk_tokens = 256;
    config.context_tokens = 500;
    config.true_rows = 1;
    config.answer_rows = 2;
    forest_ = infer::PromptForest::Create(model_, backend_, config);
    evaluator_ = std::make_unique<ModelEvaluator>(
        ModelParts{*forest_, tokenizer_.get(), texts_, pool_, {"TRUE", "FALSE"}});
    for (char c = 'a'; c < 'f'; ++c) documents_.push_back(texts_.Intern(std::string(60, c)));
    auto partners = std::make_shared<PartnerList>();
    partners->width = 1;
    for (char c = 'k'; c < 'n'; ++c) partners->keys.push_back(texts_.Intern(std::string(9, c)));
    partners_ = std::move(partners);
  }

  /// Margins by ask and partner, up to an error; whether there was none.
  bool Run(Margins& margins, long fail_at = 0) {
    std::vector<Outcome> outcomes;
    bool whole = true;
    try {
      const infer::FailingAllocation fails(fail_at);
      AskAll();
      while (evaluator_->Next(outcomes, nullptr)) {
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
      whole = false;
    } catch (const std::bad_alloc&) {
      whole = false;
    }
    for (const Outcome& outcome : outcomes) {
      margins[{outcome.tag, outcome.index}] = outcome.margin;
    }
    return whole;
  }

  void AskAll() {
    evaluator_->Begin();
    Question question;
    question.prompt = "Is it {0}?";
    question.width = 1;
    const QuestionId filter = evaluator_->Add(question);
    question.prompt = "Is {0} like {1}?";
    question.width = 2;
    question.is_anchor = {true, false};
    const QuestionId join = evaluator_->Add(question);
    std::uint64_t tag = 0;
    for (const TextId& document : documents_) {
      FilterAsk ask;
      ask.question = filter;
      ask.key = std::span(&document, 1);
      ask.tag = tag++;
      ask.expected_reuse = 0.5;
      evaluator_->Ask(ask);
      JoinAsk pairs;
      pairs.question = join;
      pairs.anchor_key = std::span(&document, 1);
      pairs.partners = partners_;
      pairs.tag = tag++;
      evaluator_->Ask(pairs);
    }
  }

  static constexpr std::int64_t kKvTokens = 700;

  std::shared_ptr<const text::BpeTokenizer> tokenizer_;
  text::TextStore texts_;
  base::ThreadPool pool_;
  infer::CountingBackend backend_{{.validate = true}};
  infer::CountingModel model_{spec::ModelSpec{}};
  std::unique_ptr<infer::PromptForest> forest_;
  std::unique_ptr<ModelEvaluator> evaluator_;
  std::vector<TextId> documents_;
  std::shared_ptr<const PartnerList> partners_;
};

TEST_F(EvaluatorOutOfMemory, AtAnyAllocationVerdictsBeforeItAreRightAndTheNextStatementIsWhole) {
  Margins clean;
  ASSERT_TRUE(Run(clean));
  ASSERT_EQ(clean.size(), 5U * (1 + 3));
  long at = 1;
  for (bool failed = true; failed; at = at < 60 ? at + 1 : at + 7) {
    Margins kept;
    const bool whole = Run(kept, at);
    failed = infer::FailingAllocation::happened();
    ASSERT_TRUE(whole || failed);
    for (const auto& [key, margin] : kept) ASSERT_EQ(margin, clean.at(key)) << at;
    Margins again;
    ASSERT_TRUE(Run(again)) << at;
    ASSERT_EQ(again, clean) << "after an error at allocation " << at;
  }
  EXPECT_GT(at, 100);
  EXPECT_EQ(backend_.fault(), "");
}

// 10^8 decided pairs in 1.5 GB.
TEST(VerdictTable, APairTakesTwoBits) {
  constexpr std::uint32_t kRows = 500;
  constexpr std::uint32_t kColumns = 4000;
  std::vector<TextId> rows;
  std::vector<TextId> columns;
  for (std::uint32_t i = 0; i < kRows; ++i) rows.emplace_back(i);
  for (std::uint32_t i = 0; i < kColumns; ++i) columns.emplace_back(kRows + i);
  const std::size_t before = infer::allocated_bytes;
  VerdictTable table(2, false);
  table.AddMatrix(rows, columns);
  for (const TextId row : rows) {
    for (const TextId column : columns) {
      table.Set(std::array{row, column}, Verdict::kTrue, 1, "");
    }
  }
  EXPECT_EQ(table.decided(), std::uint64_t{kRows} * kColumns);
  EXPECT_LT(infer::allocated_bytes - before, kRows * kColumns / 4 + 16 * (kRows + kColumns));
}

}  // namespace
}  // namespace quail::exec
