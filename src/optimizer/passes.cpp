#include "optimizer/passes.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "plan/filter_rank.h"
#include "plan/guards.h"

namespace quail::optimizer {

using plan::AskColumnStep;
using plan::AskFilterStep;
using plan::AskJoinStep;
using plan::Call;
using plan::CallId;
using plan::RelationalStep;
using plan::RelationId;
using plan::StepEstimate;

namespace {

/// Tuples of one row that an EXISTS asks first, at most, however unlikely its hint says they are.
constexpr double kMostInWave = 1000;

/// Not inlined: g++ 12 takes the variant's other members for uninitialised ones where it knows
/// which one is set.
[[gnu::noinline]] void AddStep(PlanDraft& draft, plan::Step step, StepEstimate estimate) {
  draft.plan.steps.push_back(std::move(step));
  draft.plan.estimates.push_back(std::move(estimate));
}

/// Plain predicates about one relation are filters, about two joins; the rest is guarded.
void SortConjuncts(PlanDraft& draft) {
  const auto& conjuncts = draft.logical.ai_conjuncts;
  for (std::size_t i = 0; i < conjuncts.size(); ++i) {
    const Call& call = draft.CallOf(i);
    const std::size_t relations = conjuncts[i].relations.size();
    if (!conjuncts[i].is_call || relations < 1 || relations > 2 || call.arguments.empty()) {
      draft.guarded.push_back(i);
    } else if (relations == 1) {
      const RelationId relation = conjuncts[i].relations[0];
      auto found = std::find_if(draft.filters.begin(), draft.filters.end(),
                                [&](const auto& group) { return group.relation == relation; });
      if (found == draft.filters.end()) {
        found = draft.filters.insert(found, PlanDraft::Filters{relation, {}});
      }
      found->conjuncts.push_back(i);
    } else {
      draft.joins.push_back({conjuncts[i].relations[0], conjuncts[i].relations[1], {i}});
    }
  }
}

/// The first filter pays the document, the others their question alone (planner.md section 4).
void OrderFilters(PlanDraft& draft) {
  for (auto& group : draft.filters) {
    std::vector<plan::RankedFilter> ranked;
    for (const std::size_t conjunct : group.conjuncts) {
      const Call& call = draft.CallOf(conjunct);
      const TextSide side = draft.SideOf(call, group.relation);
      const PromptTokens prompt = draft.cost.PromptOf(call);
      const double count = std::max(1.0, side.count);
      const double document = draft.cost.Seconds(draft.cost.Document(side, prompt)) / count;
      const double ask = draft.cost.Seconds(draft.cost.FilterAsk(side, prompt)) / count;
      ranked.push_back({document + ask, ask, draft.PassRate(conjunct)});
    }
    std::vector<std::size_t> ordered;
    for (const std::size_t i : plan::RankFilters(ranked)) ordered.push_back(group.conjuncts[i]);
    group.conjuncts = std::move(ordered);
  }
}

void ChooseAnchors(PlanDraft& draft) {
  for (auto& join : draft.joins) {
    const auto& anchor = draft.AnchorOf(draft.CallOf(join.conjuncts[0]));
    if (join.anchor != anchor.relation) std::swap(join.anchor, join.partner);
  }
}

/// Predicates about the same pairs with one anchor are stages of one step, the more selective
/// first.
void MergeStages(PlanDraft& draft) {
  std::vector<PlanDraft::Join> merged;
  for (auto& join : draft.joins) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const auto& other) {
      return other.anchor == join.anchor && other.partner == join.partner;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(join));
    } else {
      same->conjuncts.push_back(join.conjuncts[0]);
    }
  }
  for (auto& join : merged) {
    std::stable_sort(
        join.conjuncts.begin(), join.conjuncts.end(),
        [&](std::size_t a, std::size_t b) { return draft.PassRate(a) < draft.PassRate(b); });
  }
  draft.joins = std::move(merged);
}

/// The seam of the join order search: as written.
void OrderJoins(PlanDraft&) {}

