#include "optimizer/plan_draft.h"

#include <algorithm>

#include "base/check.h"
#include "fmt/format.h"

namespace quail::optimizer {

using plan::Call;
using plan::RelationId;

namespace {

constexpr double kFilterPassRate = 0.2;
constexpr double kJoinPassRate = 0.05;

bool SameName(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<RelationId> RelationsOf(const Call& call) {
  std::vector<RelationId> out;
  for (const plan::Argument& argument : call.arguments) {
    if (std::find(out.begin(), out.end(), argument.relation) == out.end()) {
      out.push_back(argument.relation);
    }
  }
  return out;
}

}  // namespace

double PlanDraft::PassRate(std::size_t conjunct) const {
  const auto& planned = logical.ai_conjuncts[conjunct];
  const Call& call = CallOf(conjunct);
  const double standard = planned.relations.size() > 1 ? kJoinPassRate : kFilterPassRate;
  const double rate = call.options.selectivity.value_or(standard);
  return planned.negated ? 1 - rate : rate;
}

double PlanDraft::PassRate(const Call& call, bool negated) const {
  const double standard = call.on_demand_anchor.empty() ? kFilterPassRate : kJoinPassRate;
  const double rate = call.options.selectivity.value_or(standard);
  return negated ? 1 - rate : rate;
}

std::string PlanDraft::PassRateSource(std::size_t conjunct) const {
  return CallOf(conjunct).options.selectivity ? "hint" : "default";
}

double PlanDraft::RowsOf(RelationId relation) const {
  for (const auto& column : statistics) {
    if (column.relation == relation) return static_cast<double>(column.rows);
  }
  return 0;
}

TextSide PlanDraft::SideOf(const Call& call, RelationId relation) const {
  TextSide side;
  double columns = 0;
  for (const plan::Argument& argument : call.arguments) {
    if (argument.relation != relation) continue;
    for (const auto& column : statistics) {
      if (column.relation != relation || column.id_column != argument.id_column) continue;
      const auto distinct = static_cast<double>(column.distinct);
      if (distinct <= 0) continue;
      const double mean = column.sum_tokens / distinct;
      side.count = std::max(side.count, distinct);
      // Of independent columns: E[(x + y)^2] = E[x^2] + 2 E[x] E[y] + E[y^2].
      side.mean_square += column.sum_squared_tokens / distinct + 2 * side.mean * mean;
      side.mean += mean;
      ++columns;
    }
  }
  if (columns > 1) side.count = RowsOf(relation);
  return side;
}

double PlanDraft::PairsOf(const Call& call, RelationId a, RelationId b) const {
  const double left = SideOf(call, a).count;
  const double right = SideOf(call, b).count;
  // An equality gives each row of the larger side about one partner.
  return query.Linked(a, b) ? std::max(left, right) : left * right;
}

const PlanDraft::Anchor& PlanDraft::AnchorOf(const Call& call) {
  if (const auto found = anchors.find(call.id.value()); found != anchors.end()) {
    return found->second;
  }
  const std::vector<RelationId> relations = RelationsOf(call);
  QUAIL_CHECK_EQ(relations.size(), 2U);
  const auto name = [&](RelationId id) { return logical.relations[id.value()].alias; };
  Anchor anchor{relations[0], "as written"};
  if (call.options.anchor) {
    anchor.relation =
        SameName(name(relations[0]), *call.options.anchor) ? relations[0] : relations[1];
    anchor.reason = "option";
  } else if (options.anchor != AnchorRule::kAsWritten) {
    const PromptTokens prompt = cost.PromptOf(call);
    const double pairs = PairsOf(call, relations[0], relations[1]);
    const TextSide first = SideOf(call, relations[0]);
    const TextSide second = SideOf(call, relations[1]);
    const spec::Workload a = cost.Join(first, second, pairs, prompt);
    const spec::Workload b = cost.Join(second, first, pairs, prompt);
    const double seconds[] = {cost.Seconds(a), cost.Seconds(b)};
    const bool tie = seconds[0] == seconds[1];
    const bool other = tie ? b.tokens < a.tokens : seconds[1] < seconds[0];
    anchor.relation = relations[other ? 1 : 0];
    anchor.reason = fmt::format("{:.3g} s, anchor {} {:.3g} s", seconds[other ? 1 : 0],
                                name(relations[other ? 0 : 1]), seconds[other ? 0 : 1]);
  }
  return anchors.emplace(call.id.value(), std::move(anchor)).first->second;
}

}  // namespace quail::optimizer
