#include "infer/packer.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace quail::infer {
namespace {

/// Whether `leaves` leaves compute their common `tokens` once, in a run of their own that they see
/// as a span. A run more and a span more for each leaf cost a token each: leaves are short, so that
/// a part-filled tile and the descriptor weigh more than with documents.
bool HeadPays(std::uint64_t tokens, std::uint64_t leaves) {
  return tokens * (leaves - 1) > leaves + 1;
}

}  // namespace

Packer::Packer(ForestParts& parts, Scheduler& scheduler, ForestCounters& counters)
    : parts_(parts), scheduler_(scheduler), counters_(counters) {}

void Packer::Fill() {
  while (!full_) {
    if (room() == 0) {
      full_ = true;
      return;
    }
    const std::uint32_t slot = scheduler_.Next(room());
    if (slot == kNoSource) return;
    PackSource(slot);
  }
}

void Packer::PackSource(std::uint32_t slot) {
  const Source& source = parts_.sources[slot];
  if (source.step >= counters_.steps.size()) counters_.steps.resize(source.step + 1U);
  const SourceWindow& window = *source.window;
  if (window.target == kNoKv && window.next < window.short_leaves) {
    parts_.tree.Path(source.kv, path_);
    if (!Admit(source)) return;
    if (!PackLeaves(slot, {window.next, window.short_leaves, 0, 0})) {
      // A leaf that does not fit ends the chunk, or is cut where more than a tenth would stay
      // empty.
      if (room() * 10 > parts_.config.chunk_tokens) {
        PackTarget(slot);
      } else {
        full_ = true;
      }
    }
  } else {
    PackTarget(slot);
  }
  scheduler_.Settle(slot);
}

bool Packer::FitsArena() {
  std::int64_t missing = 0;
  std::int64_t pins = 0;
  for (const KvId id : path_) {
    const KvState& state = parts_.tree.state(id);
    missing += parts_.tree[id].length - state.available();
    if (!state.pinned) pins += state.stored;
  }
  const KvCache& cache = parts_.cache;
  return cache.pinned_slots() + cache.fresh_wanted() + pins +
             std::min<std::int64_t>(missing, room()) <=
         cache.slots();
}

bool Packer::Admit(const Source& source) {
  spans_.clear();
  span_tokens_ = 0;
  written_first_ = -1;
  // A chunk's own needs may exceed the arena; a single path never does (Scheduler::Receive).
  if (!empty() && !FitsArena()) {
    full_ = true;
    return false;
  }
  for (const KvId id : path_) parts_.cache.Pin(id);
  for (const KvId id : path_) {
    KvNode& node = parts_.tree[id];
    const KvState& state = parts_.tree.state(id);
    AppendStored(state);
    if (state.fresh_rows > 0) {
      AppendSpan({state.fresh_first_row, static_cast<std::int32_t>(state.fresh_rows),
                  KeySpan::Place::kChunk});
    }
    const std::uint32_t missing = node.length - state.available();
    if (missing == 0) continue;
    const std::uint32_t piece = std::min(missing, static_cast<std::uint32_t>(room()));
    full_ = piece < missing || state.fresh_rows > 0;
    if (piece == 0 || state.fresh_rows > 0) return false;
    const std::uint32_t offset = state.available();
    const std::int32_t row = Emit({node.tokens + offset, piece}, source);
    const std::uint32_t again =
        std::min(piece, node.computed_ever - std::min(node.computed_ever, offset));
    counters_.steps[source.step].recomputed_tokens += again;
    node.computed_ever = std::max(node.computed_ever, offset + piece);
    parts_.cache.AddFresh(id, piece, row);
    parts_.order.Refresh(id);
    AppendSpan({row, static_cast<std::int32_t>(piece), KeySpan::Place::kChunk});
    if (full_) return false;
  }
  return true;
}

void Packer::AppendSpan(const KeySpan& span) {
  written_first_ = -1;
  span_tokens_ += static_cast<std::uint32_t>(span.length);
  if (!spans_.empty() && spans_.back().place == span.place &&
      spans_.back().first + spans_.back().length == span.first) {
    spans_.back().length += span.length;
  } else {
    spans_.push_back(span);
  }
}

void Packer::AppendStored(const KvState& node) {
  for (const KvExtent& extent : node.extents) {
    AppendSpan({extent.first, static_cast<std::int32_t>(extent.length), KeySpan::Place::kArena});
  }
}

