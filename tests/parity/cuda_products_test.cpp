#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda_tolerance.h"
#include "device_values.h"
#include "guarded_memory.h"
#include "infer/cuda/attention_select.h"
#include "infer/cuda/attention_work.h"
#include "infer/cuda/gemm_select.h"
#include "infer/cuda/launch.h"
#include "model_fixture.h"

/// Attention and fp8 products, every variant, against double precision on the same rounded inputs,
/// with sentinels around every output; and elements beyond 2^31.
namespace quail::parity {
namespace {

using namespace infer::cuda;  // NOLINT(google-build-using-namespace)
using infer::KeySpan;

struct Heads {
  std::int32_t head_dim;
  std::int32_t group;
};

std::vector<Heads> AllAttentionVariants() {
  std::vector<Heads> all;
  for (const std::int32_t group : kMmaGroups) all.push_back({kMmaHeadDim, group});
  for (const std::int32_t group : kWgmmaGroups) all.push_back({kWgmmaHeadDim, group});
  return all;
}

class CudaAttention : public testing::TestWithParam<Heads> {
 protected:
  /// Tiles times these are more units than a GPU has multiprocessors.
  static constexpr std::int32_t kKvHeads = 6;
  static constexpr std::int32_t kSlots = 700;

  std::size_t dim() const { return static_cast<std::size_t>(GetParam().head_dim); }
  std::size_t group() const { return static_cast<std::size_t>(GetParam().group); }
  std::size_t heads() const { return kKvHeads * group(); }

  /// Row `row`'s output in double precision: keys of its spans, then of its run up to itself.
  std::vector<double> Reference(const infer::PrefillBatch& batch, std::size_t row) const {
    const auto run = std::find_if(batch.runs.begin(), batch.runs.end(), [&](const infer::Run& r) {
      return static_cast<std::int32_t>(row) >= r.first_row &&
             static_cast<std::int32_t>(row) < r.first_row + r.rows;
    });
    std::vector<std::pair<const double*, const double*>> keys;  // key and value of head 0
    const auto add = [&](bool chunk, std::size_t first, std::size_t count) {
      const std::size_t width = (heads() + 2 * kKvHeads) * dim();
      for (std::size_t i = first; i < first + count; ++i) {
        const double* chunk_k = chunk_.data() + i * width + heads() * dim();
        if (chunk) {
          keys.emplace_back(chunk_k, chunk_k + kKvHeads * dim());
        } else {
          keys.emplace_back(arena_k_.data() + i * kKvHeads * dim(),
                            arena_v_.data() + i * kKvHeads * dim());
        }
      }
    };
    for (std::int32_t s = 0; s < run->span_count; ++s) {
      const KeySpan& span = batch.spans[static_cast<std::size_t>(run->first_span + s)];
      add(span.place == KeySpan::Place::kChunk, static_cast<std::size_t>(span.first),
          static_cast<std::size_t>(span.length));
    }
    const auto first = static_cast<std::size_t>(run->first_row);
    add(true, first, row - first + 1);
    std::vector<double> out;
    for (std::size_t head = 0; head < heads(); ++head) AppendHead(keys, row, head, out);
    return out;
  }

  std::vector<double> chunk_, arena_k_, arena_v_;

 private:
  void AppendHead(const std::vector<std::pair<const double*, const double*>>& keys, std::size_t row,
                  std::size_t head, std::vector<double>& out) const {
    const double* q = chunk_.data() + row * (heads() + 2 * kKvHeads) * dim() + head * dim();
    const std::size_t offset = head / group() * dim();
    std::vector<double> weights;
    double sum = 0;
    for (const auto& [key, value] : keys) {
      double score = 0;
      for (std::size_t i = 0; i < dim(); ++i) score += q[i] * key[offset + i];
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim()))));
      sum += weights.back();
    }
    for (std::size_t i = 0; i < dim(); ++i) {
      double value = 0;
      for (std::size_t k = 0; k < keys.size(); ++k)
        value += weights[k] * keys[k].second[offset + i];
      out.push_back(value / sum);
    }
  }
};

