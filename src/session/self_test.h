#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "infer/backend.h"
#include "infer/model.h"
#include "text/bpe_tokenizer.h"
#include "text/prompt.h"

namespace quail::session {

/// Margins of two built-in texts for a built-in question that is true of the first alone, asked in
/// the layout of all prompts. A model to which the layout does not fit, or that cannot judge, shows
/// in them. nullopt: not finite.
struct SelfTest {
  std::optional<float> of_true;
  std::optional<float> of_false;
};

struct SelfTestParts {
  const infer::Model& model;
  infer::Backend& backend;  ///< ReserveKv has been done
  const text::BpeTokenizer& tokenizer;
  const text::AnswerWords& words;
  const text::ChatPieces* chat = nullptr;  ///< null: layout plain
  std::int32_t true_rows = 1;              ///< of the answer head
  float margin_scale = 1;
};

/// One forward pass of some 80 tokens. nullopt where the model's context does not take them.
std::optional<SelfTest> RunSelfTest(const SelfTestParts& parts);
/// For a notice; empty if the first text's margin is well above the second's.
std::string DoubtOfSelfTest(const SelfTest& test);

}  // namespace quail::session
