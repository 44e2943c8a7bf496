#include "exec/operators/ask_on_demand.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "exec/operators/ask_filter.h"
#include "exec/operators/ask_join.h"

namespace quail::exec {
namespace {

std::unique_ptr<StepRun> RunOf(const StepContext& context, const plan::Call& call, Domain domain) {
  Stage stage{call.id, false, std::vector<std::size_t>(domain.width)};
  const auto anchor_width =
      static_cast<std::size_t>(std::ranges::count(call.on_demand_anchor, true));
  std::vector<std::size_t> order;  // anchor's columns first
  for (const bool anchor_side : {true, false}) {
    for (std::size_t i = 0; i < domain.width; ++i) {
      const bool anchor = anchor_width == 0 || call.on_demand_anchor[i];
      if (anchor == anchor_side) order.push_back(i);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) stage.columns[order[i]] = i;
  if (anchor_width == 0) {
    return std::make_unique<AskFilter>(context, std::move(domain),
                                       AskFilter::Options{{std::move(stage)}, false, true});
  }
  Domain pairs{domain.width, {}, domain.weights};
  for (std::size_t row = 0; row < domain.size(); ++row) {
    for (const std::size_t column : order) pairs.ids.push_back(domain.row(row)[column]);
  }
  return std::make_unique<AskJoin>(context, PairDomain::Sparse(pairs, anchor_width),
                                   AskJoin::Options{{std::move(stage)}, true});
}

}  // namespace

void AskOnDemand::Begin(plan::CallId call, const std::set<std::vector<TextId>>& tuples) {
  QUAIL_CHECK(run_ == nullptr);
  const plan::Call& asked = context_.verdicts.call(call);
  run_ = RunOf(context_, asked, UndecidedDomain(tuples, asked.arguments.size()));
}

void AskOnDemand::End() {
  if (run_ == nullptr) return;
  const StepCounters& counters = run_->counters();
  counters_.distinct += counters.distinct;
  counters_.yes += counters.yes;
  counters_.no += counters.no;
  counters_.null += counters.null;
  counters_.error += counters.error;
  run_.reset();
}

void AskOnDemand::CountReads(plan::CallId call, const OnDemandReads::Reads& reads) {
  counters_.asked += reads.asked;
  counters_.null_input += reads.null_input;
  counters_.rows_in += reads.asked;
  counters_.rows_out += reads.asked;
  const Stage stage{call, false, {}};
  for (const auto& [key, lookups] : reads.failed) CountFailure(stage, key, lookups);
}

void AskOnDemand::Feed() {
  if (run_ != nullptr) run_->Feed();
}

void AskOnDemand::Take(const Outcome& outcome) { run_->Take(outcome); }

void AskOnDemand::Stop() {
  End();
  // What a pass read and the last one did not, or did not come to, was needed when it was
  // evaluated.
  counters_.asked = std::max(counters_.asked, counters_.distinct + counters_.null_input);
}

std::uint64_t AskOnDemand::open_asks() const { return run_ == nullptr ? 0 : run_->open_asks(); }

}  // namespace quail::exec
