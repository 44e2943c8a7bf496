#include "infer/cpu/int8_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "infer/weights/block_formats.h"
#include "made_up_values.h"

namespace quail::infer::cpu {
namespace {

constexpr std::size_t kKeys = kKeyBlock;

std::size_t PaddedWidth(std::size_t dim) {
  return (dim + kInt8Width - 1) / kInt8Width * kInt8Width;
}

/// Some rows against two blocks of keys, in doubles and through the kernels.
struct Case {
  std::size_t dim = 64;
  std::size_t rows = 7;
  std::vector<float> queries;                     ///< [rows, dim]
  std::vector<std::uint16_t> keys[2], values[2];  ///< bf16 [64, dim]
  std::vector<std::int32_t> visible[2];           ///< [rows]

  Case(std::size_t dim_in, std::size_t rows_in) : dim(dim_in), rows(rows_in) {
    queries = Values(rows * dim, 1);
    for (std::uint32_t block = 0; block < 2; ++block) {
      for (const float value : Values(kKeys * dim, 2 + block)) {
        keys[block].push_back(FloatToBf16(value));
      }
      for (const float value : Values(kKeys * dim, 4 + block)) {
        values[block].push_back(FloatToBf16(value));
      }
      visible[block].assign(rows, kKeyBlock);
    }
  }

  double Score(std::size_t row, std::size_t block, std::size_t key) const {
    double sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      sum += static_cast<double>(queries[row * dim + i]) * Wide(keys[block][key * dim + i]);
    }
    return sum;
  }

  /// softmax2(Q K^T) V, [rows, dim].
  std::vector<double> Reference() const {
    std::vector<double> output(rows * dim);
    for (std::size_t row = 0; row < rows; ++row) {
      double total = 0;
      for (std::size_t block = 0; block < 2; ++block) {
        for (std::size_t key = 0; key < static_cast<std::size_t>(visible[block][row]); ++key) {
          const double weight = std::exp2(Score(row, block, key));
          total += weight;
          for (std::size_t i = 0; i < dim; ++i) {
            output[row * dim + i] += weight * Wide(values[block][key * dim + i]);
          }
        }
      }
      for (std::size_t i = 0; i < dim; ++i) output[row * dim + i] /= total;
    }
    return output;
  }

  /// Codes [64, width] of vectors bf16 [64, dim], each with its largest magnitude.
  std::vector<std::int8_t> Quantised(const Int8Attention& attention,
                                     std::vector<std::uint16_t> vectors) const {
    const std::size_t width = PaddedWidth(dim);
    std::vector<std::int8_t> codes(2 * kKeys * width);
    for (std::size_t i = 0; i < kKeys; ++i) {
      std::uint16_t* vector = vectors.data() + i * dim;
      attention.quantise(vector, static_cast<std::int32_t>(dim));
      std::int8_t* row = codes.data() + 2 * i * width;
      std::memcpy(row, vector, dim);
      std::memcpy(row + width, reinterpret_cast<std::int8_t*>(vector) + dim, sizeof(float));
    }
    return codes;
  }

  /// The same of rows [first, first + count), worked on together.
  std::vector<float> Attend(const Int8Attention& attention, std::size_t first,
                            std::size_t count) const {
    const std::size_t width = PaddedWidth(dim);
    const auto d = static_cast<std::int32_t>(dim), w = static_cast<std::int32_t>(width);
    std::vector<std::uint8_t> codes(count * width);
    std::vector<float> scales(count), output(count * width);
    std::vector<float> maxima(count, -std::numeric_limits<float>::infinity()), sums(count * 16);
    for (std::size_t i = 0; i < count; ++i) {
      scales[i] = attention.quantise_query(queries.data() + (first + i) * dim, d, w,
                                           codes.data() + i * width);
    }
    std::vector<std::int8_t> packed_keys(kKeys * width), packed_values(kKeys * width);
    for (std::size_t b = 0; b < 2; ++b) {
      Int8Block block;
      block.width = w;
      block.keys = packed_keys.data();
      block.values = packed_values.data();
      const std::vector<std::int8_t> key_codes = Quantised(attention, keys[b]);
      const std::vector<std::int8_t> value_codes = Quantised(attention, values[b]);
      const auto stride = static_cast<std::int64_t>(2 * width);
      attention.pack_keys({key_codes.data(), stride, w}, &block);
      attention.pack_values({value_codes.data(), stride, w}, &block);
      attention.attend({static_cast<std::int32_t>(count), codes.data(), scales.data(),
                        visible[b].data() + first, maxima.data(), sums.data(), output.data()},
                       block);
    }
    std::vector<float> result;
    for (std::size_t i = 0; i < count; ++i) {
      const float sum = std::accumulate(&sums[16 * i], &sums[16 * i] + 16, 0.0F);
      for (std::size_t j = 0; j < dim; ++j) result.push_back(output[i * width + j] / sum);
    }
    return result;
  }
};

class Int8AttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (attention_ == nullptr) GTEST_SKIP() << "skipped: no AVX-512 VNNI here";
  }
  void ExpectNear(const Case& c, double tolerance) const {
    const std::vector<double> wanted = c.Reference();
    const std::vector<float> got = c.Attend(*attention_, 0, c.rows);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(got[i], wanted[i], tolerance)
          << "dim " << c.dim << " row " << i / c.dim << " column " << i % c.dim;
    }
  }
  const Int8Attention* attention_ = SelectInt8Attention();
};

