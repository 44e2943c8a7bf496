#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/weights/weight_source.h"
#include "spec/model_spec.h"

namespace quail::parity {

/// A decoder's forward pass over the whole token path of one ask in double precision: plain loops
/// over the weights as a WeightSource gives them, nothing cached, nothing shared with the code
/// under test. The yardstick of the parity tests.
class ReferenceModel {
 public:
  /// How the linear layers see their inputs: as they are, or rounded as block-fp8 kernels round
  /// them, to e4m3 with a scale for each 128 columns, which can itself be rounded up to a power of
  /// two (for all inputs, or for the attention's output alone), or as int8 products do, to a row's
  /// 255 steps from its smallest to its largest value.
  enum class Activations { kExact, kFp8, kFp8PowerOfTwo, kFp8AttentionPowerOfTwo, kInt8 };

  ReferenceModel(const spec::ModelSpec& spec, const infer::WeightSource& weights,
                 Activations activations = Activations::kExact);

  struct Path {
    std::vector<std::vector<double>> normed;  ///< [T][C], after the final norm
    /// [layer][T][K * D], as attention uses them
    std::vector<std::vector<std::vector<double>>> keys;
    std::vector<std::vector<std::vector<double>>> values;
  };
  /// `first_position`: position of the first token. `answers`: so many of the last rows are wanted;
  /// the last layer gives the others keys and values alone, and their `normed` means nothing.
  Path Run(std::span<const std::int32_t> tokens, std::int32_t first_position = 0,
           std::size_t answers = ~std::size_t{0}) const;

  double Logit(std::span<const double> normed, std::int32_t token) const;
  /// Natural logarithm, over the whole vocabulary.
  double LogProbability(std::span<const double> normed, std::int32_t token) const;

 private:
  using Matrix = std::vector<std::vector<double>>;
  using Vector = std::vector<double>;
  struct Layer {
    Vector input_norm, post_norm, q_norm, k_norm, q_bias, k_bias, v_bias;
    Matrix q, k, v, o, gate, up, down;
  };

  /// `x` as the linear layers see it.
  Vector Rounded(Vector x, bool of_attention = false) const;
  Vector Project(const Matrix& weight, const Vector& x) const;
  Vector Normalise(const Vector& x, const Vector& weight) const;
  void NormaliseHeads(Vector& x, const Vector& weight) const;
  void Rotate(Vector& x, std::int32_t position) const;
  Vector Attend(const Vector& query, const Matrix& keys, const Matrix& values) const;
  double Frequency(std::int32_t i) const;

  spec::ModelSpec spec_;
  Activations activations_;
  Matrix embedding_;
  Matrix head_;
  Vector final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace quail::parity