double Alive(PlanDraft& draft, RelationId relation) {
  return draft.survivors.try_emplace(relation.value(), 1.0).first->second;
}

TextSide AliveSide(PlanDraft& draft, const Call& call, RelationId relation) {
  TextSide side = draft.SideOf(call, relation);
  side.count *= Alive(draft, relation);
  return side;
}

void Price(PlanDraft& draft, const spec::Workload& work, StepEstimate& estimate) {
  estimate.fresh_tokens = work.tokens;
  estimate.roofline_seconds = draft.cost.StepSeconds(work);
  estimate.predicted_seconds = draft.cost.PredictedStepSeconds(work, estimate.asks);
}

/// The rows after which a step can stop: where it alone decides which rows a block under LIMIT has.
std::optional<std::uint64_t> EnoughOf(const PlanDraft& draft, std::vector<std::size_t> conjuncts) {
  std::sort(conjuncts.begin(), conjuncts.end());
  for (const plan::RowLimit& limit : draft.logical.limits) {
    if (limit.conjuncts == conjuncts) return limit.rows;
  }
  return std::nullopt;
}

void PlaceFilter(PlanDraft& draft, const PlanDraft::Filters& group) {
  AskFilterStep step{group.relation, {}, std::nullopt, EnoughOf(draft, group.conjuncts)};
  StepEstimate estimate;
  const double rows = draft.RowsOf(group.relation);
  estimate.name = fmt::format("filter {}", draft.logical.relations[group.relation.value()].alias);
  estimate.rows_in = rows;
  spec::Workload work;
  double reached = 1;
  for (const std::size_t conjunct : group.conjuncts) {
    const Call& call = draft.CallOf(conjunct);
    const PromptTokens prompt = draft.cost.PromptOf(call);
    TextSide side = draft.SideOf(call, group.relation);
    if (step.predicates.empty()) work += draft.cost.Document(side, prompt);
    side.count *= reached;
    work += draft.cost.FilterAsk(side, prompt);
    estimate.asks += side.count;
    estimate.requested_tokens += side.count * (prompt.preamble + side.mean + prompt.question);
    reached *= draft.PassRate(conjunct);
    step.predicates.push_back({call.id, draft.logical.ai_conjuncts[conjunct].negated});
    draft.query.Decide(conjunct);
  }
  estimate.selectivity = reached;
  estimate.selectivity_from = draft.PassRateSource(group.conjuncts[0]);
  Price(draft, work, estimate);
  draft.survivors[group.relation.value()] = reached;
  AddStep(draft, std::move(step), std::move(estimate));
}

/// Places the filters of a relation unless that is done.
void PlaceFiltersOf(PlanDraft& draft, RelationId relation) {
  const auto found = std::find_if(draft.filters.begin(), draft.filters.end(),
                                  [&](const auto& group) { return group.relation == relation; });
  if (found == draft.filters.end()) return;
  PlaceFilter(draft, *found);
  draft.filters.erase(found);
}

/// Of relations that no join reads.
void PlaceFilters(PlanDraft& draft) {
  std::vector<RelationId> relations;
  for (const auto& group : draft.filters) {
    const bool joined = std::any_of(draft.joins.begin(), draft.joins.end(), [&](const auto& join) {
      return join.anchor == group.relation || join.partner == group.relation;
    });
    if (!joined) relations.push_back(group.relation);
  }
  for (const RelationId relation : relations) PlaceFiltersOf(draft, relation);
}

/// The filters that join `index` needs, those of its anchor last: what passes them goes on at once
/// to this join and to those after it that have the same anchor, while its KV is held (executor).
void PlaceFiltersBefore(PlanDraft& draft, std::size_t index) {
  const RelationId anchor = draft.joins[index].anchor;
  for (std::size_t i = index; i < draft.joins.size() && draft.joins[i].anchor == anchor; ++i) {
    PlaceFiltersOf(draft, draft.joins[i].partner);
  }
  PlaceFiltersOf(draft, anchor);
}

