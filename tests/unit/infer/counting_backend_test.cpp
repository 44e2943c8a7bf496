#include "infer/counting/counting_backend.h"

#include <gtest/gtest.h>

#include <functional>

#include "forest_harness.h"

namespace quail::infer {
namespace {

/// Two chunks: a document of 4 tokens written to slots 0..3, then a question that reads it.
std::string FaultOf(const std::function<void(PrefillBatch&, PrefillBatch&)>& change) {
  PrefillBatch document;
  document.tokens = {5, 6, 7, 8};
  document.positions = {0, 1, 2, 3};
  document.kv_slots = {0, 1, 2, 3};
  document.runs = {{0, 4, 0, 0}};
  PrefillBatch question;
  question.tokens = {9, 10, 11};
  question.positions = {4, 5, 5};
  question.kv_slots = {-1, -1, -1};
  question.spans = {{0, 4, KeySpan::Place::kArena},
                    {0, 4, KeySpan::Place::kArena},
                    {0, 1, KeySpan::Place::kChunk}};
  question.runs = {{0, 2, 0, 1}, {2, 1, 1, 2}};
  question.answer_rows = {1, 2};
  change(document, question);
  CountingBackend backend({.validate = true});
  backend.ReserveKv({}, 8);
  backend.Begin(document);
  backend.Begin(question);
  return backend.fault();
}

TEST(CountingBackend, RightBatchesHaveNoFault) {
  EXPECT_EQ(FaultOf([](PrefillBatch&, PrefillBatch&) {}), "");
}

TEST(CountingBackend, FindsPlantedFaults) {
  const auto expect_fault = [](const std::function<void(PrefillBatch&, PrefillBatch&)>& change) {
    EXPECT_NE(FaultOf(change), "");
  };
  expect_fault([](auto&, auto& q) { q.spans[0].first = 1; });
  expect_fault([](auto&, auto& q) { q.spans[0].length = 3; });
  expect_fault([](auto&, auto& q) { q.spans[0].length = 5; });
  expect_fault([](auto&, auto& q) { q.spans[2].first = 2; });
  expect_fault([](auto&, auto& q) { q.positions[0] = 5; });
  expect_fault([](auto& d, auto&) { d.kv_slots[2] = -1; });
  expect_fault([](auto& d, auto&) { d.kv_slots[2] = 1; });
  expect_fault([](auto& d, auto&) { d.kv_slots[2] = 8; });
  expect_fault([](auto&, auto& q) { q.kv_slots[1] = 2; });
  expect_fault([](auto&, auto& q) { q.runs[1].first_row = 1; });
  expect_fault([](auto&, auto& q) { q.runs.pop_back(); });
  expect_fault([](auto&, auto& q) { q.answer_rows = {2, 1}; });
}

TEST(CountingBackend, AnswersByTheWholePath) {
  CountingBackend backend({.validate = true});
  backend.ReserveKv({}, 8);
  PrefillBatch batch;
  batch.tokens = {5, 6};
  batch.positions = {0, 1};
  batch.kv_slots = {-1, -1};
  batch.runs = {{0, 2, 0, 0}};
  batch.answer_rows = {1};
  batch.scored_tokens = {{0, 42}};
  const auto chunk = backend.Begin(batch);
  const ChunkResult result = backend.Wait(*chunk);
  EXPECT_EQ(result.answer_logits[0] - result.answer_logits[1],
            CountingMargin(PathHash(MakeTokens({5, 6}))));
  EXPECT_EQ(result.log_probs[0], CountingLogProb(PathHash(MakeTokens({5})), 42));
}

}  // namespace
}  // namespace quail::infer
