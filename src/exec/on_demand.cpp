#include "exec/on_demand.h"

namespace quail::exec {

OnDemandReads::OnDemandReads(const StatementVerdicts& verdicts, std::span<const plan::CallId> calls)
    : verdicts_(verdicts) {
  for (const plan::CallId call : calls) reads_.try_emplace(call.value());
}

void OnDemandReads::Clear() {
  for (auto& [call, reads] : reads_) reads = {};
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
    if (verdict == Verdict::kUndecided) reads.undecided.emplace(key.begin(), key.end());
    if (verdict == Verdict::kError) ++reads.failed[{key.begin(), key.end()}];
  }
}

Domain UndecidedDomain(const OnDemandReads::Reads& reads, std::size_t width) {
  Domain domain;
  domain.width = width;
  for (const std::vector<TextId>& key : reads.undecided) {
    domain.ids.insert(domain.ids.end(), key.begin(), key.end());
    domain.weights.push_back(0);
  }
  return domain;
}

}  // namespace quail::exec