bool Packer::ContinuesLastRun() const {
  if (batch_.runs.empty() || spans_.empty()) return false;
  // A run whose rows are all on the path, up to the last row, has the rest of the path as its
  // spans.
  const KeySpan& last = spans_.back();
  return last.place == KeySpan::Place::kChunk && last.first <= batch_.runs.back().first_row &&
         last.first + last.length == batch_.rows();
}

std::int32_t Packer::Emit(std::span<const TokenId> tokens, const Source& source) {
  const std::int32_t first = batch_.rows();
  const auto count = static_cast<std::int32_t>(tokens.size());
  QUAIL_DCHECK(count > 0 && count <= room());
  if (ContinuesLastRun()) {
    batch_.runs.back().rows += count;
  } else {
    if (written_first_ < 0) {
      written_first_ = static_cast<std::int32_t>(batch_.spans.size());
      batch_.spans.insert(batch_.spans.end(), spans_.begin(), spans_.end());
    }
    batch_.runs.push_back({first, count, written_first_, static_cast<std::int32_t>(spans_.size())});
  }
  AppendRows(tokens);
  counters_.steps[source.step].fresh_tokens += tokens.size();
  counters_.attention_pairs +=
      tokens.size() * span_tokens_ + tokens.size() * (tokens.size() + 1) / 2;
  return first;
}

void Packer::AppendRows(std::span<const TokenId> tokens) {
  static_assert(sizeof(TokenId) == sizeof(std::int32_t));
  const auto* values = reinterpret_cast<const std::int32_t*>(tokens.data());
  batch_.tokens.insert(batch_.tokens.end(), values, values + tokens.size());
  const std::size_t end = span_tokens_ + tokens.size();
  if (ascending_.size() < end) {
    ascending_.resize(std::max(end, 2 * ascending_.size()));
    std::iota(ascending_.begin(), ascending_.end(), 0);
  }
  const auto position = ascending_.cbegin() + static_cast<std::ptrdiff_t>(span_tokens_);
  batch_.positions.insert(batch_.positions.end(), position,
                          position + static_cast<std::ptrdiff_t>(tokens.size()));
  batch_.kv_slots.resize(batch_.tokens.size(), -1);
}

bool Packer::PackLeaves(std::uint32_t slot, const Range& range) {
  const bool share = parts_.config.radix != RadixMode::kNever;
  for (std::uint32_t i = range.lo; i < range.hi;) {
    const std::vector<Leaf>& window = parts_.sources[slot].window->leaves;
    const std::span<const TokenId> tokens = window[i].tokens;
    std::uint32_t next = i + 1;
    while (share && tokens.size() > range.depth && next < range.hi &&
           window[next].tokens.size() > range.depth &&
           window[next].tokens[range.depth] == tokens[range.depth]) {
      ++next;
    }
    bool packed = false;
    if (next == i + 1) {
      packed = PackLeaf(slot, range.base);
    } else {
      const std::uint32_t common =
          range.depth +
          CommonPrefix(tokens.subspan(range.depth), window[next - 1].tokens.subspan(range.depth));
      const Range group{i, next, range.base, common};
      packed = HeadPays(common - range.base, next - i) ? PackHead(slot, group, common)
                                                       : PackLeaves(slot, group);
    }
    if (!packed) return false;
    i = next;
  }
  return true;
}

bool Packer::PackHead(std::uint32_t slot, const Range& group, std::uint32_t common) {
  const Source& source = parts_.sources[slot];
  const std::span<const TokenId> tokens = source.window->leaves[group.lo].tokens;
  if (static_cast<std::int64_t>(tokens.size()) - group.base > room()) return false;
  const std::size_t saved_spans = spans_.size();
  const KeySpan saved_last = spans_.empty() ? KeySpan{} : spans_.back();
  const std::uint32_t saved_tokens = span_tokens_;
  const std::size_t saved_rows = score_rows_.size();
  const std::uint32_t head = common - group.base;
  const std::int32_t row = Emit(tokens.subspan(group.base, head), source);
  const std::int32_t saved_written = written_first_;
  AppendSpan({row, static_cast<std::int32_t>(head), KeySpan::Place::kChunk});
  score_rows_.resize(saved_rows + head);
  std::iota(score_rows_.end() - head, score_rows_.end(), row);

  const bool packed = PackLeaves(slot, {group.lo, group.hi, common, common});

  spans_.resize(saved_spans);
  if (!spans_.empty()) spans_.back() = saved_last;
  span_tokens_ = saved_tokens;
  written_first_ = saved_written;
  score_rows_.resize(saved_rows);
  return packed;
}

