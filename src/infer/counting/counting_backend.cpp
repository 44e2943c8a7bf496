#include "infer/counting/counting_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

class CountingChunk final : public Chunk {
 public:
  std::uint64_t number = 0;
  std::vector<float> logits;
  std::vector<float> log_probs;
};

/// Of the i-th of those that begin at `first`.
std::size_t IndexOf(std::int32_t first, std::int32_t i) {
  return static_cast<std::size_t>(first) + static_cast<std::size_t>(i);
}

std::uint64_t Mix(std::uint64_t value) {
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27;
  value *= 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// In [0, 1).
float Fraction(std::uint64_t hash) { return static_cast<float>(hash >> 40) * 0x1p-24F; }

}  // namespace

std::uint64_t ExtendPathHash(std::uint64_t path, std::int32_t token) {
  return Mix(path * 0x9e3779b97f4a7c15ULL + static_cast<std::uint32_t>(token) + 1) | 1;
}

std::uint64_t PathHash(std::span<const base::TokenId> tokens) {
  std::uint64_t path = 0;
  for (const base::TokenId token : tokens) path = ExtendPathHash(path, token.value());
  return path;
}

float CountingMargin(std::uint64_t path) { return 2 * Fraction(Mix(path + 1)) - 1; }

float CountingLogProb(std::uint64_t path, std::int32_t token) {
  return -8 * (Fraction(ExtendPathHash(path, token)) + 0x1p-25F);
}

CountingBackend::CountingBackend(CountingOptions options) : options_(std::move(options)) {
  info_.backend = "counting";
  info_.device = "none";
  info_.threads = 1;
  info_.kv_bytes_per_token = options_.kv_bytes_per_token;
  info_.kv_alignment = options_.kv_alignment;
  info_.preferred_chunk_tokens = options_.preferred_chunk_tokens;
  info_.max_chunk_tokens = options_.max_chunk_tokens;
  info_.deterministic = true;
}

CountingBackend::~CountingBackend() = default;

void CountingBackend::Configure(const BackendModel& model) {
  info_.compute_type = model.spec.weight_type;
}

WeightId CountingBackend::LoadLinear(std::span<const std::shared_ptr<const WeightTensor>>) {
  return WeightId(weights_++);
}
WeightId CountingBackend::LoadEmbedding(const WeightTensor&) { return WeightId(weights_++); }
WeightId CountingBackend::LoadRows(const WeightTensor&, std::span<const std::int32_t> rows) {
  options_.answer_rows = static_cast<std::int32_t>(rows.size());
  return WeightId(weights_++);
}
WeightId CountingBackend::LoadVector(std::span<const std::shared_ptr<const WeightTensor>>) {
  return WeightId(weights_++);
}

void CountingBackend::ReserveKv(const KvShape& shape, std::int64_t tokens) {
  // K and V of two bytes, unless the options say another size.
  if (info_.kv_bytes_per_token == 0) {
    info_.kv_bytes_per_token = std::int64_t{4} * shape.layers * shape.kv_heads * shape.head_dim;
  }
  if (options_.validate) slots_.assign(static_cast<std::size_t>(tokens), Slot{});
}

void CountingBackend::Fault(const std::string& what) {
  if (fault_.empty()) fault_ = fmt::format("chunk {}: {}", chunks_, what);
}

std::unique_ptr<Chunk> CountingBackend::Begin(const PrefillBatch& batch) {
  auto chunk = std::make_unique<CountingChunk>();
  chunk->number = chunks_++;
  std::uint64_t writes = 0;
  for (const std::int64_t slot : batch.kv_slots) {
    writes += ~static_cast<std::uint64_t>(slot) >> 63;  // 1 unless negative
  }
  kv_writes_ += writes;
  if (options_.validate) {
    CheckShape(batch);
    CheckReadouts(batch);
    if (fault_.empty()) MarkWrites(batch);
    if (fault_.empty()) FollowPaths(batch, paths_);
    CountScattered(batch);
  }
  if (!options_.validate || !fault_.empty()) HashRows(batch, paths_);
  const auto rows = static_cast<std::size_t>(options_.answer_rows);
  chunk->logits.assign(batch.answer_rows.size() * rows, 0.0F);
  for (std::size_t i = 0; i < batch.answer_rows.size(); ++i) {
    const float margin = options_.margin(paths_[static_cast<std::size_t>(batch.answer_rows[i])]);
    std::fill_n(chunk->logits.begin() + static_cast<std::ptrdiff_t>(i * rows), (rows + 1) / 2,
                margin);
  }
  for (const ScoredToken& scored : batch.scored_tokens) {
    chunk->log_probs.push_back(
        CountingLogProb(paths_[static_cast<std::size_t>(scored.row)], scored.token));
  }
  return chunk;
}

void CountingBackend::HashRows(const PrefillBatch& batch, std::vector<std::uint64_t>& paths) const {
  paths.resize(batch.tokens.size());
  const auto hash = [&](std::int32_t row) {
    const auto i = static_cast<std::size_t>(row);
    paths[i] = ExtendPathHash(static_cast<std::uint64_t>(batch.positions[i]), batch.tokens[i]);
  };
  for (const std::int32_t row : batch.answer_rows) hash(row);
  for (const ScoredToken& scored : batch.scored_tokens) hash(scored.row);
}