/// The anchor's id columns, then the partner's, each once, by first use in the stages' arguments.
std::vector<std::string> PairColumns(const PlanDraft& draft, const PlanDraft::Join& join) {
  std::vector<std::string> columns;
  for (const RelationId side : {join.anchor, join.partner}) {
    for (const std::size_t conjunct : join.conjuncts) {
      for (const plan::Argument& argument : draft.CallOf(conjunct).arguments) {
        if (argument.relation != side) continue;
        const std::string column = draft.query.ColumnOf(argument);
        if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
          columns.push_back(column);
        }
      }
    }
  }
  return columns;
}

StepEstimate EstimateJoin(PlanDraft& draft, const PlanDraft::Join& join) {
  const auto alias = [&](RelationId id) { return draft.logical.relations[id.value()].alias; };
  StepEstimate estimate;
  estimate.name = fmt::format("join {} x {}", alias(join.anchor), alias(join.partner));
  const double alive = Alive(draft, join.anchor) * Alive(draft, join.partner);
  spec::Workload work;
  double reached = 1;
  for (const std::size_t conjunct : join.conjuncts) {
    const Call& call = draft.CallOf(conjunct);
    const PromptTokens prompt = draft.cost.PromptOf(call);
    const double pairs = draft.PairsOf(call, join.anchor, join.partner) * alive * reached;
    const TextSide anchor = AliveSide(draft, call, join.anchor);
    const TextSide partner = AliveSide(draft, call, join.partner);
    if (estimate.asks == 0) estimate.rows_in = pairs;
    work += draft.cost.Join(anchor, partner, pairs, prompt);
    if (reached < 1) work += draft.cost.Document(anchor, prompt) * -1;  // later stages read its KV
    estimate.asks += pairs;
    estimate.requested_tokens +=
        pairs * (prompt.preamble + anchor.mean + prompt.frame + partner.mean + prompt.cue);
    reached *= draft.PassRate(conjunct);
  }
  estimate.selectivity = reached;
  estimate.selectivity_from = draft.PassRateSource(join.conjuncts[0]);
  estimate.anchor_reason = draft.AnchorOf(draft.CallOf(join.conjuncts[0])).reason;
  Price(draft, work, estimate);
  return estimate;
}

/// Whether a step after join `index` reads the rows of a relation.
bool ReadLater(const PlanDraft& draft, std::size_t index, RelationId relation) {
  for (std::size_t i = index + 1; i < draft.joins.size(); ++i) {
    if (draft.joins[i].anchor == relation || draft.joins[i].partner == relation) return true;
  }
  for (const std::size_t conjunct : draft.guarded) {
    const auto& relations = draft.logical.ai_conjuncts[conjunct].relations;
    if (std::find(relations.begin(), relations.end(), relation) != relations.end()) return true;
  }
  return false;
}

void PlaceBarrier(PlanDraft& draft, RelationId relation, RelationId other) {
  StepEstimate estimate;
  estimate.name = fmt::format("keep matched {}", draft.logical.relations[relation.value()].alias);
  AddStep(draft, RelationalStep{draft.query.DeleteUnmatched(relation, other), relation},
          std::move(estimate));
}

void PlaceJoins(PlanDraft& draft) {
  for (std::size_t i = 0; i < draft.joins.size(); ++i) {
    const auto& join = draft.joins[i];
    PlaceFiltersBefore(draft, i);
    AskJoinStep step{join.anchor, join.partner, {}, ""};
    step.enough = EnoughOf(draft, join.conjuncts);
    for (const std::size_t conjunct : join.conjuncts) {
      step.stages.push_back(
          {draft.CallOf(conjunct).id, draft.logical.ai_conjuncts[conjunct].negated});
    }
    if (draft.query.Linked(join.anchor, join.partner)) {
      std::vector<RelationId> both = {join.anchor, join.partner};
      std::sort(both.begin(), both.end());
      step.pairs_sql = draft.query.Rows(PairColumns(draft, join), both, "");
    }
    for (const std::size_t conjunct : join.conjuncts) {
      if (draft.logical.ai_conjuncts[conjunct].pairs) {
        step.keep_sql.push_back(draft.query.KeepPairs(conjunct));
      }
      draft.query.Decide(conjunct);
    }
    AddStep(draft, std::move(step), EstimateJoin(draft, join));
    for (const auto& [side, other] :
         {std::pair(join.anchor, join.partner), std::pair(join.partner, join.anchor)}) {
      if (ReadLater(draft, i, side)) PlaceBarrier(draft, side, other);
    }
  }
}

