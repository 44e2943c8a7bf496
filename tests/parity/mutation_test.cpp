#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "int8_weights.h"
#include "model_fixture.h"

// Case 64: faults that kernels have had elsewhere, each planted in one kernel or tensor. The
// tolerance of the parity tests must tell every one of them from a right result.
namespace quail::parity {
namespace {

using infer::cpu::CpuKernels;
using infer::cpu::ElementType;

const CpuKernels& Right() { return infer::cpu::SelectKernels(); }

void ZeroedProduct(std::int32_t m, std::int32_t, const float*, std::int64_t, const float*,
                   std::int64_t, float* c, std::int64_t ldc, bool) {
  for (std::int32_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, infer::cpu::kKeyBlock, 0.0F);
}

void TransposedTile(std::int32_t m, std::int32_t k, const float* a, std::int64_t lda,
                    const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate) {
  Right().product64(m, k, a, lda, b, ldb, c, ldc, accumulate);
  const std::int32_t edge = std::min(m, 4);
  for (std::int32_t i = 0; i < edge; ++i) {
    for (std::int32_t j = 0; j < i; ++j) std::swap(c[i * ldc + j], c[j * ldc + i]);
  }
}

/// Turns by the angles of the next frequency.
void ShiftedRotation(const float* head, const float* cosine, const float* sine, std::int32_t half,
                     float* out) {
  std::vector<float> c(cosine + 1, cosine + half);
  std::vector<float> s(sine + 1, sine + half);
  c.push_back(cosine[half - 1]);
  s.push_back(sine[half - 1]);
  Right().rotate(head, c.data(), s.data(), half, out);
}

void MaskOfOneMore(float* scores, std::int32_t visible, infer::cpu::SoftmaxState* state,
                   float* output, std::int32_t width) {
  Right().softmax_block(scores, std::min(visible + 1, infer::cpu::kKeyBlock), state, output, width);
}

void DroppedLastKey(float* scores, std::int32_t visible, infer::cpu::SoftmaxState* state,
                    float* output, std::int32_t width) {
  Right().softmax_block(scores, std::max(visible - 1, 1), state, output, width);
}

/// Forgets to bring what was summed before to the new maximum.
void StaleMaximum(float* scores, std::int32_t visible, infer::cpu::SoftmaxState* state,
                  float* output, std::int32_t width) {
  std::vector<float> unscaled(output, output + width);
  Right().softmax_block(scores, visible, state, output, width);
  std::copy(unscaled.begin(), unscaled.end(), output);
}

void UnweightedNorm(const float* x, const float* weight, float epsilon, std::int32_t n,
                    float* out) {
  std::vector<float> ones(weight, weight + n);
  ones.back() = 1.0F;
  Right().rms_norm(x, ones.data(), epsilon, n, out);
}

void GateAndUpSwapped(const float* gate, const float* up, std::int32_t n, float* out) {
  const std::vector<float> kept(gate, gate + n);
  Right().silu_product(up, kept.data(), n, out);
}

/// Finds the tensor of one name under another's.
class SwappedWeights final : public infer::WeightSource {
 public:
  SwappedWeights(std::shared_ptr<const infer::WeightSource> weights, std::string a, std::string b)
      : weights_(std::move(weights)), a_(std::move(a)), b_(std::move(b)) {}
  std::shared_ptr<const infer::WeightTensor> Find(std::string_view name) const override {
    std::string other(name);
    for (const auto& [from, to] : {std::pair(&a_, &b_), std::pair(&b_, &a_)}) {
      const std::size_t at = name.find(*from);
      if (at == std::string_view::npos) continue;
      other.replace(at, from->size(), *to);
      break;
    }
    return weights_->Find(other);
  }
  base::Hash128 hash() const override { return {}; }

 private:
  std::shared_ptr<const infer::WeightSource> weights_;
  std::string a_, b_;
};

/// Copies of the right functions, each with one of them planted wrong.
template <typename Functions>
class Faults {
 public:
  explicit Faults(const Functions& right) : right_(right) {}

