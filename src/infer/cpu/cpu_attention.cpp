#include "infer/cpu/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "infer/cpu/attention_math.h"
#include "infer/cpu/int8_attention_math.h"

namespace quail::infer::cpu {
namespace {

bool Same(const KeySpan& a, const KeySpan& b) {
  return a.first == b.first && a.length == b.length && a.place == b.place;
}

std::int64_t KeysBefore(std::span<const KeySpan> spans) {
  std::int64_t keys = 0;
  for (const KeySpan& span : spans) keys += span.length;
  return keys;
}

std::int64_t CommonKeys(std::span<const KeySpan> a, std::span<const KeySpan> b) {
  std::int64_t keys = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && Same(a[i], b[i]); ++i) {
    keys += a[i].length;
  }
  return keys;
}

class Planner {
 public:
  Planner(std::span<const Run> runs, std::span<const KeySpan> spans, std::int32_t max_queries)
      : runs_(runs), spans_(spans), max_queries_(max_queries) {}

  void Add(std::int32_t run, std::int32_t first_query, std::int32_t queries) {
    while (queries > 0) {
      if (!Join(run)) Open(run, first_query);
      AttentionTile& tile = plan_.tiles.back();
      const std::int32_t taken = std::min(queries, max_queries_ - tile.queries);
      plan_.parts.push_back({run, first_query, taken});
      ++tile.parts;
      tile.queries += taken;
      first_query += taken;
      queries -= taken;
    }
  }

  AttentionPlan Take() { return std::move(plan_); }

 private:
  std::span<const KeySpan> SpansOf(std::int32_t run) const {
    const Run& r = runs_[static_cast<std::size_t>(run)];
    return spans_.subspan(static_cast<std::size_t>(r.first_span),
                          static_cast<std::size_t>(r.span_count));
  }

  void Open(std::int32_t run, std::int32_t first_query) {
    AttentionTile tile;
    tile.first_part = static_cast<std::int32_t>(plan_.parts.size());
    tile.first_query = first_query;
    tile.shared_blocks = static_cast<std::int32_t>(KeysBefore(SpansOf(run)) / kKeyBlock);
    plan_.tiles.push_back(tile);
  }

  /// Whether the run goes into the open tile: it must share blocks, and not cost the tile most of
  /// those it has.
  bool Join(std::int32_t run) {
    if (plan_.tiles.empty()) return false;
    AttentionTile& tile = plan_.tiles.back();
    if (tile.queries >= max_queries_) return false;
    const std::int32_t first_run = plan_.parts[static_cast<std::size_t>(tile.first_part)].run;
    const auto common = static_cast<std::int32_t>(std::min<std::int64_t>(
        CommonKeys(SpansOf(first_run), SpansOf(run)) / kKeyBlock, tile.shared_blocks));
    if (common == 0 || 2 * common < tile.shared_blocks) return false;
    tile.shared_blocks = common;
    return true;
  }

  std::span<const Run> runs_;
  std::span<const KeySpan> spans_;
  std::int32_t max_queries_;
  AttentionPlan plan_;
};

/// The work on one tile and kv head. Query q, head g of the group is vector q * G + g.
template <typename Math>
class TileWork {
 public:
  TileWork(Math& math, const AttentionInputs& inputs, const AttentionPlan& plan,
           const AttentionTask& task)
      : math_(math),
        in_(inputs),
        tile_(plan.tiles[task.tile]),
        parts_(std::span(plan.parts)
                   .subspan(static_cast<std::size_t>(tile_.first_part),
                            static_cast<std::size_t>(tile_.parts))),
        group_(inputs.heads / inputs.kv_heads),
        kv_head_(task.kv_head) {}

  void Run(const CpuKernels& kernels) {
    SetQueries();
    for (std::int32_t block = 0; block < tile_.shared_blocks; ++block) {
      Fetch(parts_.front(), block, kKeyBlock);
      math_.Attend(0, tile_.queries * group_, kKeyBlock, [](std::int32_t) { return kKeyBlock; });
    }
    for (const AttentionPart& part : parts_) AttendOwn(part);
    Finish(kernels);
  }

 private:
  const infer::Run& RunOf(const AttentionPart& part) const {
    return in_.runs[static_cast<std::size_t>(part.run)];
  }
  std::span<const KeySpan> SpansOf(const AttentionPart& part) const {
    const infer::Run& run = RunOf(part);
    return in_.spans.subspan(static_cast<std::size_t>(run.first_span),
                             static_cast<std::size_t>(run.span_count));
  }
  std::int32_t RowOf(std::int32_t query) const {
    return in_.active_rows[static_cast<std::size_t>(query)];
  }
  std::int64_t query_width() const { return std::int64_t{in_.heads} * in_.head_dim; }

  void SetQueries() {
    const float scale = 1.0F / std::sqrt(static_cast<float>(in_.head_dim));
    for (std::int32_t vector = 0; vector < tile_.queries * group_; ++vector) {
      const std::int64_t head = std::int64_t{kv_head_} * group_ + vector % group_;
      const float* query = in_.queries + (tile_.first_query + vector / group_) * query_width();
      math_.SetQuery(vector, query + head * in_.head_dim, scale);
    }
  }

  const std::byte* KeysAt(KeySpan::Place place, std::int64_t first) const {
    if (place == KeySpan::Place::kArena) return in_.arena->Keys(in_.layer, kv_head_, first);
    return in_.chunk_keys + ChunkOffset(first);
  }
  const std::byte* ValuesAt(KeySpan::Place place, std::int64_t first) const {
    if (place == KeySpan::Place::kArena) return in_.arena->Values(in_.layer, kv_head_, first);
    return in_.chunk_values + ChunkOffset(first);
  }
  std::int64_t ChunkOffset(std::int64_t row) const {
    return (kv_head_ * in_.chunk_rows + row) * in_.head_dim *
           static_cast<std::int64_t>(SizeOf(in_.type));
  }