void PlaceColumn(PlanDraft& draft, CallId id, std::string domain_sql) {
  const Call& call = draft.logical.calls[id.value()];
  if (call.kind == plan::CallKind::kCountTokens) return;  // its lookup counts them
  AskColumnStep step{id, std::move(domain_sql), std::nullopt};
  StepEstimate estimate;
  estimate.name = fmt::format("column {}", call.function);
  std::vector<RelationId> relations;
  for (const plan::Argument& argument : call.arguments) {
    if (!argument.id_column.empty()) relations.push_back(argument.relation);
  }
  std::sort(relations.begin(), relations.end());
  relations.erase(std::unique(relations.begin(), relations.end()), relations.end());
  spec::Workload work;
  const PromptTokens prompt = draft.cost.PromptOf(call);
  if (relations.size() == 2) {
    const auto& anchor = draft.AnchorOf(call);
    step.anchor = anchor.relation;
    estimate.anchor_reason = anchor.reason;
    estimate.asks = draft.PairsOf(call, relations[0], relations[1]);
    const RelationId partner = relations[anchor.relation == relations[0] ? 1 : 0];
    work = draft.cost.Join(draft.SideOf(call, anchor.relation), draft.SideOf(call, partner),
                           estimate.asks, prompt);
  } else if (relations.size() == 1) {
    const TextSide side = AliveSide(draft, call, relations[0]);
    estimate.asks = side.count;
    estimate.requested_tokens = side.count * (prompt.preamble + side.mean + prompt.question);
    work = draft.cost.Document(side, prompt) + draft.cost.FilterAsk(side, prompt);
  } else {
    estimate.asks = 1;
    work.tokens = prompt.question;
  }
  estimate.rows_in = estimate.asks;
  Price(draft, work, estimate);
  AddStep(draft, std::move(step), std::move(estimate));
}

/// Makes the table of open rows that the steps behind read.
void KeepOpen(PlanDraft& draft, std::string_view whose, std::string sql) {
  StepEstimate estimate;
  estimate.name = fmt::format("keep open {}", whose);
  AddStep(draft, RelationalStep{std::move(sql)}, std::move(estimate));
}

/// What the guards of a term's calls leave open: of long chains the rows, or combinations of rows,
/// are kept, so that each call reads but the last guards.
class OpenRows {
 public:
  OpenRows(PlanDraft& draft, const plan::AiConjunct& term) : draft_(draft), term_(term) {}

  /// The SELECT of the columns of the rows on which a call must be asked.
  std::string RowsFor(const plan::GuardedCall& call, const std::vector<std::string>& columns) {
    if (guards_.GoOn(call) && !term_.relations.empty()) Keep(call);
    return Rows(columns, call.guard);
  }

 private:
  std::string Rows(const std::vector<std::string>& columns,
                   const std::shared_ptr<const plan::Guard>& guard) const {
    const std::string condition = guards_.ConditionSql(guard);
    return guards_.none() ? draft_.query.Rows(columns, term_.relations, condition)
                          : draft_.query.Rows(columns, open_, condition);
  }
  void Keep(const plan::GuardedCall& call) {
    const auto& relation = draft_.logical.relations[term_.relations[0].value()];
    const std::string rows = Rows(draft_.query.RowNumbers(term_.relations), call.guard->before);
    open_ = {fmt::format("\"{}_open_{}\"", relation.table, draft_.plan.steps.size()),
             term_.relations};
    guards_.Keep(call);
    KeepOpen(draft_, relation.alias, fmt::format("CREATE TEMP TABLE {} AS {}", open_.table, rows));
    draft_.plan.cleanup_sql.push_back(fmt::format("DROP TABLE IF EXISTS {}", open_.table));
  }