// Values are up to 1: a step of theirs is 1/127, of a weight 1/255 of the largest.
TEST_F(Int8AttentionTest, IsNearTheReferenceForEveryWidth) {
  for (const std::size_t dim : {20U, 32U, 64U, 80U, 96U, 128U, 160U}) {
    for (const std::size_t rows : {1U, 5U, 6U, 13U}) ExpectNear(Case(dim, rows), 0.02);
  }
}

TEST_F(Int8AttentionTest, KeysThatARowDoesNotSeeDoNotMatter) {
  Case c(64, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    c.visible[1][i] = static_cast<std::int32_t>(i) + 1;
    c.visible[0][63 - i] = static_cast<std::int32_t>(i) + 1;
  }
  ExpectNear(c, 0.03);
}

TEST_F(Int8AttentionTest, ARowIsItsOwn) {
  Case c(80, 17);
  for (std::size_t i = 0; i < c.rows; ++i) c.visible[1][i] = static_cast<std::int32_t>(3 * i) + 1;
  const std::vector<float> together = c.Attend(*attention_, 0, c.rows);
  for (std::size_t row = 0; row < c.rows; ++row) {
    const std::vector<float> alone = c.Attend(*attention_, row, 1);
    EXPECT_TRUE(std::ranges::equal(alone, std::span(together).subspan(row * c.dim, c.dim))) << row;
  }
}

// Of the largest weight and a value near nothing, as models make of a first token.
TEST_F(Int8AttentionTest, ASmallValueOfALargeWeightStillTakesItsShare) {
  for (const float value : {0.0F, 1e-30F, 1e-12F, 1e-4F}) {
    Case c(64, 3);
    for (std::size_t i = 0; i < c.dim; ++i) {
      c.values[0][i] = FloatToBf16(value);
      c.keys[0][i] = FloatToBf16(c.queries[i]);
    }
    ASSERT_GT(c.Score(0, 0, 0), 15) << "it must weigh more than all others";
    ExpectNear(c, 0.01);
  }
}

// The maximum moves by more than the slack, either way.
TEST_F(Int8AttentionTest, FollowsTheMaximumFromBlockToBlock) {
  for (const float factor : {-8.0F, 8.0F}) {
    Case c(64, 8);
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (std::size_t i = 0; i < c.dim; ++i) {
        c.keys[1][key * c.dim + i] = FloatToBf16(factor * c.queries[i]);
      }
    }
    ASSERT_GT(std::abs(c.Score(0, 1, 0)), 3 * kInt8SoftmaxSlack);
    ExpectNear(c, 0.02);
  }
}

TEST_F(Int8AttentionTest, WhatIsNotFiniteReachesTheRowsThatSeeIt) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  for (const float value : bad) {
    for (const bool in_key : {false, true}) {
      Case c(64, 64);
      for (std::size_t i = 0; i < 64; ++i) c.visible[1][i] = static_cast<std::int32_t>(i) + 1;
      const std::vector<float> clean = c.Attend(*attention_, 0, c.rows);
      (in_key ? c.keys : c.values)[1][40 * c.dim + 3] = FloatToBf16(value);
      const std::vector<float> got = c.Attend(*attention_, 0, c.rows);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (i / c.dim < 40) {
          EXPECT_EQ(got[i], clean[i]) << "a neighbour's fault at row " << i / c.dim;
        } else {
          EXPECT_TRUE(std::isnan(got[i])) << i / c.dim << " " << in_key;
        }
      }
    }
    Case c(64, 9);
    c.queries[4 * c.dim + 7] = value;
    const std::vector<float> got = c.Attend(*attention_, 0, c.rows);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i / c.dim == 4);
  }
}

}  // namespace
}  // namespace quail::infer::cpu
