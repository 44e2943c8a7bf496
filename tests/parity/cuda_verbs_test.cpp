#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "cuda_tolerance.h"
#include "device_values.h"
#include "guarded_memory.h"
#include "infer/cuda/launch.h"
#include "model_fixture.h"

/// The launchers that go over rows, one by one, against double precision on the same rounded
/// inputs, with sentinels around every output.
namespace quail::parity {
namespace {

using namespace infer::cuda;  // NOLINT(google-build-using-namespace)

struct OutputForm {
  const char* name;
  bool fp8;
  BlockScale rounding;
};
constexpr OutputForm kForms[] = {{"bf16", false, BlockScale::kExact},
                                 {"fp8", true, BlockScale::kExact},
                                 {"ue8m0", true, BlockScale::kPowerOfTwo}};

class CudaVerbs : public testing::TestWithParam<OutputForm> {};

void NormInto(std::span<const double> row, std::span<const double> weight,
              std::vector<double>& out) {
  double squares = 0;
  for (const double value : row) squares += value * value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(row.size()) + 1e-6);
  for (std::size_t i = 0; i < row.size(); ++i) out.push_back(row[i] * factor * weight[i]);
}

TEST_P(CudaVerbs, AddAndNorm) {
  for (const std::int32_t columns : {128, 256, 2560, 8192}) {
    for (const std::int32_t rows : kRaggedRows) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      const auto delta = RandomBf16(count, 1), residual = RandomBf16(count, 2, 3);
      const auto weight = RandomBf16(static_cast<std::size_t>(columns), 3);
      Guarded<__nv_bfloat16> delta_in(delta), residual_io(residual), weight_in(weight);
      ActivationOut out(rows, columns, GetParam().fp8);
      NormArguments a;
      a.delta = delta_in.get();
      a.norm_weight = weight_in.get();
      a.residual = residual_io.get();
      a.out = out.get();
      a.rows = rows;
      a.columns = columns;
      a.epsilon = 1e-6F;
      a.rounding = GetParam().rounding;
      LaunchAddNorm(a, nullptr);
      std::vector<double> sum = ToDouble(residual), wanted;
      for (std::size_t i = 0; i < count; ++i) sum[i] += static_cast<double>(ToFloat(delta[i]));
      const std::vector<double> weights = ToDouble(weight);
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        NormInto(std::span(sum).subspan(row * weights.size(), weights.size()), weights, wanted);
      }
      ActivationOut::ExpectBf16(residual_io.Read(), sum);
      out.ExpectNear(wanted, GetParam().rounding);
    }
  }
}

TEST_P(CudaVerbs, EmbedLooksRowsUpAndNormsThem) {
  constexpr std::int32_t kColumns = 256, kVocabulary = 50;
  const auto table = RandomBf16(kColumns * kVocabulary, 1);
  const auto weight = RandomBf16(kColumns, 2);
  Guarded<__nv_bfloat16> table_in(table), weight_in(weight);
  for (const std::int32_t rows : kRaggedRows) {
    const std::vector<std::int32_t> tokens =
        MakeTokens(static_cast<std::size_t>(rows), 5, kVocabulary);
    Guarded<std::int32_t> tokens_in(tokens);
    Guarded<__nv_bfloat16> residual(static_cast<std::size_t>(rows) * kColumns);
    ActivationOut out(rows, kColumns, GetParam().fp8);
    EmbedArguments a;
    a.tokens = tokens_in.get();
    a.table = table_in.get();
    a.norm_weight = weight_in.get();
    a.residual = residual.get();
    a.out = out.get();
    a.rows = rows;
    a.columns = kColumns;
    a.epsilon = 1e-6F;
    a.rounding = GetParam().rounding;
    LaunchEmbed(a, nullptr);
    std::vector<double> rows_wanted, wanted;
    for (const std::int32_t token : tokens) {
      const auto row =
          ToDouble(std::span(table).subspan(static_cast<std::size_t>(token) * kColumns, kColumns));
      rows_wanted.insert(rows_wanted.end(), row.begin(), row.end());
      NormInto(row, ToDouble(weight), wanted);
    }
    ActivationOut::ExpectBf16(residual.Read(), rows_wanted);
    out.ExpectNear(wanted, GetParam().rounding);
  }
}