void CountingBackend::CheckShape(const PrefillBatch& batch) {
  const std::int32_t rows = batch.rows();
  if (rows < 1 || rows > info_.max_chunk_tokens) Fault(fmt::format("{} rows", rows));
  if (batch.positions.size() != batch.tokens.size() ||
      batch.kv_slots.size() != batch.tokens.size()) {
    Fault("positions or slots do not match the tokens");
  }
  std::int32_t next = 0;
  for (const Run& run : batch.runs) {
    if (run.first_row != next || run.rows < 1) Fault(fmt::format("run at row {}", run.first_row));
    next += run.rows;
    if (run.first_span < 0 || run.span_count < 0 ||
        static_cast<std::size_t>(run.first_span) + static_cast<std::size_t>(run.span_count) >
            batch.spans.size()) {
      Fault("spans of a run lie outside the list");
    }
  }
  if (next != rows) Fault(fmt::format("runs cover {} of {} rows", next, rows));
}

void CountingBackend::CheckReadouts(const PrefillBatch& batch) {
  std::int32_t last = -1;
  for (const std::int32_t row : batch.answer_rows) {
    if (row <= last || row >= batch.rows()) Fault(fmt::format("answer row {}", row));
    last = row;
  }
  last = 0;
  for (const ScoredToken& scored : batch.scored_tokens) {
    if (scored.row < last || scored.row >= batch.rows()) {
      Fault(fmt::format("scored row {}", scored.row));
    }
    last = scored.row;
  }
}

void CountingBackend::MarkWrites(const PrefillBatch& batch) {
  const auto number = static_cast<std::uint32_t>(chunks_);
  for (const std::int64_t slot : batch.kv_slots) {
    if (slot < 0) continue;
    if (slot >= static_cast<std::int64_t>(slots_.size())) {
      Fault(fmt::format("slot {} of {}", slot, slots_.size()));
      continue;
    }
    Slot& written = slots_[static_cast<std::size_t>(slot)];
    if (written.written_by == number) Fault(fmt::format("slot {} is written twice", slot));
    written.written_by = number;
  }
}

std::uint64_t CountingBackend::FollowSpans(const PrefillBatch& batch, const Run& run,
                                           const std::vector<std::uint64_t>& paths) {
  std::uint64_t path = 0;
  std::int32_t position = 0;
  for (std::int32_t s = 0; s < run.span_count; ++s) {
    const KeySpan& span = batch.spans[IndexOf(run.first_span, s)];
    const bool arena = span.place == KeySpan::Place::kArena;
    const std::int64_t limit = arena ? static_cast<std::int64_t>(slots_.size()) : run.first_row;
    if (span.length < 1 || span.first < 0 || span.first + span.length > limit) {
      Fault(fmt::format("span [{}, +{}) is outside [0, {})", span.first, span.length, limit));
      return 0;
    }
    for (std::int32_t i = 0; i < span.length; ++i, ++position) {
      const auto at = static_cast<std::size_t>(span.first + i);
      const std::int32_t held = arena ? slots_[at].position : batch.positions[at];
      const std::uint64_t next = arena ? slots_[at].path : paths[at];
      if (held != position || next == 0) {
        Fault(fmt::format("row {} wants position {}, finds {}", run.first_row, position, held));
      }
      if (arena && slots_[at].written_by == static_cast<std::uint32_t>(chunks_)) {
        Fault(fmt::format("slot {} is read and overwritten", at));
      }
      path = next;
    }
  }
  return path;
}

void CountingBackend::FollowPaths(const PrefillBatch& batch, std::vector<std::uint64_t>& paths) {
  paths.assign(batch.tokens.size(), 0);
  const Run* before = nullptr;
  std::uint64_t prefix = 0;
  for (const Run& run : batch.runs) {
    const bool same = before != nullptr && before->first_span == run.first_span &&
                      before->span_count == run.span_count;
    if (!same) prefix = FollowSpans(batch, run, paths);
    before = &run;
    std::uint64_t path = prefix;
    std::int32_t position = 0;
    for (std::int32_t s = 0; s < run.span_count; ++s) {
      position += batch.spans[IndexOf(run.first_span, s)].length;
    }
    for (std::int32_t i = 0; i < run.rows; ++i, ++position) {
      const auto row = IndexOf(run.first_row, i);
      if (batch.positions[row] != position) {
        Fault(fmt::format("row {} has position {}, not {}", row, batch.positions[row], position));
      }
      path = ExtendPathHash(path, batch.tokens[row]);
      paths[row] = path;
    }
  }
  for (std::size_t row = 0; row < paths.size(); ++row) {
    if (batch.kv_slots[row] < 0) continue;
    Slot& slot = slots_[static_cast<std::size_t>(batch.kv_slots[row])];
    slot.path = paths[row];
    slot.position = batch.positions[row];
  }
}

void CountingBackend::CountScattered(const PrefillBatch& batch) {
  std::set<std::vector<std::int64_t>> seen;
  std::vector<std::int64_t> last;
  for (const Run& run : batch.runs) {
    std::vector<std::int64_t> key;
    for (std::int32_t s = 0; s < run.span_count; ++s) {
      const KeySpan& span = batch.spans[IndexOf(run.first_span, s)];
      if (span.place == KeySpan::Place::kArena) key.insert(key.end(), {span.first, span.length});
    }
    if (key.empty() || key == last) continue;
    scattered_runs_ += seen.insert(key).second ? 0U : 1U;
    last = std::move(key);
  }
}

ChunkResult CountingBackend::Wait(Chunk& chunk) {
  const auto& counted = static_cast<const CountingChunk&>(chunk);
  if (options_.failing_chunk == counted.number) {
    throw Error(ErrorCode::kDevice, fmt::format("planted fault in chunk {}", counted.number));
  }
  return {counted.logits, counted.log_probs};
}

bool CountingModel::Forward(Backend& backend, Chunk& chunk, const PrefillBatch&,
                            const base::CancelFlag*) const {
  backend.Finish(chunk);
  return true;
}

}  // namespace quail::infer
