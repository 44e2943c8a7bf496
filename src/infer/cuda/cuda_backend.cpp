#include "infer/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "infer/cuda/activations.h"
#include "infer/cuda/attention_select.h"
#include "infer/cuda/cuda_chunk.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/device_support.h"
#include "infer/cuda/device_weights.h"
#include "infer/cuda/gemm_bf16.h"
#include "infer/cuda/gpu_usage.h"
#include "infer/cuda/kv_storage.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/model_support.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

constexpr std::int64_t kLogProbRows = 256;  ///< rows of full-vocabulary logits held at once

CudaChunk& Cast(Chunk& chunk) { return static_cast<CudaChunk&>(chunk); }

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options) : options_(options), usage_(options.device) {
    CheckCuda(cudaSetDevice(options.device), "cudaSetDevice");
    cudaDeviceProp properties{};
    CheckCuda(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties");
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    gemm_ = std::make_unique<Bf16Gemm>(stream_);
    info_.backend = "cuda";
    info_.device = properties.name;
    info_.threads = properties.multiProcessorCount;
    info_.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    info_.kv_alignment = 64;
    info_.max_chunk_tokens = options.max_chunk_tokens;
    info_.preferred_chunk_tokens = options.max_chunk_tokens;
  }

  ~CudaBackend() override {
    cudaStreamSynchronize(stream_);
    for (ChunkSlot& slot : slots_) cudaEventDestroy(slot.done);
    gemm_.reset();
    cudaStreamDestroy(stream_);
  }

  const BackendInfo& info() const override { return info_; }

  std::optional<DeviceUsage> usage() override { return usage_.Read(); }

  void Configure(const BackendModel& model) override {
    CheckSupported(model.spec);
    CheckFits(model.spec, options_.max_chunk_tokens, static_cast<std::int64_t>(FreeDeviceBytes()),
              info_.device);
    spec_ = model.spec;
    fp8_ = spec_.weight_type == spec::WeightType::kFp8Block;
    const PowerOfTwoScales scales = options_.power_of_two_scales;
    rounding_ = scales == PowerOfTwoScales::kAll ? BlockScale::kPowerOfTwo : BlockScale::kExact;
    attention_rounding_ =
        scales == PowerOfTwoScales::kNone ? BlockScale::kExact : BlockScale::kPowerOfTwo;
    info_.compute_type = fp8_ ? spec::WeightType::kFp8Block : spec::WeightType::kBf16;
    LoadRotation(model.rope);
    activations_.Allocate(spec_, fp8_, options_.max_chunk_tokens);
    if (options_.poison_activations) activations_.Poison();
  }

  WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return Keep(UploadLinear(parts, fp8_));
  }

  WeightId LoadEmbedding(const WeightTensor& table) override {
    return Keep(UploadRows(table, 0, table.rows()));
  }

  WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) override {
    return Keep(UploadPickedRows(matrix, rows));
  }

  WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return Keep(UploadLinear(parts, false));
  }

  void ReserveKv(const KvShape& shape, std::int64_t tokens) override {
    kv_.Reserve(shape, tokens);
    // Loading ran on the default stream, for which stream_ does not wait.
    CheckCuda(cudaDeviceSynchronize(), "loading");
    info_.kv_bytes_per_token = kv_.bytes_per_token();
  }

  std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) override {
    QUAIL_CHECK_LE(batch.rows(), options_.max_chunk_tokens);
    auto chunk = std::make_unique<CudaChunk>(FreeSlot());
    chunk->Describe(batch, AttentionTileTokens(spec_.heads / spec_.kv_heads));
    chunk->ReserveResults();
    chunk->slot.arena.Upload(stream_);
    return chunk;
  }

  void Embed(Chunk& chunk, WeightId table, WeightId first_norm) override {
    const CudaChunk& c = Cast(chunk);
    EmbedArguments a;
    a.tokens = c.slot.arena.At<std::int32_t>(c.tokens);
    a.table = Bf16(table);
    a.norm_weight = Bf16(first_norm);
    a.residual = activations_.residual();
    a.out = activations_.normed();
    a.rows = c.rows;
    a.columns = spec_.hidden;
    a.epsilon = static_cast<float>(spec_.norm_epsilon);
    a.rounding = rounding_;
    LaunchEmbed(a, stream_);
  }

  void Qkv(Chunk& chunk, const QkvWeights& weights, std::int32_t layer,
           bool answers_only) override {
    CudaChunk& c = Cast(chunk);
    const DeviceWeight& projection = weight(weights.projection);
    const std::int64_t q_width = spec_.q_width();
    const std::int64_t kv_width = 2 * spec_.kv_width();
    const std::int64_t width = q_width + kv_width;
    auto* heads = activations_.heads();
    if (!answers_only) {
      Multiply(activations_.normed(), c.rows, projection, {0, width}, {heads, width});
      Rotate(c, weights, layer,
             {heads, width, spec_.heads, spec_.kv_heads, c.positions, c.kv_slots, c.rows});
      return;
    }
    // Keys and values of every row, queries of the kept rows only.
    Multiply(activations_.normed(), c.rows, projection, {q_width, kv_width},
             {heads + q_width, width});
    Rotate(c, weights, layer,
           {heads + q_width, width, 0, spec_.kv_heads, c.positions, c.kv_slots, c.rows});
    Gather(c);
    c.answers_only = true;
    auto* queries = activations_.kept_queries();
    Multiply(activations_.kept_normed(), c.kept, projection, {0, q_width}, {queries, q_width});
    Rotate(c, weights, layer,
           {queries, q_width, spec_.heads, 0, c.kept_positions, std::nullopt, c.kept});
  }

  void Attention(Chunk& chunk, std::int32_t layer) override {
    const CudaChunk& c = Cast(chunk);
    const DescriptorArena& arena = c.slot.arena;
    const WorkOffsets& work = c.answers_only ? c.kept_work : c.all_work;
    const std::int64_t width = spec_.q_width() + 2 * spec_.kv_width();
    const auto* heads = activations_.heads();
    AttentionArguments a;
    a.rows = arena.At<QueryRow>(work.rows);
    a.tiles = arena.At<AttentionTile>(work.tiles);
    a.segments = arena.At<KeySegment>(work.segments);
    a.tile_count = work.tile_count;
    a.compact_queries = c.answers_only;
    a.q = c.answers_only ? activations_.kept_queries() : heads;
    a.query_rows = c.hidden_rows();
    a.q_stride = c.answers_only ? spec_.q_width() : width;
    a.chunk_k = heads + spec_.q_width();
    a.chunk_v = a.chunk_k + spec_.kv_width();
    a.chunk_rows = c.rows;
    a.kv_stride = width;
    if (kv_.slots() > 0) {
      a.arena_slots = kv_.slots();
      a.arena_k = kv_.keys(layer);
      a.arena_v = kv_.values(layer);
    }
    a.out = activations_.attention();
    a.heads = spec_.heads;
    a.kv_heads = spec_.kv_heads;
    a.head_dim = spec_.head_dim;
    a.rounding = attention_rounding_;
    LaunchAttention(a, stream_);
  }

  void AttentionOutput(Chunk& chunk, WeightId projection, WeightId next_norm) override {
    const CudaChunk& c = Cast(chunk);
    MultiplyAndAdd(c, activations_.attention(), weight(projection), next_norm, false);
  }

  void GateUp(Chunk& chunk, WeightId gate_up) override {
    const CudaChunk& c = Cast(chunk);
    auto* out = activations_.gate_up();
    const std::int64_t width = std::int64_t{2} * spec_.ffn;
    Multiply(c.answers_only ? activations_.kept_normed() : activations_.normed(), c.hidden_rows(),
             weight(gate_up), {0, width}, {out, width});
    SwiGluArguments a;
    a.gate_up = out;
    a.inner = activations_.inner();
    a.rows = c.hidden_rows();
    a.columns = spec_.ffn;
    a.rounding = rounding_;
    LaunchSwiGlu(a, stream_);
  }

  void Down(Chunk& chunk, WeightId down, WeightId next_norm) override {
    const CudaChunk& c = Cast(chunk);
    MultiplyAndAdd(c, activations_.inner(), weight(down), next_norm, c.answers_only);
  }

  void AnswerLogits(Chunk& chunk, WeightId head) override {
    CudaChunk& c = Cast(chunk);
    QUAIL_CHECK(c.answers_only);
    c.answer_columns = static_cast<std::int32_t>(weight(head).rows);
    QUAIL_CHECK_LE(static_cast<std::size_t>(c.answer_columns), kMaxAnswerColumns);
    AnswerArguments a;
    a.x = activations_.kept_final();
    a.row_index = c.slot.arena.At<std::int32_t>(c.answer_index);
    a.head = Bf16(head);
    a.logits = c.slot.device_results.as<float>() + c.scored;
    a.rows = c.answers;
    a.n = c.answer_columns;
    a.columns = spec_.hidden;
    LaunchAnswerLogits(a, stream_);
  }

  void LogProbs(Chunk& chunk, WeightId head, std::int32_t vocabulary) override;

  void Finish(Chunk& chunk) override {
    const CudaChunk& c = Cast(chunk);
    const std::size_t bytes =
        (static_cast<std::size_t>(c.scored) + c.answer_floats()) * sizeof(float);
    if (bytes > 0) {
      CheckCuda(cudaMemcpyAsync(c.slot.results.data(), c.slot.device_results.data(), bytes,
                                cudaMemcpyDeviceToHost, stream_),
                "result copy");
    }
    CheckCuda(cudaEventRecord(c.slot.done, stream_), "cudaEventRecord");
  }

  ChunkResult Wait(Chunk& chunk) override {
    CudaChunk& c = Cast(chunk);
    if (cudaEventQuery(c.slot.done) == cudaErrorNotReady) usage_.SampleSometimes();
    ThrowOnFault(cudaEventSynchronize(c.slot.done),
                 fmt::format("the GPU failed in a chunk of {} tokens", c.rows).c_str());
    c.waited = true;
    const auto* values = c.slot.results.as<float>();
    return {{values + c.scored, c.answer_floats()}, {values, static_cast<std::size_t>(c.scored)}};
  }

  void CopyKvOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) override {
    kv_.CopyOut(first_slot, slots, host, stream_);
  }

  void CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                std::span<const std::byte> host) override {
    kv_.CopyIn(first_slot, slots, host, stream_);
  }

 private:
  /// Rows [first, first + count) of a stacked matrix.
  struct RowRange {
    std::int64_t first;
    std::int64_t count;
  };
  struct Output {
    __nv_bfloat16* data;
    std::int64_t stride;
  };
  struct HeadRows {
    __nv_bfloat16* heads;
    std::int64_t stride;
    std::int32_t q_heads;
    std::int32_t kv_heads;
    std::size_t positions;
    std::optional<std::size_t> kv_slots;
    std::int32_t rows;
  };

  void LoadRotation(const Rope& rope) {
    const std::size_t half = rope.inverse_frequencies.size();
    QUAIL_CHECK_EQ(half, static_cast<std::size_t>(spec_.head_dim / 2));
    std::vector<float2> table(static_cast<std::size_t>(spec_.context) * half);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const double angle =
          static_cast<double>(i / half) * static_cast<double>(rope.inverse_frequencies[i % half]);
      table[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }
    rotation_ = DeviceBuffer(table.size() * sizeof(float2), "the rotation table");
    CheckCuda(cudaMemcpy(rotation_.data(), table.data(), rotation_.size(), cudaMemcpyHostToDevice),
              "rotation table copy");
  }

  ChunkSlot& FreeSlot() {
    for (ChunkSlot& slot : slots_) {
      if (!slot.in_use) {
        if (slot.abandoned) CheckCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
        slot.in_use = true;
        slot.arena.Clear();
        return slot;
      }
    }
    ChunkSlot& slot = slots_.emplace_back();
    CheckCuda(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming), "cudaEventCreate");
    slot.in_use = true;
    return slot;
  }

  WeightId Keep(DeviceWeight weight) {
    weights_.push_back(std::move(weight));
    info_.free_memory_bytes = static_cast<std::int64_t>(FreeDeviceBytes());
    return WeightId(static_cast<std::uint32_t>(weights_.size() - 1));
  }
  const DeviceWeight& weight(WeightId id) const { return weights_[id.value()]; }
  const __nv_bfloat16* Bf16(WeightId id) const {
    QUAIL_CHECK(!weight(id).is_fp8);
    return weight(id).values.as<__nv_bfloat16>();
  }

  /// out = x W[rows]^T.
  void Multiply(const Activation& x, std::int64_t m, const DeviceWeight& w, RowRange rows,
                Output out) {
    const GemmShape shape{m, rows.count, w.columns};
    if (!w.is_fp8) {
      if (x.bf16 == nullptr)
        throw Error(ErrorCode::kModel, "a linear layer of an fp8 model is not stored as fp8");
      gemm_->Launch({x.bf16, w.values.as<__nv_bfloat16>() + rows.first * w.columns, out.data,
                     out.stride, shape, false});
      return;
    }
    Fp8GemmArguments a;
    a.a = x.fp8;
    a.a_scales = x.scales;
    a.a_scale_pitch = x.scale_pitch;
    a.b = w.values.as<__nv_fp8_e4m3>() + rows.first * w.columns;
    a.b_scales = w.scales.as<float>() + rows.first / 128 * (w.columns / 128);
    a.out = out.data;
    a.out_stride = out.stride;
    a.shape = shape;
    LaunchFp8Gemm(a, stream_);
  }

  /// residual += x W^T; the next verb's input is its norm, for the head (`final`) in bf16.
  void MultiplyAndAdd(const CudaChunk& c, const Activation& x, const DeviceWeight& w,
                      WeightId next_norm, bool final) {
    auto* delta = activations_.delta();
    Multiply(x, c.hidden_rows(), w, {0, w.rows}, {delta, w.rows});
    NormArguments a;
    a.delta = delta;
    a.norm_weight = Bf16(next_norm);
    a.residual = c.answers_only ? activations_.kept_residual() : activations_.residual();
    a.out = c.answers_only ? activations_.kept_normed() : activations_.normed();
    if (final) a.out = {activations_.kept_final(), nullptr, nullptr, 0};
    a.rows = c.hidden_rows();
    a.columns = spec_.hidden;
    a.epsilon = static_cast<float>(spec_.norm_epsilon);
    a.rounding = rounding_;
    LaunchAddNorm(a, stream_);
  }

  void Rotate(const CudaChunk& c, const QkvWeights& weights, std::int32_t layer,
              const HeadRows& at) {
    RopeArguments a;
    a.heads = at.heads;
    a.row_stride = at.stride;
    a.q_heads = at.q_heads;
    a.k_heads = at.kv_heads;
    if (weights.bias) {
      const bool skips_queries = at.q_heads == 0;
      a.bias = Bf16(*weights.bias) + (skips_queries ? spec_.q_width() : 0);
    }
    if (weights.q_norm) a.q_norm = Bf16(*weights.q_norm);
    if (weights.k_norm) a.k_norm = Bf16(*weights.k_norm);
    a.rotation = rotation_.as<float2>();
    a.positions = c.slot.arena.At<std::int32_t>(at.positions);
    if (at.kv_slots && kv_.slots() > 0) {
      a.kv_slots = c.slot.arena.At<std::int64_t>(*at.kv_slots);
      a.arena_k = kv_.keys(layer);
      a.arena_v = kv_.values(layer);
    }
    a.rows = at.rows;
    a.head_dim = spec_.head_dim;
    a.epsilon = static_cast<float>(spec_.norm_epsilon);
    LaunchRope(a, stream_);
  }

  void Gather(const CudaChunk& c) {
    GatherArguments a;
    a.row_index = c.slot.arena.At<std::int32_t>(c.kept_rows);
    a.residual = activations_.residual();
    a.residual_out = activations_.kept_residual();
    a.in = activations_.normed();
    a.out = activations_.kept_normed();
    a.rows = c.kept;
    a.columns = spec_.hidden;
    LaunchGather(a, stream_);
  }

  CudaOptions options_;
  GpuUsage usage_;
  BackendInfo info_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Bf16Gemm> gemm_;
  spec::ModelSpec spec_;
  bool fp8_ = false;
  BlockScale rounding_ = BlockScale::kExact;  ///< of norms and SwiGLU
  BlockScale attention_rounding_ = BlockScale::kExact;
  DeviceBuffer rotation_;
  Activations activations_;
  DeviceBuffer logits_;       ///< fp32 [kLogProbRows, V], made when first needed
  DeviceBuffer scored_rows_;  ///< bf16 [kLogProbRows, C]
  std::vector<DeviceWeight> weights_;
  KvStorage kv_;
  std::deque<ChunkSlot> slots_;
};

