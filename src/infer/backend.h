#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/strong_id.h"
#include "infer/prefill_batch.h"
#include "infer/weights/weight_source.h"
#include "spec/model_spec.h"

/// The waist between models and devices: the verbs of a transformer layer, a stage each. A backend
/// knows no model names and no prompts. Letters: T rows of a chunk, A answer rows, C hidden, H
/// heads, K kv heads, D head size, F feed-forward width, V vocabulary.
namespace quail::infer {

/// A weight held by a backend, in the form it computes with.
using WeightId = base::StrongId<struct WeightIdTag, std::uint32_t>;

struct KvShape {
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
};

struct BackendInfo {
  std::string backend;  ///< "cpu", "cuda", "counting"
  std::string device;   ///< product name of the processor
  std::int32_t threads = 0;
  std::int64_t memory_bytes = 0;
  /// Of a device with memory of its own, what is left beside all that has been loaded; 0 elsewhere.
  std::int64_t free_memory_bytes = 0;
  spec::WeightType compute_type = spec::WeightType::kF32;  ///< of products
  std::int32_t kv_value_bytes = 2;                         ///< of one value of K or V
  std::int64_t kv_bytes_per_token = 0;                     ///< 0 until ReserveKv
  std::int32_t kv_alignment = 1;  ///< a node's KV best begins at a multiple of this many slots
  std::int32_t preferred_chunk_tokens = 0;  ///< of the configured model
  std::int32_t max_chunk_tokens = 0;
  /// A row's results are the same bits whatever else is in its chunk and however its path is cut.
  bool deterministic = false;
};

/// Clock and power of a device while a chunk ran.
struct DeviceSample {
  double megahertz = 0;
  double watts = 0;
};

/// What a device has told about itself since its backend was made. Energy and samples only grow:
/// what is new between two readings is of the time between them.
struct DeviceUsage {
  std::int64_t peak_memory_bytes = 0;  ///< most that this process held on the device
  std::optional<double> joules;        ///< of the whole device; absent where it is not measured
  std::vector<DeviceSample> samples;
};

/// Device memory and descriptors of one forward pass in flight. The hidden state in it is opaque: a
/// backend may keep it normalised and quantised.
class Chunk {
 public:
  virtual ~Chunk() = default;
};

/// Rotary embedding on the halves (i, i + D/2) of each head, HF style. `inverse_frequencies`: f32
/// [D / 2].
struct Rope {
  std::vector<float> inverse_frequencies;
};

struct QkvWeights {
  WeightId projection;  ///< [(H + 2K) * D, C]: all query heads, all key heads, all value heads
  std::optional<WeightId> bias;    ///< [(H + 2K) * D]
  std::optional<WeightId> q_norm;  ///< [D], RMS norm of each query head before rotation
  std::optional<WeightId> k_norm;  ///< [D]
};

/// Shapes that all layers share; fixed before the first weight is loaded.
struct BackendModel {
  spec::ModelSpec spec;
  Rope rope;
};

/// What a chunk's forward pass gave. Valid until the chunk is destroyed.
struct ChunkResult {
  std::span<const float> answer_logits;  ///< f32 [A, rows of the answer head]
  std::span<const float> log_probs;      ///< f32 [S], natural logarithm, over the whole vocabulary
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const BackendInfo& info() const = 0;
  /// nullopt: this backend measures nothing of its device.
  virtual std::optional<DeviceUsage> usage() { return std::nullopt; }

  // Loading. Once, in this order: Configure, Load.., ReserveKv.
  /// Throws Error{kDevice | kUnsupported} for shapes that it cannot run.
  virtual void Configure(const BackendModel& model) = 0;
  /// A matrix for products Y = X W^T, its parts stacked by rows. Throws Error{kOutOfMemory}.
  virtual WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) = 0;
  /// A matrix whose rows are looked up [V, C].
  virtual WeightId LoadEmbedding(const WeightTensor& table) = 0;
  /// Some rows of a matrix, for the answer head [rows.size(), C].
  virtual WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) = 0;
  /// A vector: norm weights, biases stacked.
  virtual WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) = 0;
  /// Slots for `tokens` positions of K and V in all layers. Throws Error{kOutOfMemory} with the
  /// sizes.
  virtual void ReserveKv(const KvShape& shape, std::int64_t tokens) = 0;

  // One forward pass: Begin, the verbs in a model's order, Finish, later Wait. Two chunks may be in
  // flight; they run in the order of Begin. What a chunk wrote to the KV arena is seen by every
  // later one.
  /// Copies the descriptors; `batch` may be reused afterwards.
  virtual std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) = 0;
  /// hidden [T, C] = table[tokens]; prepares RMSNorm(hidden) * first_norm for the next verb.
  virtual void Embed(Chunk& chunk, WeightId table, WeightId first_norm) = 0;
  /// Projects, adds the bias, norms heads, rotates queries and keys by their positions, places K
  /// and V of `layer` in the chunk and, where kv_slots >= 0, in the arena. With `answers_only` (the
  /// last layer) queries are made, and the hidden state kept, for answer and scored rows only.
  virtual void Qkv(Chunk& chunk, const QkvWeights& weights, std::int32_t layer,
                   bool answers_only) = 0;
  /// softmax(Q K^T / sqrt(D)) V over every run's spans and, causally, itself.
  virtual void Attention(Chunk& chunk, std::int32_t layer) = 0;
  /// hidden += attention W^T; prepares RMSNorm(hidden) * next_norm.
  virtual void AttentionOutput(Chunk& chunk, WeightId projection, WeightId next_norm) = 0;
  /// inner [T, F] = silu(X Wg^T) * (X Wu^T); gate_up is [2F, C], gate first.
  virtual void GateUp(Chunk& chunk, WeightId gate_up) = 0;
  /// hidden += inner W^T; prepares RMSNorm(hidden) * next_norm.
  virtual void Down(Chunk& chunk, WeightId down, WeightId next_norm) = 0;
  /// Logits of the answer rows over the rows of `head`, fp32 accumulation.
  virtual void AnswerLogits(Chunk& chunk, WeightId head) = 0;
  /// Log-probabilities of the scored tokens under softmax over all rows of `head` below
  /// `vocabulary`.
  virtual void LogProbs(Chunk& chunk, WeightId head, std::int32_t vocabulary) = 0;
  /// Ends the pass: nothing more is added to the chunk.
  virtual void Finish(Chunk& chunk) = 0;
  /// Blocks until the chunk is done. A device fault is Error{kDevice} naming the chunk's size.
  virtual ChunkResult Wait(Chunk& chunk) = 0;

  // Moving KV: what a node holds can leave the device and come back. Host layout: opaque,
  // kv_bytes_per_token a slot.
  virtual void CopyKvOut(std::int64_t first_slot, std::int64_t slots,
                         std::span<std::byte> host) = 0;
  virtual void CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                        std::span<const std::byte> host) = 0;
};

}  // namespace quail::infer