  Functions& Plant(const char* name) { return planted_.emplace(name, right_).first->second; }

  /// The error that each makes is above the bound, or not a number.
  template <typename ErrorOf>
  void ExpectOutside(double bound, const ErrorOf& error_of) const {
    for (const auto& [name, functions] : planted_) {
      const double error = error_of(functions);
      EXPECT_FALSE(error <= bound) << name << ": " << error;
    }
  }

 private:
  Functions right_;
  std::map<std::string, Functions> planted_;
};

class Mutation : public testing::Test {
 protected:
  Mutation()
      : spec_(TinySpec(spec::ModelFamily::kQwen3)),
        weights_(infer::CreateRandomWeights(spec_, 7)),
        reference_(spec_, *weights_) {}

  /// The worst error over documents of one, some, and more than two blocks of keys.
  double Error(const infer::WeightSource& weights, const CpuKernels& kernels) const {
    infer::cpu::CpuOptions options{2, ElementType::kF32, {}};
    options.kernels = &kernels;
    return Error(weights, options);
  }
  double Bf16Error(const infer::cpu::Bf16Kernels& kernels) const {
    infer::cpu::CpuOptions options{2, ElementType::kBf16, {}};
    options.bf16 = &kernels;
    return Error(*weights_, options);
  }

  double Error(const infer::WeightSource& weights, const infer::cpu::CpuOptions& options) const {
    return Error(reference_, weights, options);
  }
  double Error(const ReferenceModel& reference, const infer::WeightSource& weights,
               const infer::cpu::CpuOptions& options) const {
    LoadedModel loaded(spec_, weights, options);
    double worst = 0;
    for (const std::size_t length : {std::size_t{1}, std::size_t{30}, std::size_t{150}}) {
      const auto tokens = MakeTokens(length, static_cast<std::uint32_t>(length));
      const auto wanted = ReferenceLogits(reference, tokens);
      const double rms = MeasureError<float>(loaded.Alone(tokens), wanted).rms;
      if (!(rms <= worst)) worst = rms;
    }
    return worst;
  }