bool Packer::PackLeaf(std::uint32_t slot, std::uint32_t base) {
  const Source& source = parts_.sources[slot];
  const std::span<const TokenId> tokens = source.window->leaves[source.window->next].tokens;
  const auto rest = static_cast<std::int32_t>(tokens.size()) - static_cast<std::int32_t>(base);
  if (rest > room()) return false;
  // A leaf that is a head ends at the head's last row.
  const std::int32_t first =
      rest > 0 ? Emit(tokens.subspan(base), source)
               : static_cast<std::int32_t>(spans_.back().first) + spans_.back().length;
  if (source.readout == ReadoutKind::kLogProbability) {
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const std::int32_t row =
          i < base ? score_rows_[i] : first + static_cast<std::int32_t>(i - base);
      chunk_.scores.push_back(
          {{row, tokens[i + 1].value()}, static_cast<std::uint32_t>(chunk_.asks.size()), 0});
    }
  }
  AddAsk(slot, first + rest - 1);
  return true;
}

void Packer::AddAsk(std::uint32_t slot, std::int32_t last_row) {
  const Source& source = parts_.sources[slot];
  const SourceWindow& window = *source.window;
  const Leaf& leaf = window.leaves[window.next];
  const NamedNode& named = parts_.nodes[source.node];
  const auto path_tokens = named.depth + static_cast<std::uint32_t>(leaf.tokens.size());
  ForestCounters::Step& step = counters_.steps[source.step];
  ++step.asks;
  step.requested_tokens += path_tokens;
  const PathTrie::Position end =
      parts_.trie
          .Insert(named.position, leaf.tokens,
                  leaf.stable ? PathTrie::Keep::kStable : PathTrie::Keep::kCopy)
          .position;
  counters_.minimum_tokens += parts_.trie.Count(end);
  chunk_.asks.push_back({SourceId(source.id), leaf.index,
                         window.target == kNoKv ? 0 : window.target_serial, path_tokens,
                         source.group, last_row, source.readout});
  scheduler_.LeafPacked(slot);
}

void Packer::PackTarget(std::uint32_t slot) {
  const KvId target = scheduler_.Target(slot);
  parts_.tree.Path(target, path_);
  const bool complete = Admit(parts_.sources[slot]);
  const Source& source = parts_.sources[slot];
  if (source.readout == ReadoutKind::kLogProbability) ScoreTarget(*source.window);
  if (!complete) return;
  const KvNode& node = parts_.tree[target];
  const KvState& state = parts_.tree.state(target);
  std::int32_t row = 0;
  if (state.fresh_rows > 0) {
    row = state.fresh_first_row + static_cast<std::int32_t>(state.fresh_rows) - 1;
  } else {
    // Its KV is there but the last hidden state is not: the last token runs again.
    if (room() == 0) {
      full_ = true;
      return;
    }
    --span_tokens_;
    written_first_ = -1;
    if (--spans_.back().length == 0) spans_.pop_back();
    row = Emit({node.tokens + node.length - 1, 1}, source);
    ++counters_.steps[source.step].recomputed_tokens;
  }
  AddAsk(slot, row);
  scheduler_.ReleaseTarget(slot);
}

void Packer::ScoreTarget(SourceWindow& window) {
  const KvNode& node = parts_.tree[window.target];
  const KvState& state = parts_.tree.state(window.target);
  for (std::uint32_t i = std::max(state.stored, window.target_scored); i < state.available(); ++i) {
    if (i + 1 < node.length) {
      const std::int32_t row = state.fresh_first_row + static_cast<std::int32_t>(i - state.stored);
      chunk_.scores.push_back({{row, node.tokens[i + 1].value()}, 0, window.target_serial});
    }
    window.target_scored = i + 1;
  }
}

void Packer::Place(KvId id) {
  const KvState& state = parts_.tree.state(id);
  const std::uint32_t rows = state.fresh_rows;
  std::int64_t skip = state.stored;
  auto slot = batch_.kv_slots.begin() + state.fresh_first_row;
  parts_.cache.StoreFresh(id);
  std::uint32_t placed = 0;
  for (const KvExtent& extent : state.extents) {
    const std::int64_t skipped = std::min(skip, extent.length);
    skip -= skipped;
    for (std::int64_t i = skipped; i < extent.length; ++i, ++placed) *slot++ = extent.first + i;
  }
  QUAIL_CHECK_EQ(placed, rows);
}