  /// Brings `count` keys from key 64 * block of the part's path on, wherever they lie.
  void Fetch(const AttentionPart& part, std::int32_t block, std::int32_t count) {
    const std::int64_t begin = std::int64_t{block} * kKeyBlock;
    std::int64_t base = 0;
    for (const KeySpan& span : SpansOf(part)) {
      if (base > begin) break;
      if (count == kKeyBlock && begin + count <= base + span.length) {
        const std::int64_t first = span.first + begin - base;
        return math_.TakeBlock(KeysAt(span.place, first), ValuesAt(span.place, first));
      }
      base += span.length;
    }
    math_.Open(count);
    base = 0;
    for (const KeySpan& span : SpansOf(part)) {
      FetchFrom(span, begin - base, begin - base + count, base - begin);
      base += span.length;
    }
    const infer::Run& run = RunOf(part);
    FetchFrom({run.first_row, run.rows, KeySpan::Place::kChunk}, begin - base, begin - base + count,
              base - begin);
    math_.Close();
  }

  /// Keys [begin, end) of the span, as far as it has them; key i goes to column i + shift.
  void FetchFrom(const KeySpan& span, std::int64_t begin, std::int64_t end, std::int64_t shift) {
    begin = std::max<std::int64_t>(begin, 0);
    end = std::min<std::int64_t>(end, span.length);
    if (begin >= end) return;
    math_.AddKeys(static_cast<std::int32_t>(begin + shift), KeysAt(span.place, span.first + begin),
                  ValuesAt(span.place, span.first + begin), static_cast<std::int32_t>(end - begin));
  }

  /// The keys after the shared blocks: the rest of the spans, and causally the run itself.
  void AttendOwn(const AttentionPart& part) {
    const std::int64_t before = KeysBefore(SpansOf(part)) - RunOf(part).first_row + 1;
    const auto limit = [&](std::int32_t query) { return before + RowOf(query); };
    const std::int32_t end_query = part.first_query + part.queries;
    const std::int64_t end = limit(end_query - 1);
    std::int32_t query = part.first_query;
    for (std::int32_t block = tile_.shared_blocks; block * std::int64_t{kKeyBlock} < end; ++block) {
      const std::int64_t begin = block * std::int64_t{kKeyBlock};
      while (limit(query) <= begin) ++query;
      const auto keys = static_cast<std::int32_t>(std::min<std::int64_t>(kKeyBlock, end - begin));
      Fetch(part, block, keys);
      math_.Attend((query - tile_.first_query) * group_, (end_query - query) * group_, keys,
                   [&](std::int32_t vector) {
                     const std::int64_t seen = limit(tile_.first_query + vector / group_) - begin;
                     return static_cast<std::int32_t>(std::min<std::int64_t>(seen, keys));
                   });
    }
  }

  void Finish(const CpuKernels& kernels) {
    const std::int32_t dim = in_.head_dim;
    for (std::int32_t vector = 0; vector < tile_.queries * group_; ++vector) {
      const std::int32_t query = tile_.first_query + vector / group_;
      const std::int32_t head = kv_head_ * group_ + vector % group_;
      float* output = math_.Output(vector);
      const float scale = 1.0F / math_.SumOf(vector);
      for (std::int32_t i = 0; i < dim; ++i) output[i] *= scale;
      std::byte* target = in_.output + (query * query_width() + std::int64_t{head} * dim) *
                                           static_cast<std::int64_t>(SizeOf(in_.type));
      if (in_.type == ElementType::kF32) {
        std::memcpy(target, output, static_cast<std::size_t>(dim) * sizeof(float));
      } else {
        kernels.to_bf16(output, dim, reinterpret_cast<std::uint16_t*>(target));
      }
    }
  }

  Math& math_;
  const AttentionInputs& in_;
  const AttentionTile& tile_;
  std::span<const AttentionPart> parts_;
  std::int32_t group_;
  std::int32_t kv_head_;
};

}  // namespace

AttentionPlan PlanAttention(std::span<const Run> runs, std::span<const KeySpan> spans,
                            std::span<const std::int32_t> active_rows, std::int32_t max_queries) {
  Planner planner(runs, spans, max_queries);
  std::size_t query = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t first = query;
    const std::int32_t end = runs[i].first_row + runs[i].rows;
    while (query < active_rows.size() && active_rows[query] < end) ++query;
    planner.Add(static_cast<std::int32_t>(i), static_cast<std::int32_t>(first),
                static_cast<std::int32_t>(query - first));
  }
  QUAIL_CHECK_EQ(query, active_rows.size());
  return planner.Take();
}

void AttendTile(const CpuKernels& kernels, const AttentionInputs& inputs, const AttentionPlan& plan,
                const AttentionTask& task, WorkerScratch& scratch) {
  const std::int32_t vectors = plan.tiles[task.tile].queries * (inputs.heads / inputs.kv_heads);
  if (inputs.type == ElementType::kF32) {
    F32Math math(kernels, inputs.head_dim, vectors, scratch);
    TileWork(math, inputs, plan, task).Run(kernels);
  } else if (inputs.int8 != nullptr) {
    Int8Math math(*inputs.int8, inputs.head_dim, vectors, scratch);
    TileWork(math, inputs, plan, task).Run(kernels);
  } else {
    Bf16Math math(kernels, *inputs.bf16, inputs.head_dim, vectors, scratch);
    TileWork(math, inputs, plan, task).Run(kernels);
  }
}

}  // namespace quail::infer::cpu
