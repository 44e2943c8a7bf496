#include "session/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "infer/readout.h"

namespace quail::session {
namespace {

constexpr std::string_view kQuestion = "The text is about snow. {0}";
constexpr std::array<std::string_view, 2> kTexts = {"It is snowing in the mountains.",
                                                    "The shop sells cheap shoes."};
/// In log-odds. The embedded judge has them 12 apart, without its adapter, which leaves it near
/// chance, 0.2 (f32, bf16 and int8).
constexpr float kLeastDifference = 1;

std::vector<base::TokenId> PromptTokens(const SelfTestParts& parts, std::string_view body) {
  text::FilterPrompt prompt =
      text::LayOutFilter(text::PromptTemplate::Parse(kQuestion), parts.words);
  if (parts.chat != nullptr) text::PutTurnsAround(*parts.chat, prompt);
  std::vector<base::TokenId> tokens;
  for (const auto* pieces : {&prompt.document, &prompt.question}) {
    for (const text::PromptPiece& piece : *pieces) {
      tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
      if (piece.tokens.empty()) {
        parts.tokenizer.Encode(piece.argument < 0 ? std::string_view(piece.literal) : body, tokens);
      }
    }
  }
  return tokens;
}

void AddRun(infer::PrefillBatch& batch, std::span<const base::TokenId> tokens) {
  const auto rows = static_cast<std::int32_t>(tokens.size());
  batch.runs.push_back({batch.rows(), rows, 0, 0});
  for (std::int32_t i = 0; i < rows; ++i) {
    batch.tokens.push_back(tokens[static_cast<std::size_t>(i)].value());
    batch.positions.push_back(i);
    batch.kv_slots.push_back(-1);
  }
  batch.answer_rows.push_back(batch.rows() - 1);
}

}  // namespace

std::optional<SelfTest> RunSelfTest(const SelfTestParts& parts) {
  infer::PrefillBatch batch;
  for (const std::string_view body : kTexts) {
    const std::vector<base::TokenId> tokens = PromptTokens(parts, body);
    if (static_cast<std::int64_t>(tokens.size()) > parts.model.spec().context) return std::nullopt;
    AddRun(batch, tokens);
  }
  const auto chunk = parts.backend.Begin(batch);
  parts.model.Forward(parts.backend, *chunk, batch, nullptr);
  const auto logits = parts.backend.Wait(*chunk).answer_logits;
  const std::size_t rows = logits.size() / kTexts.size();
  const auto margin = [&](std::size_t i) {
    auto value = infer::TrueFalseMargin(logits.subspan(i * rows, rows), parts.true_rows);
    if (value) *value *= parts.margin_scale;
    return value;
  };
  return SelfTest{margin(0), margin(1)};
}

std::string DoubtOfSelfTest(const SelfTest& test) {
  if (!test.of_true || !test.of_false) {
    return "the model fails the self-test: its logits for a built-in text are not finite";
  }
  if (*test.of_true - *test.of_false >= kLeastDifference) return "";
  return fmt::format(
      "the model fails the self-test: log-odds of {:.2f} that '{}' is about snow, of {:.2f} that "
      "'{}' "
      "is; its prompt layout does not fit, or it cannot judge",
      *test.of_true, kTexts[0], *test.of_false, kTexts[1]);
}

}  // namespace quail::session