TEST_P(CudaVerbs, SwiGlu) {
  for (const std::int32_t columns : {128, 384, 9728}) {
    for (const std::int32_t rows : kRaggedRows) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const auto width = static_cast<std::size_t>(columns);
      const auto gate_up = RandomBf16(static_cast<std::size_t>(rows) * 2 * width, 4, 2);
      Guarded<__nv_bfloat16> in(gate_up);
      ActivationOut out(rows, columns, GetParam().fp8);
      LaunchSwiGlu({in.get(), out.get(), rows, columns, GetParam().rounding}, nullptr);
      std::vector<double> wanted;
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          const auto gate = static_cast<double>(ToFloat(gate_up[row * 2 * width + i]));
          const auto up = static_cast<double>(ToFloat(gate_up[row * 2 * width + width + i]));
          wanted.push_back(gate / (1 + std::exp(-gate)) * up);
        }
      }
      out.ExpectNear(wanted, GetParam().rounding);
    }
  }
}

// Case 65: what is beyond the range of fp8 is scaled, never NaN.
TEST_P(CudaVerbs, Case65AnOutlierStaysFinite) {
  std::vector<__nv_bfloat16> gate_up(2 * 128, __float2bfloat16(1));
  gate_up[7] = __float2bfloat16(1e4F);
  gate_up[128 + 7] = __float2bfloat16(1e4F);
  Guarded<__nv_bfloat16> in(gate_up);
  ActivationOut out(1, 128, GetParam().fp8);
  LaunchSwiGlu({in.get(), out.get(), 1, 128, GetParam().rounding}, nullptr);
  std::vector<double> wanted(128, 1 / (1 + std::exp(-1.0)));
  const auto outlier = static_cast<double>(ToFloat(gate_up[7]));
  wanted[7] = outlier * outlier;
  out.ExpectNear(wanted, GetParam().rounding);
}

INSTANTIATE_TEST_SUITE_P(Forms, CudaVerbs, testing::ValuesIn(kForms),
                         [](const auto& form) { return form.param.name; });

TEST(CudaVerbsPlain, GatherCopiesRowsAndTheirScales) {
  constexpr std::int32_t kColumns = 256, kSource = 300;
  const auto residual = RandomBf16(kSource * kColumns, 1);
  std::vector<__nv_fp8_e4m3> values(kSource * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].__x = static_cast<std::uint8_t>(i * 7 % 127);
  }
  std::vector<float> scales(2 * kSource);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i);
  Guarded<__nv_bfloat16> residual_in(residual);
  Guarded<__nv_fp8_e4m3> values_in(values);
  Guarded<float> scales_in(scales);
  for (const std::int32_t rows : kRaggedRows) {
    const auto index = MakeTokens(static_cast<std::size_t>(rows), 3, kSource);
    const auto count = static_cast<std::size_t>(rows) * kColumns;
    const std::int64_t pitch = (rows + 3) / 4 * 4;
    Guarded<std::int32_t> index_in(index);
    Guarded<__nv_bfloat16> residual_out(count);
    Guarded<__nv_fp8_e4m3> values_out(count);
    Guarded<float> scales_out(static_cast<std::size_t>(2 * pitch));
    GatherArguments a;
    a.row_index = index_in.get();
    a.residual = residual_in.get();
    a.residual_out = residual_out.get();
    a.in = {nullptr, values_in.get(), scales_in.get(), kSource};
    a.out = {nullptr, values_out.get(), scales_out.get(), pitch};
    a.rows = rows;
    a.columns = kColumns;
    LaunchGather(a, nullptr);
    const auto got_residual = residual_out.Read();
    const auto got_values = values_out.Read();
    const auto got_scales = scales_out.Read();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from =
          static_cast<std::size_t>(index[i / kColumns]) * kColumns + i % kColumns;
      ASSERT_EQ(ToFloat(got_residual[i]), ToFloat(residual[from]));
      ASSERT_EQ(got_values[i].__x, values[from].__x);
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      const auto from = static_cast<std::size_t>(index[row]);
      ASSERT_EQ(got_scales[row], scales[from]);
      ASSERT_EQ(got_scales[static_cast<std::size_t>(pitch) + row], scales[kSource + from]);
    }
  }
}