void Packer::PlaceWanted() {
  KvCache& cache = parts_.cache;
  for (const KvId id : cache.fresh()) {
    const KvNode& node = parts_.tree[id];
    const std::uint32_t rows = parts_.tree.state(id).fresh_rows;
    const bool follows = parts_.tree.state(node.parent).stored == parts_.tree[node.parent].length;
    if (node.demand == 0 || rows == 0 || !follows) continue;
    // Asks that came after the node was packed may want more than the arena holds: then it is
    // computed again.
    if (cache.slots() - cache.pinned_slots() < rows) continue;
    QUAIL_CHECK(cache.Reserve(rows, {}));
    Place(id);
  }
}

void Packer::PlacePossible() {
  candidates_.clear();
  for (const KvId id : parts_.cache.fresh()) {
    const KvNode& node = parts_.tree[id];
    const bool keep = node.chance > 0 || parts_.config.radix == RadixMode::kAlways;
    if (parts_.tree.state(id).fresh_rows > 0 && keep) candidates_.push_back(id);
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](KvId a, KvId b) { return parts_.tree[a].chance > parts_.tree[b].chance; });
  for (const KvId id : candidates_) PlacePath(id);
}

void Packer::PlaceForLater() {
  candidates_.clear();
  for (const KvId id : parts_.cache.fresh()) {
    if (parts_.tree.state(id).fresh_rows > 0) candidates_.push_back(id);
  }
  for (const KvId id : candidates_) PlacePath(id);
}

void Packer::PlacePath(KvId id) {
  std::int64_t rows = 0;
  path_.clear();
  for (KvId at = id; at != 0; at = parts_.tree[at].parent) {
    const KvState& state = parts_.tree.state(at);
    if (at != id && state.available() < parts_.tree[at].length) return;
    if (state.fresh_rows == 0) continue;
    rows += state.fresh_rows;
    path_.push_back(at);
  }
  const KvCache::Limit limit{KvCache::Want::kPerhaps, parts_.tree[id].chance};
  if (!parts_.cache.Reserve(rows, limit)) return;
  for (; !path_.empty(); path_.pop_back()) Place(path_.back());
}

void Packer::OrderAnswerRows() {
  std::vector<std::int32_t>& rows = batch_.answer_rows;
  for (const PackedAsk& ask : chunk_.asks) {
    if (ask.readout == ReadoutKind::kTrueFalseMargin) rows.push_back(ask.row);
  }
  if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::size_t at = 0;
  for (PackedAsk& ask : chunk_.asks) {
    if (ask.readout != ReadoutKind::kTrueFalseMargin) continue;
    if (at < rows.size() && rows[at] < ask.row) ++at;
    if (at == rows.size() || rows[at] != ask.row) {
      at = static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), ask.row) -
                                    rows.begin());
    }
    ask.row = static_cast<std::int32_t>(at);
  }
}

void Packer::OrderScores() {
  const auto before = [](const PackedScore& a, const PackedScore& b) {
    return a.token.row < b.token.row;
  };
  if (!std::is_sorted(chunk_.scores.begin(), chunk_.scores.end(), before)) {
    std::stable_sort(chunk_.scores.begin(), chunk_.scores.end(), before);
  }
  for (const PackedScore& score : chunk_.scores) batch_.scored_tokens.push_back(score.token);
}

PackedChunk Packer::Close() {
  PlaceWanted();
  PlacePossible();
  if (parts_.config.keep_for_later) PlaceForLater();
  OrderAnswerRows();
  OrderScores();
  chunk_.rows = batch_.rows();
  chunk_.answer_rows = static_cast<std::int32_t>(batch_.answer_rows.size());
  candidates_ = parts_.cache.fresh();
  parts_.cache.EndChunk();
  for (const KvId id : candidates_) parts_.order.Refresh(id);
  parts_.cache.TakeEvicted(candidates_);
  for (const KvId id : candidates_) parts_.order.Refresh(id);
  full_ = false;
  PackedChunk closed = std::move(chunk_);
  chunk_ = {};
  return closed;
}

void Packer::Clear() {
  batch_.Clear();
  chunk_ = {};
  full_ = false;
}

}  // namespace quail::infer