  PlanDraft& draft_;
  const plan::AiConjunct& term_;
  plan::KeptGuards guards_;
  DomainQuery::OpenRows open_;  ///< where `guards_` has any
};

/// Conditions under OR, NOT and CASE: each call where its guard leaves the condition open.
void PlaceGuarded(PlanDraft& draft) {
  for (const std::size_t conjunct : draft.guarded) {
    const auto& term = draft.logical.ai_conjuncts[conjunct];
    OpenRows open(draft, term);
    for (const plan::GuardedCall& guarded : term.calls) {
      const Call& call = draft.logical.calls[guarded.call.value()];
      std::vector<std::string> columns;
      columns.reserve(call.arguments.size());
      for (const plan::Argument& argument : call.arguments) {
        columns.push_back(draft.query.ColumnOf(argument));
      }
      if (columns.empty()) columns.emplace_back("1");
      PlaceColumn(draft, guarded.call, open.RowsFor(guarded, columns));
    }
    draft.query.Decide(conjunct);
  }
}

void PlaceComputed(PlanDraft& draft) {
  for (const plan::ComputedCall& computed : draft.logical.computed) {
    if (!computed.open_rows_sql.empty()) {
      const Call& call = draft.logical.calls[computed.call.value()];
      KeepOpen(draft, fmt::format("for {}", call.function), computed.open_rows_sql);
    }
    PlaceColumn(draft, computed.call, computed.domain_sql);
  }
}

/// Calls whose arguments the engine must compute, when everything else is decided.
void PlaceOnDemand(PlanDraft& draft) {
  if (draft.logical.on_demand_sql.empty()) return;
  plan::AskOnDemandStep step{
      {}, draft.logical.on_demand_sql, draft.logical.rows_sql, draft.logical.early_stops};
  for (plan::EarlyStop& stop : step.stops) {
    double rate = 1;
    for (const CallId call : stop.calls) {
      rate = std::min(rate, draft.PassRate(draft.logical.calls[call.value()], stop.negated));
    }
    stop.wave = static_cast<std::uint32_t>(std::clamp(1 / rate, 1.0, kMostInWave));
  }
  StepEstimate estimate;
  std::vector<std::string> functions;
  for (const Call& call : draft.logical.calls) {
    if (!call.on_demand) continue;
    step.calls.push_back(call.id);
    if (std::find(functions.begin(), functions.end(), call.function) == functions.end()) {
      functions.push_back(call.function);
    }
  }
  estimate.name = fmt::format("on demand {}", fmt::join(functions, ", "));
  AddStep(draft, std::move(step), std::move(estimate));
}

/// A filter whose relation is the anchor of a later join keeps its documents' KV for it.
void LinkFeeds(PlanDraft& draft) {
  auto& steps = draft.plan.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto* filter = std::get_if<AskFilterStep>(&steps[i]);
    if (filter == nullptr) continue;
    for (std::size_t later = i + 1; later < steps.size() && !filter->feeds; ++later) {
      const auto* join = std::get_if<AskJoinStep>(&steps[later]);
      if (join != nullptr && join->anchor == filter->relation) filter->feeds = later;
    }
  }
}

constexpr std::array kPasses = {
    Pass{"sort_conjuncts", SortConjuncts},
    Pass{"order_filters", OrderFilters},    // before they are placed: ranks need statistics only
    Pass{"choose_anchors", ChooseAnchors},  // from token counts alone, so before any selectivity
    Pass{"merge_stages", MergeStages},      // needs anchors
    Pass{"order_joins", OrderJoins},
    Pass{"place_filters", PlaceFilters},
    Pass{"place_joins", PlaceJoins},      // each after its filters: an ask a row, not an ask a pair
    Pass{"place_guarded", PlaceGuarded},  // after the plain predicates, which cost least a row
    Pass{"place_computed", PlaceComputed},   // on rows that pass all conditions
    Pass{"place_on_demand", PlaceOnDemand},  // its passes read the verdicts of all other steps
    Pass{"link_feeds", LinkFeeds},
};

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

}  // namespace quail::optimizer
