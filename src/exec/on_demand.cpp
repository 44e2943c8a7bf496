#include "exec/on_demand.h"

#include <algorithm>
#include <utility>

namespace quail::exec {

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

void OnDemandReads::Find(plan::CallId call, std::span<const TextId> key) {
  if (found_missed_) return;
  const auto missed = missed_.find(call.value());
  found_missed_ = missed != missed_.end() && missed->second.contains({key.begin(), key.end()});
}

void OnDemandReads::FindUntil(std::size_t stop, plan::CallId call, std::span<const TextId> group,
                              std::span<const TextId> key) {
  if (found_missed_ || missed_rows_.empty()) return;
  const auto row = missed_rows_[stop].find({group.begin(), group.end()});
  if (row == missed_rows_[stop].end()) return;
  const auto missed = row->second.undecided.find(call);
  found_missed_ =
      missed != row->second.undecided.end() && missed->second.contains({key.begin(), key.end()});
}

bool OnDemandReads::IsStop(std::size_t stop, plan::CallId call) const {
  return IsStop(stop) && std::ranges::find(stops_[stop].calls, call) != stops_[stop].calls.end();
}

void OnDemandReads::NoteMet(std::size_t stop, std::span<const TextId> row) {
  const std::lock_guard lock(mutex_);
  stop_rows_[stop][{row.begin(), row.end()}].met = true;
}

void OnDemandReads::NoteUntil(std::size_t stop, plan::CallId call, std::size_t width,
                              std::span<const TextId> keys, std::size_t rows) {
  const plan::EarlyStop& rule = stops_[stop];
  const VerdictTable& table = verdicts_.table(verdicts_.question_of(call));
  const std::size_t line = rows == 0 ? 0 : keys.size() / rows;
  const std::lock_guard lock(mutex_);
  Reads& reads = reads_.at(call.value());
  for (std::size_t i = 0; i < rows; ++i) {
    const auto group = keys.subspan(i * line, width);
    const auto key = keys.subspan(i * line + width, line - width);
    if (HasNull(key)) {
      ++reads.asked;
      ++reads.null_input;
      continue;
    }
    StopRow& row = stop_rows_[stop][{group.begin(), group.end()}];
    const Judgement judgement = table.Find(key);
    if (judgement.verdict == Verdict::kUndecided) {
      row.undecided[call].emplace(key.begin(), key.end());
      ++row.undecided_lookups;
      continue;
    }
    FindUntil(stop, call, group, key);
    ++reads.asked;
    if (judgement.verdict == Verdict::kError) ++reads.failed[{key.begin(), key.end()}];
    if (rule.has_condition) continue;
    const auto truth = verdicts_.Truth(call, judgement);
    row.met = row.met || (truth && *truth != rule.negated);
  }
}

void OnDemandReads::NoteAwaited(plan::CallId call, std::span<const TextId> keys, std::size_t rows) {
  const std::size_t width = rows == 0 ? 0 : keys.size() / rows;
  const std::lock_guard lock(mutex_);
  const auto found = reads_.find(call.value());
  if (found == reads_.end()) return;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto key = keys.subspan(row * width, width);
    if (verdicts_.IsDecided(call, key)) {
      Find(call, key);
    } else {
      found->second.undecided.emplace(key.begin(), key.end());
    }
  }
}

void OnDemandReads::NoteAwaitedUntil(std::size_t stop, plan::CallId call, std::size_t width,
                                     std::span<const TextId> keys, std::size_t rows) {
  const std::size_t line = rows == 0 ? 0 : keys.size() / rows;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto group = keys.subspan(i * line, width);
    const auto key = keys.subspan(i * line + width, line - width);
    if (verdicts_.IsDecided(call, key)) {
      FindUntil(stop, call, group, key);
      continue;
    }
    stop_rows_[stop][{group.begin(), group.end()}].undecided[call].emplace(key.begin(), key.end());
  }
}

std::uint64_t OnDemandReads::unjudged() const {
  std::uint64_t sum = 0;
  for (const StopRows& rows : stop_rows_) {
    for (const auto& [row, reads] : rows) sum += reads.undecided_lookups;
  }
  return sum;
}

void OnDemandReads::Note(plan::CallId call, std::span<const TextId> keys, std::size_t rows) {
  const auto found = reads_.find(call.value());
  if (found == reads_.end()) return;
  const VerdictTable& table = verdicts_.table(verdicts_.question_of(call));
  const std::size_t width = rows == 0 ? 0 : keys.size() / rows;
  const std::lock_guard lock(mutex_);
  Reads& reads = found->second;
  reads.asked += rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto key = keys.subspan(row * width, width);
    if (HasNull(key)) {
      ++reads.null_input;
      continue;
    }
    const Verdict verdict = table.Find(key).verdict;
    if (verdict == Verdict::kUndecided) {
      reads.undecided.emplace(key.begin(), key.end());
      continue;
    }
    Find(call, key);
    if (verdict == Verdict::kError) ++reads.failed[{key.begin(), key.end()}];
  }
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