// Cases 50, 52 and 53 on the kernels themselves: empty runs, all heads, the diagonal.
TEST_P(CudaAttention, EqualsTheSoftmaxOverSpansAndOwnRun) {
  BatchBuilder builder;
  const KeySpan anchor{3, 333, KeySpan::Place::kArena}, second{400, 65, KeySpan::Place::kArena};
  const std::int32_t parent = builder.Add(MakeTokens(129, 1), {}, {});
  const KeySpan fresh{parent, 129, KeySpan::Place::kChunk};
  for (const std::size_t length : {1U, 63U, 64U, 65U, 127U, 0U, 3U}) {
    builder.Add(MakeTokens(length, 2), {fresh}, {});
  }
  for (std::size_t i = 0; i < 40; ++i) builder.Add(MakeTokens(1 + i % 11, 3), {anchor}, {});
  for (const std::size_t length : {5U, 70U}) {
    builder.Add(MakeTokens(length, 4), {anchor, second, fresh}, {});
  }
  builder.Add(MakeTokens(9, 5), {{0, 64, KeySpan::Place::kArena}}, {});
  const infer::PrefillBatch& batch = builder.batch();
  const auto rows = static_cast<std::size_t>(batch.rows());
  const std::size_t width = (heads() + 2 * kKvHeads) * dim();
  const auto chunk = RandomBf16(rows * width, 1);
  const auto arena_k = RandomBf16(kSlots * kKvHeads * dim(), 2);
  const auto arena_v = RandomBf16(kSlots * kKvHeads * dim(), 3);
  chunk_ = ToDouble(chunk);
  arena_k_ = ToDouble(arena_k);
  arena_v_ = ToDouble(arena_v);
  AttentionWork work;
  BuildAttentionWork(batch, {}, AttentionTileTokens(GetParam().group), work);
  Guarded<QueryRow> work_rows(work.rows);
  Guarded<AttentionTile> work_tiles(work.tiles);
  Guarded<KeySegment> work_segments(work.segments);
  Guarded<__nv_bfloat16> chunk_in(chunk), arena_k_in(arena_k), arena_v_in(arena_v);
  Guarded<__nv_bfloat16> out(rows * heads() * dim());
  AttentionArguments a;
  a.rows = work_rows.get();
  a.tiles = work_tiles.get();
  a.segments = work_segments.get();
  a.tile_count = static_cast<std::int32_t>(work.tiles.size());
  a.q = chunk_in.get();
  a.query_rows = batch.rows();
  a.q_stride = a.kv_stride = static_cast<std::int64_t>(width);
  a.chunk_k = chunk_in.get() + heads() * dim();
  a.chunk_v = a.chunk_k + kKvHeads * dim();
  a.chunk_rows = batch.rows();
  a.arena_k = arena_k_in.get();
  a.arena_v = arena_v_in.get();
  a.arena_slots = kSlots;
  a.out = {out.get(), nullptr, nullptr, 0};
  a.heads = static_cast<std::int32_t>(heads());
  a.kv_heads = kKvHeads;
  a.head_dim = GetParam().head_dim;
  LaunchAttention(a, nullptr);
  const auto got = out.Read();
  std::vector<float> values;
  for (const auto value : got) values.push_back(ToFloat(value));
  std::vector<double> wanted;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto expected = Reference(batch, row);
    wanted.insert(wanted.end(), expected.begin(), expected.end());
  }
  const ErrorShare error = MeasureError<float>(values, wanted);
  EXPECT_LE(error.largest, kAttentionBf16.largest);
  EXPECT_LE(error.rms, kAttentionBf16.rms);
  if (GetParam().head_dim != kWgmmaHeadDim) return;
  ActivationOut quantised(batch.rows(), static_cast<std::int32_t>(heads() * dim()), true);
  a.out = quantised.get();
  LaunchAttention(a, nullptr);
  quantised.ExpectNear(wanted, BlockScale::kExact, kAttentionSlack);
}
INSTANTIATE_TEST_SUITE_P(Variants, CudaAttention, testing::ValuesIn(AllAttentionVariants()),
                         [](const auto& variant) {
                           return std::to_string(variant.param.head_dim) + "x" +
                                  std::to_string(variant.param.group);
                         });

/// Operands of a block-scaled product and its exact value at some rows.
struct Fp8Product {
  Fp8Product(std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : m(rows), n(columns), k(depth), pitch((rows + 3) / 4 * 4) {
    std::mt19937 random(9);
    a.resize(static_cast<std::size_t>(m * k));
    b.resize(static_cast<std::size_t>(n * k));
    for (auto* matrix : {&a, &b}) {
      // Codes of both signs up to 0x6F = 120, as quantised activations have.
      for (auto& value : *matrix)
        value.__x = static_cast<std::uint8_t>(random() % 112 | (random() & 128));
    }
    a_scales.resize(static_cast<std::size_t>(pitch * (k / 128)));
    b_scales.resize(static_cast<std::size_t>(n / 128 * (k / 128)));
    for (auto* scales : {&a_scales, &b_scales}) {
      for (float& scale : *scales) scale = 0.01F + static_cast<float>(random() % 1000) * 1e-4F;
    }
  }

  static double ValueOf(__nv_fp8_e4m3 code) {
    static const std::array<double, 256> values = [] {
      std::array<double, 256> all{};
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<double>(infer::Fp8ToFloat(static_cast<std::uint8_t>(i)));
      }
      return all;
    }();
    return values[code.__x];
  }

