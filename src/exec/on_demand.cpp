#include "exec/on_demand.h"

#include <algorithm>
#include <utility>

namespace quail::exec {
namespace {

std::vector<TextId> Tuple(std::span<const TextId> ids) { return {ids.begin(), ids.end()}; }

}  // namespace

OnDemandReads::OnDemandReads(const StatementVerdicts& verdicts, std::span<const plan::CallId> calls,
                             std::span<const plan::EarlyStop> stops)
    : verdicts_(verdicts), stops_(stops), stop_rows_(stops.size()) {
  for (const plan::CallId call : calls) reads_.try_emplace(call.value());
}

void OnDemandReads::Clear() {
  found_missed_ = false;
  for (auto& [call, reads] : reads_) {
    missed_[call] = std::move(reads.undecided);
    reads = {};
  }
  missed_rows_ = std::exchange(stop_rows_, std::vector<StopRows>(stops_.size()));
}

bool OnDemandReads::any_undecided() const {
  const auto misses = [](const auto& entry) { return !entry.second.undecided.empty(); };
  return std::ranges::any_of(reads_, misses) ||
         std::ranges::any_of(
             stop_rows_, [&](const StopRows& rows) { return std::ranges::any_of(rows, misses); });
}

void OnDemandReads::FindMissed(const Lookups& lookups, std::size_t i) {
  if (found_missed_) return;
  const std::set<std::vector<TextId>>* missed = nullptr;
  if (!lookups.stop) {
    const auto found = missed_.find(lookups.call.value());
    if (found != missed_.end()) missed = &found->second;
  } else if (!missed_rows_.empty()) {
    const StopRows& rows = missed_rows_[*lookups.stop];
    if (const auto row = rows.find(Tuple(lookups.row(i))); row != rows.end()) {
      const auto found = row->second.undecided.find(lookups.call);
      if (found != row->second.undecided.end()) missed = &found->second;
    }
  }
  found_missed_ = missed != nullptr && missed->contains(Tuple(lookups.key(i)));
}

bool OnDemandReads::IsStop(std::size_t stop, plan::CallId call) const {
  return IsStop(stop) && std::ranges::find(stops_[stop].calls, call) != stops_[stop].calls.end();
}

void OnDemandReads::NoteMet(std::size_t stop, std::span<const TextId> row) {
  const std::lock_guard lock(mutex_);
  stop_rows_[stop][{row.begin(), row.end()}].met = true;
}

void OnDemandReads::Note(const Lookups& lookups) {
  const auto found = reads_.find(lookups.call.value());
  if (found == reads_.end()) return;
  const VerdictTable& table = verdicts_.table(verdicts_.question_of(lookups.call));
  const std::lock_guard lock(mutex_);
  Reads& reads = found->second;
  for (std::size_t i = 0; i < lookups.rows; ++i) {
    const auto key = lookups.key(i);
    if (HasNull(key)) {
      ++reads.asked;
      ++reads.null_input;
      continue;
    }
    const Judgement judgement = table.Find(key);
    StopRow* row = lookups.stop ? &stop_rows_[*lookups.stop][Tuple(lookups.row(i))] : nullptr;
    if (judgement.verdict == Verdict::kUndecided) {
      (row != nullptr ? row->undecided[lookups.call] : reads.undecided).insert(Tuple(key));
      ++(row != nullptr ? row->undecided_lookups : reads.asked);
      continue;
    }
    FindMissed(lookups, i);
    ++reads.asked;
    if (judgement.verdict == Verdict::kError) ++reads.failed[Tuple(key)];
    if (row != nullptr) row->met |= Meets(lookups, judgement);
  }
}

bool OnDemandReads::Meets(const Lookups& lookups, const Judgement& judgement) const {
  const plan::EarlyStop& rule = stops_[*lookups.stop];
  if (rule.has_condition) return false;
  const auto truth = verdicts_.Truth(lookups.call, judgement);
  return truth && *truth != rule.negated;
}

void OnDemandReads::NoteAwaited(const Lookups& lookups) {
  const auto found = reads_.find(lookups.call.value());
  if (found == reads_.end()) return;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < lookups.rows; ++i) {
    const auto key = lookups.key(i);
    if (verdicts_.IsDecided(lookups.call, key)) {
      FindMissed(lookups, i);
      continue;
    }
    auto& undecided = lookups.stop
                          ? stop_rows_[*lookups.stop][Tuple(lookups.row(i))].undecided[lookups.call]
                          : found->second.undecided;
    undecided.insert(Tuple(key));
  }
}

std::uint64_t OnDemandReads::unjudged() const {
  std::uint64_t sum = 0;
  for (const StopRows& rows : stop_rows_) {
    for (const auto& [row, reads] : rows) sum += reads.undecided_lookups;
  }
  return sum;
}

Domain UndecidedDomain(const std::set<std::vector<TextId>>& tuples, std::size_t width) {
  Domain domain;
  domain.width = width;
  for (const std::vector<TextId>& key : tuples) {
    domain.ids.insert(domain.ids.end(), key.begin(), key.end());
    domain.weights.push_back(0);
  }
  return domain;
}

}  // namespace quail::exec