void CudaBackend::LogProbs(Chunk& chunk, WeightId head, std::int32_t vocabulary) {
  const CudaChunk& c = Cast(chunk);
  QUAIL_CHECK(c.answers_only);
  if (c.scored == 0) return;
  const DeviceWeight& matrix = weight(head);
  const auto row_bytes = static_cast<std::size_t>(spec_.hidden) * 2;
  if (logits_.size() == 0) {
    logits_ = DeviceBuffer(static_cast<std::size_t>(kLogProbRows * matrix.rows) * 4, "logits");
    scored_rows_ = DeviceBuffer(static_cast<std::size_t>(kLogProbRows) * row_bytes, "scored rows");
  }
  const auto* targets = c.slot.arena.At<std::int32_t>(c.scored_tokens);
  const auto* index = c.slot.arena.At<std::int32_t>(c.scored_index);
  auto* out = c.slot.device_results.as<float>();
  for (std::int32_t first = 0; first < c.scored; first += kLogProbRows) {
    const std::int32_t rows = std::min<std::int32_t>(kLogProbRows, c.scored - first);
    GatherArguments gather;
    gather.row_index = index + first;
    gather.residual = activations_.kept_final();
    gather.residual_out = scored_rows_.as<__nv_bfloat16>();
    gather.rows = rows;
    gather.columns = spec_.hidden;
    LaunchGather(gather, stream_);
    gemm_->Launch({scored_rows_.as<__nv_bfloat16>(),
                   Bf16(head),
                   logits_.data(),
                   matrix.rows,
                   {rows, matrix.rows, matrix.columns},
                   true});
    LaunchLogProbs(
        {logits_.as<float>(), targets + first, out + first, rows, vocabulary, matrix.rows},
        stream_);
  }
}

}  // namespace

std::unique_ptr<Backend> CreateCudaBackend(const CudaOptions& options) {
  const CudaAvailability availability = FindCuda(options.device);
  if (!availability.usable) throw Error(ErrorCode::kDevice, availability.reason);
  return std::make_unique<CudaBackend>(options);
}

}  // namespace quail::infer::cuda