  double At(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    const __nv_fp8_e4m3* x = &a[static_cast<std::size_t>(row * k)];
    const __nv_fp8_e4m3* y = &b[static_cast<std::size_t>(column * k)];
    for (std::int64_t block = 0; block < k / 128; ++block) {
      double products = 0;
      for (std::int64_t i = block * 128; i < block * 128 + 128; ++i) {
        products += ValueOf(x[i]) * ValueOf(y[i]);
      }
      const float a_scale = a_scales[static_cast<std::size_t>(block * pitch + row)];
      const float b_scale = b_scales[static_cast<std::size_t>(column / 128 * (k / 128) + block)];
      sum += products * static_cast<double>(a_scale) * static_cast<double>(b_scale);
    }
    return sum;
  }

  std::int64_t m, n, k, pitch;
  std::vector<__nv_fp8_e4m3> a, b;
  std::vector<float> a_scales, b_scales;
};

void ExpectProduct(const Fp8Product& product, std::int64_t out_stride) {
  Guarded<__nv_fp8_e4m3> a(product.a), b(product.b);
  Guarded<float> a_scales(product.a_scales), b_scales(product.b_scales);
  Guarded<__nv_bfloat16> out(static_cast<std::size_t>(product.m * out_stride));
  Fp8GemmArguments arguments;
  arguments.a = a.get();
  arguments.a_scales = a_scales.get();
  arguments.a_scale_pitch = product.pitch;
  arguments.b = b.get();
  arguments.b_scales = b_scales.get();
  arguments.out = out.get();
  arguments.out_stride = out_stride;
  arguments.shape = {product.m, product.n, product.k};
  LaunchFp8Gemm(arguments, nullptr);
  const auto got = out.Read();
  std::vector<float> values;
  std::vector<double> wanted;
  const std::int64_t step = std::max<std::int64_t>(1, product.m / 150);
  for (std::int64_t row = product.m - 1; row >= 0; row -= step) {
    const auto at = static_cast<std::size_t>(row * out_stride);
    for (std::int64_t column = 0; column < product.n; ++column) {
      values.push_back(ToFloat(got[at + static_cast<std::size_t>(column)]));
      wanted.push_back(product.At(row, column));
    }
    const auto beside = std::span(got).subspan(at + static_cast<std::size_t>(product.n),
                                               static_cast<std::size_t>(out_stride - product.n));
    EXPECT_TRUE(IsSentinel(beside)) << "row " << row;
  }
  if (wanted.empty()) return;
  const ErrorShare error = MeasureError<float>(values, wanted);
  EXPECT_LE(error.largest, kFp8Product.largest);
  EXPECT_LE(error.rms, kFp8Product.rms);
}

// Case 62: the scales are no powers of two, and nothing rounds them.
TEST(CudaProducts, Fp8ProductsAtRaggedRows) {
  for (const std::int32_t rows : kRaggedRows) {
    SCOPED_TRACE(rows);
    ExpectProduct({rows, 384, 640}, 384);
    ExpectProduct({rows, 256, 256}, 640);
  }
}