  spec::ModelSpec spec_;
  std::shared_ptr<const infer::WeightSource> weights_;
  ReferenceModel reference_;
};

TEST_F(Mutation, EveryPlantedKernelFaultIsOutsideTheTolerance) {
  const double allowed = ToleranceOf(ElementType::kF32).rms;
  ASSERT_LE(Error(*weights_, Right()), allowed);
  Faults<CpuKernels> faults(Right());
  faults.Plant("zeroed output").product64 = ZeroedProduct;
  faults.Plant("transposed tile").product64 = TransposedTile;
  faults.Plant("shifted position").rotate = ShiftedRotation;
  faults.Plant("mask off by one").softmax_block = MaskOfOneMore;
  faults.Plant("dropped last key").softmax_block = DroppedLastKey;
  faults.Plant("stale maximum").softmax_block = StaleMaximum;
  faults.Plant("norm without a weight").rms_norm = UnweightedNorm;
  faults.Plant("gate and up swapped").silu_product = GateAndUpSwapped;
  faults.ExpectOutside(10 * allowed,
                       [this](const CpuKernels& kernels) { return Error(*weights_, kernels); });
}

TEST_F(Mutation, SwappedTensorsAreOutsideTheTolerance) {
  const double allowed = ToleranceOf(ElementType::kF32).rms;
  for (const auto& [a, b] : {std::pair("k_proj", "v_proj"), std::pair("q_norm", "k_norm"),
                             std::pair("gate_proj", "up_proj")}) {
    EXPECT_FALSE(Error(SwappedWeights(weights_, a, b), Right()) <= 10 * allowed) << a;
  }
}

void ZeroedHalves(const infer::cpu::Bf16Product& p) {
  for (std::int32_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.ldc, infer::cpu::kKeyBlock, 0.0F);
}

/// The two halves of every pair swapped.
template <void (*infer::cpu::Bf16Kernels::*Pack)(const std::uint16_t*, std::int32_t,
                                                 std::uint16_t*)>
void SwappedPairs(const std::uint16_t* rows, std::int32_t width, std::uint16_t* out) {
  (infer::cpu::SelectBf16Kernels().*Pack)(rows, width, out);
  for (std::int32_t i = 0; i < infer::cpu::kKeyBlock * width; i += 2) std::swap(out[i], out[i + 1]);
}

void FirstKeyOnly(const infer::cpu::Bf16Softmax& softmax) {
  infer::cpu::Bf16Softmax one = softmax;
  one.visible = 1;
  infer::cpu::SelectBf16Kernels().softmax_block(one);
}

// Of the bf16 path what rounding cannot hide.
TEST_F(Mutation, EveryPlantedFaultOfBf16ProductsIsOutsideTheTolerance) {
  using infer::cpu::Bf16Kernels;
  if (infer::cpu::SupportedBf16Units().empty()) GTEST_SKIP() << "skipped: no bf16 products here";
  const double allowed = ToleranceOf(ElementType::kBf16).rms;
  Faults<Bf16Kernels> faults(infer::cpu::SelectBf16Kernels());
  faults.Plant("zeroed output").product64 = ZeroedHalves;
  faults.Plant("swapped keys").pack_keys = SwappedPairs<&Bf16Kernels::pack_keys>;
  faults.Plant("swapped values").pack_values = SwappedPairs<&Bf16Kernels::pack_values>;
  faults.Plant("one key").softmax_block = FirstKeyOnly;
  EXPECT_LE(Bf16Error(infer::cpu::SelectBf16Kernels()), allowed);
  faults.ExpectOutside(2 * allowed,
                       [this](const Bf16Kernels& kernels) { return Bf16Error(kernels); });
}

void NoZero(const infer::cpu::Int8Row& row, std::int32_t n) {
  infer::cpu::Int8Row wrong = row;
  wrong.x.zero = 0;
  Right().dequantise(wrong, n);
}

void NoScale(const infer::cpu::Int8Row& row, std::int32_t n) {
  infer::cpu::Int8Row wrong = row;
  wrong.x.scale = 0.01F;
  Right().dequantise(wrong, n);
}

/// Of the next row of the weight.
void ShiftedWeightScales(const infer::cpu::Int8Row& row, std::int32_t n) {
  std::vector<float> scales(row.weight_scales + 1, row.weight_scales + n);
  scales.push_back(row.weight_scales[0]);
  infer::cpu::Int8Row wrong = row;
  wrong.weight_scales = scales.data();
  Right().dequantise(wrong, n);
}

void NotAdded(const infer::cpu::Int8Row& row, std::int32_t n) {
  infer::cpu::Int8Row wrong = row;
  wrong.accumulate = false;
  Right().dequantise(wrong, n);
}

/// Signed bytes where unsigned ones belong.
infer::cpu::RowCode WrongSign(const float* x, std::int32_t n, std::uint8_t* codes) {
  const infer::cpu::RowCode row = Right().quantise(x, n, codes);
  for (std::int32_t i = 0; i < n; ++i) codes[i] ^= 0x80U;
  return row;
}

/// Seven bits of a byte.
infer::cpu::RowCode HalfTheSteps(const float* x, std::int32_t n, std::uint8_t* codes) {
  const infer::cpu::RowCode row = Right().quantise(x, n, codes);
  for (std::int32_t i = 0; i < n; ++i) codes[i] &= 0xFEU;
  return row;
}

TEST_F(Mutation, EveryPlantedFaultOfInt8ProductsIsOutsideTheTolerance) {
  const ReferenceModel rounded(spec_, Int8Weights(weights_, Int8WeightLimit()),
                               ReferenceModel::Activations::kInt8);
  const double allowed = ToleranceOfInt8(ElementType::kF32).rms;
  const auto error = [&](const CpuKernels& kernels) {
    infer::cpu::CpuOptions options{2, ElementType::kF32, {}};
    options.kernels = &kernels;
    options.products = infer::cpu::ProductType::kInt8;
    return Error(rounded, *weights_, options);
  };
  EXPECT_LE(error(Right()), allowed);
  Faults<CpuKernels> faults(Right());
  faults.Plant("no zero").dequantise = NoZero;
  faults.Plant("no scale").dequantise = NoScale;
  faults.Plant("shifted scales of weights").dequantise = ShiftedWeightScales;
  faults.Plant("not added").dequantise = NotAdded;
  faults.Plant("wrong sign").quantise = WrongSign;
  faults.Plant("half the steps").quantise = HalfTheSteps;
  faults.ExpectOutside(2 * allowed, error);
}

const infer::cpu::Int8Attention& RightInt8() { return *infer::cpu::SelectInt8Attention(); }

void OneKeyOfBytes(const infer::cpu::Int8Rows& rows, const infer::cpu::Int8Block& block) {
  const std::vector<std::int32_t> one(static_cast<std::size_t>(rows.count), 1);
  infer::cpu::Int8Rows wrong = rows;
  wrong.visible = one.data();
  RightInt8().attend(wrong, block);
}

void NothingAdded(const infer::cpu::Int8Rows& rows, const infer::cpu::Int8Block& block) {
  RightInt8().attend(rows, block);
  std::fill_n(rows.output, std::int64_t{rows.count} * block.width, 0.0F);
}

void ScaleOfOneKey(const infer::cpu::Int8Vectors& keys, infer::cpu::Int8Block* block) {
  RightInt8().pack_keys(keys, block);
  block->key_scale.fill(0.1F * block->key_scale[0]);
}

void ValuesInKeyOrder(const infer::cpu::Int8Vectors& values, infer::cpu::Int8Block* block) {
  RightInt8().pack_values(values, block);
  std::rotate(block->values, block->values + 4 * block->width,
              block->values + std::int64_t{infer::cpu::kKeyBlock} * block->width);
}

void NoScaleOfValues(const infer::cpu::Int8Vectors& values, infer::cpu::Int8Block* block) {
  RightInt8().pack_values(values, block);
  block->log_value_scale.fill(0);
}

TEST_F(Mutation, EveryPlantedFaultOfInt8AttentionIsOutsideTheTolerance) {
  const auto units = infer::cpu::SupportedBf16Units();
  const bool tiles = !units.empty() && units.back() == infer::cpu::Bf16Unit::kAmx;
  if (tiles || infer::cpu::SelectInt8Attention() == nullptr) {
    GTEST_SKIP() << "skipped: attention is not of bytes here";
  }
  const ReferenceModel rounded(spec_, Int8Weights(weights_, Int8WeightLimit()),
                               ReferenceModel::Activations::kInt8);
  const double allowed = ToleranceOfInt8(ElementType::kBf16).rms;
  const auto error = [&](const infer::cpu::Int8Attention& attention) {
    infer::cpu::CpuOptions options{2, ElementType::kBf16, {}};
    options.products = infer::cpu::ProductType::kInt8;
    options.int8 = &attention;
    return Error(rounded, *weights_, options);
  };
  EXPECT_LE(error(RightInt8()), allowed);
  Faults<infer::cpu::Int8Attention> faults(RightInt8());
  faults.Plant("one key").attend = OneKeyOfBytes;
  faults.Plant("nothing added").attend = NothingAdded;
  faults.Plant("scale of one key").pack_keys = ScaleOfOneKey;
  faults.Plant("other order of values").pack_values = ValuesInKeyOrder;
  faults.Plant("no scale of values").pack_values = NoScaleOfValues;
  faults.ExpectOutside(1.5 * allowed, error);
}

}  // namespace
}  // namespace quail::parity