/// One head, normed and rotated, in double precision.
std::vector<double> RotatedHead(std::span<const double> head, std::span<const double> weight,
                                std::int32_t position) {
  const std::size_t half = head.size() / 2;
  std::vector<double> normed;
  NormInto(head, weight, normed);
  std::vector<double> out(head.size());
  for (std::size_t i = 0; i < half; ++i) {
    const double angle =
        position * std::pow(1e6, -static_cast<double>(i) / static_cast<double>(half));
    out[i] = normed[i] * std::cos(angle) - normed[half + i] * std::sin(angle);
    out[half + i] = normed[half + i] * std::cos(angle) + normed[i] * std::sin(angle);
  }
  return out;
}

class CudaRope : public testing::TestWithParam<std::int32_t> {
 protected:
  /// cos and sin of positions [0, context) as the backend computes them, from f32 frequencies.
  std::vector<float2> Table(std::int32_t context) const {
    const std::int32_t half = GetParam() / 2;
    std::vector<float2> table;
    for (std::int32_t position = 0; position < context; ++position) {
      for (std::int32_t i = 0; i < half; ++i) {
        const double angle = position * std::pow(1e6, -static_cast<double>(i) / half);
        table.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
      }
    }
    return table;
  }
};

// Cases 52 and 56: every lane of every head.
TEST_P(CudaRope, NormsRotatesAndPlacesEveryHead) {
  const std::int32_t d = GetParam();
  constexpr std::int32_t kQ = 6, kK = 2, kSlots = 300;
  constexpr std::int32_t kPositions[] = {0, 1, 4095, 40000};
  const auto dim = static_cast<std::size_t>(d);
  const std::size_t width = (kQ + 2 * kK) * dim;
  const auto q_norm = RandomBf16(dim, 1), k_norm = RandomBf16(dim, 2);
  Guarded<float2> table(Table(40001));
  Guarded<__nv_bfloat16> q_norm_in(q_norm), k_norm_in(k_norm);
  for (const std::int32_t rows : kRaggedRows) {
    SCOPED_TRACE(rows);
    const auto before = RandomBf16(static_cast<std::size_t>(rows) * width, 7);
    std::vector<std::int32_t> positions;
    std::vector<std::int64_t> slots;
    for (std::int32_t row = 0; row < rows; ++row) {
      positions.push_back(kPositions[row % 4]);
      slots.push_back(row % 3 == 0 ? -1 : 2 * row + 1);
    }
    Guarded<__nv_bfloat16> heads(before);
    Guarded<std::int32_t> positions_in(positions);
    Guarded<std::int64_t> slots_in(slots);
    Guarded<__nv_bfloat16> arena_k(kSlots * kK * dim), arena_v(kSlots * kK * dim);
    RopeArguments a;
    a.heads = heads.get();
    a.row_stride = static_cast<std::int64_t>(width);
    a.q_heads = kQ;
    a.k_heads = kK;
    a.q_norm = q_norm_in.get();
    a.k_norm = k_norm_in.get();
    a.rotation = table.get();
    a.positions = positions_in.get();
    a.kv_slots = slots_in.get();
    a.arena_k = arena_k.get();
    a.arena_v = arena_v.get();
    a.rows = rows;
    a.head_dim = d;
    a.epsilon = 1e-6F;
    LaunchRope(a, nullptr);
    const auto got = heads.Read();
    const auto got_k = arena_k.Read();
    const auto got_v = arena_v.Read();
    const auto input = ToDouble(before);
    std::vector<bool> written(kSlots, false);
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      for (std::size_t head = 0; head < kQ + kK; ++head) {
        const std::size_t at = row * width + head * dim;
        const auto wanted = RotatedHead(std::span(input).subspan(at, dim),
                                        ToDouble(head < kQ ? q_norm : k_norm), positions[row]);
        for (std::size_t i = 0; i < dim; ++i) {
          // The table is f32: 2^-24 of a turn.
          ASSERT_NEAR(static_cast<double>(ToFloat(got[at + i])), wanted[i],
                      kBf16Step * std::abs(wanted[i]) + 1e-5)
              << head << " " << i;
        }
      }
      const std::size_t values = row * width + (kQ + kK) * dim;
      ASSERT_EQ(std::memcmp(&got[values], &before[values], kK * dim * 2), 0);
      if (slots[row] < 0) continue;
      const std::size_t slot = static_cast<std::size_t>(slots[row]) * kK * dim;
      written[static_cast<std::size_t>(slots[row])] = true;
      ASSERT_EQ(std::memcmp(&got_k[slot], &got[row * width + kQ * dim], kK * dim * 2), 0);
      ASSERT_EQ(std::memcmp(&got_v[slot], &got[values], kK * dim * 2), 0);
    }
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (written[slot]) continue;
      ASSERT_TRUE(IsSentinel(std::span(got_k).subspan(slot * kK * dim, kK * dim))) << slot;
      ASSERT_TRUE(IsSentinel(std::span(got_v).subspan(slot * kK * dim, kK * dim))) << slot;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(HeadSizes, CudaRope, testing::Values(64, 128));

TEST(CudaVerbsPlain, AnswerLogitsAndLogProbabilities) {
  constexpr std::int32_t kColumns = 256, kVocabulary = 307, kAnswers = 5;
  const auto x = RandomBf16(129 * kColumns, 1), head = RandomBf16(kVocabulary * kColumns, 2, 0.1F);
  Guarded<__nv_bfloat16> x_in(x), head_in(head);
  const auto logit = [&](std::size_t row, std::size_t token) {
    double sum = 0;
    for (std::size_t i = 0; i < kColumns; ++i) {
      sum += static_cast<double>(ToFloat(x[row * kColumns + i])) *
             static_cast<double>(ToFloat(head[token * kColumns + i]));
    }
    return sum;
  };
  for (const std::int32_t rows : kRaggedRows) {
    const auto count = static_cast<std::size_t>(rows);
    const auto index = MakeTokens(count, 3, 129), targets = MakeTokens(count, 4, kVocabulary);
    Guarded<std::int32_t> index_in(index), targets_in(targets);
    Guarded<float> answers(count * kAnswers), log_probs(count);
    LaunchAnswerLogits(
        {x_in.get(), index_in.get(), head_in.get(), answers.get(), rows, kAnswers, kColumns},
        nullptr);
    std::vector<float> logits;
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t token = 0; token < kVocabulary; ++token) {
        logits.push_back(static_cast<float>(logit(static_cast<std::size_t>(index[row]), token)));
      }
    }
    Guarded<float> logits_in(logits);
    LaunchLogProbs(
        {logits_in.get(), targets_in.get(), log_probs.get(), rows, kVocabulary, kVocabulary},
        nullptr);
    const auto got_answers = answers.Read();
    const auto got = log_probs.Read();
    for (std::size_t row = 0; row < count; ++row) {
      double sum = 0;
      for (std::size_t token = 0; token < kVocabulary; ++token) {
        sum += std::exp(static_cast<double>(logits[row * kVocabulary + token]));
      }
      const auto target = static_cast<std::size_t>(targets[row]);
      ASSERT_NEAR(static_cast<double>(got[row]),
                  static_cast<double>(logits[row * kVocabulary + target]) - std::log(sum), 1e-4);
      for (std::size_t token = 0; token < kAnswers; ++token) {
        ASSERT_NEAR(static_cast<double>(got_answers[row * kAnswers + token]),
                    static_cast<double>(logits[row * kVocabulary + token]), 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace quail::parity