TEST(CudaProducts, Fp8ProductsInSmallTilesOverSeveralWaves) {
  ASSERT_EQ(SelectFp8Gemm({1'000, 2'560, 2'560}), Fp8Gemm::k128x128);
  ASSERT_GT(GemmTiles({1'000, 2'560, 2'560}, 128, 128), 132);
  ExpectProduct({1'000, 2'560, 2'560}, 2'560);
}

TEST(CudaProducts, Fp8ProductsInLargeTiles) {
  ASSERT_EQ(SelectFp8Gemm({33'837, 256, 256}), Fp8Gemm::k256x128);
  ExpectProduct({33'837, 256, 256}, 256);
}

// Case 55: elements beyond 2^31 of what a launch reads and writes.
TEST(CudaLargeIndices, Case55TheLastRowOfALargeSwiGluAndProduct) {
  constexpr std::int64_t kRows = 110'500, kWidth = 19'456;
  static_assert(kRows * kWidth > (std::int64_t{1} << 31));
  Guarded<__nv_bfloat16> gate_up(kRows * kWidth);
  const Fp8Product product(kRows, 128, 128);
  std::vector<__nv_fp8_e4m3> weight;
  std::vector<float> weight_scales;
  for (std::int64_t i = 0; i < kWidth / 128; ++i) {
    weight.insert(weight.end(), product.b.begin(), product.b.end());
    weight_scales.push_back(product.b_scales[0]);
  }
  Guarded<__nv_fp8_e4m3> a(product.a), b(weight);
  Guarded<float> a_scales(product.a_scales), b_scales(weight_scales);
  LaunchFp8Gemm({a.get(),
                 a_scales.get(),
                 product.pitch,
                 b.get(),
                 b_scales.get(),
                 gate_up.get(),
                 kWidth,
                 {kRows, kWidth, 128}},
                nullptr);
  Guarded<__nv_bfloat16> inner(kRows * kWidth / 2);
  LaunchSwiGlu(
      {gate_up.get(), {inner.get(), nullptr, nullptr, 0}, kRows, kWidth / 2, BlockScale::kExact},
      nullptr);
  const auto last = gate_up.Read((kRows - 1) * kWidth, kWidth);
  std::vector<double> wanted;
  for (std::size_t i = 0; i < kWidth / 2; ++i) {
    const auto gate = static_cast<double>(ToFloat(last[i]));
    wanted.push_back(gate / (1 + std::exp(-gate)) *
                     static_cast<double>(ToFloat(last[i + kWidth / 2])));
  }
  for (std::int64_t column = 0; column < kWidth; column += 61) {
    const double value = product.At(kRows - 1, column % 128);
    ASSERT_NEAR(static_cast<double>(ToFloat(last[static_cast<std::size_t>(column)])), value,
                0.02 * std::abs(value) + 0.02);
  }
  ActivationOut::ExpectBf16(inner.Read((kRows - 1) * kWidth / 2, kWidth / 2), wanted);
}

TEST(CudaLargeIndices, Case55KeysInTheLastSlotsOfALargeArena) {
  constexpr std::int64_t kKvHeads = 8, kDim = 128, kSlots = (std::int64_t{1} << 21) + 100;
  static_assert(kSlots * kKvHeads * kDim > (std::int64_t{1} << 31));
  constexpr std::int64_t kFirst = kSlots - 70;
  Guarded<__nv_bfloat16> arena_k(kSlots * kKvHeads * kDim), arena_v(kSlots * kKvHeads * kDim);
  const auto run = [&](std::int64_t first, std::int64_t slots) {
    constexpr std::size_t kWidth = 3 * kKvHeads * kDim * 2;
    constexpr std::int32_t kHeads = 32;
    constexpr std::size_t kRowWidth = (kHeads + 2 * kKvHeads) * kDim;
    static_assert(kWidth == kRowWidth);
    BatchBuilder builder;
    builder.Add(MakeTokens(5, 1), {{first, 70, KeySpan::Place::kArena}}, {});
    const auto chunk = RandomBf16(70 * kRowWidth, 5);
    Guarded<__nv_bfloat16> chunk_in(chunk);
    std::vector<std::int32_t> positions(70, 0);
    std::vector<std::int64_t> kv_slots;
    for (std::int64_t i = 0; i < 70; ++i) kv_slots.push_back(first + i);
    Guarded<std::int32_t> positions_in(positions);
    Guarded<std::int64_t> slots_in(kv_slots);
    Guarded<float2> table(std::vector<float2>(kDim / 2, float2{1, 0}));
    RopeArguments rope;
    rope.heads = chunk_in.get();
    rope.row_stride = kRowWidth;
    rope.q_heads = kHeads;
    rope.k_heads = kKvHeads;
    rope.rotation = table.get();
    rope.positions = positions_in.get();
    rope.kv_slots = slots_in.get();
    rope.arena_k = arena_k.get();
    rope.arena_v = arena_v.get();
    rope.rows = 70;
    rope.head_dim = kDim;
    LaunchRope(rope, nullptr);
    AttentionWork work;
    BuildAttentionWork(builder.batch(), {}, AttentionTileTokens(4), work);
    Guarded<QueryRow> rows(work.rows);
    Guarded<AttentionTile> tiles(work.tiles);
    Guarded<KeySegment> segments(work.segments);
    Guarded<__nv_bfloat16> out(5 * kHeads * kDim);
    AttentionArguments a;
    a.rows = rows.get();
    a.tiles = tiles.get();
    a.segments = segments.get();
    a.tile_count = static_cast<std::int32_t>(work.tiles.size());
    a.q = chunk_in.get();
    a.query_rows = 70;
    a.q_stride = a.kv_stride = kRowWidth;
    a.chunk_k = chunk_in.get() + kHeads * kDim;
    a.chunk_v = a.chunk_k + kKvHeads * kDim;
    a.chunk_rows = 70;
    a.arena_k = arena_k.get();
    a.arena_v = arena_v.get();
    a.arena_slots = slots;
    a.out = {out.get(), nullptr, nullptr, 0};
    a.heads = kHeads;
    a.kv_heads = kKvHeads;
    a.head_dim = kDim;
    LaunchAttention(a, nullptr);
    std::vector<float> values;
    for (const auto value : out.Read()) values.push_back(ToFloat(value));
    return values;
  };
  const std::vector<float> far = run(kFirst, kSlots);
  const std::vector<float> near = run(0, kSlots);
  EXPECT_EQ(far, near);
  EXPECT_GT(*std::max_element(near.begin(), near.end()), 0.1F);
}

}  // namespace
}  // namespace quail::parity
