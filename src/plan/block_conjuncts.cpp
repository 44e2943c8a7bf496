#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"

/// BlockBinder: AND terms become conjuncts of the plan.
namespace quail::plan {

using sql::Json;

namespace {

/// Of predicates about the same tables; what more of them let survive is looked up row by row.
constexpr std::ptrdiff_t kMostPairTables = 8;

}  // namespace

void BlockBinder::PlanCoreTerms() {
  AddUsingTerms();
  for (Term& term : terms_) {
    const bool subquery_free = !term.reads.has_subquery || place_.ctes.empty();
    if (!term.asks) {
      const bool between = IsUsable(term) && !term.pushed && std::popcount(term.reads.items) > 1;
      if (between && subquery_free && !term.reads.is_volatile) {
        AddRelationalConjunct(writer_.PrintExpression(*term.node), term.reads.items);
      }
      continue;
    }
    term.reads = scope_.ReadsOf(*term.node);
    const Reads& reads = term.reads;
    const bool plannable = term.core && !term.deep && !reads.outside && !reads.has_subquery &&
                           !reads.is_volatile && reads.items != 0 && !ContainsOnDemand(*term.node);
    if (!plannable) {
      term.core = false;
      continue;
    }
    AiConjunct conjunct;
    conjunct.sql = writer_.PrintExpression(*term.node);
    conjunct.calls = GuardedCallsOf(*term.node, ValueUse::kFilter, scope_, writer_);
    for (const GuardedCall& guarded : conjunct.calls) NoteCase(guarded);
    conjunct.relations = RelationsOf(reads.items);
    conjunct.negated = sql::TypeOf(*term.node) == "OPERATOR_NOT";
    const Json& inner = conjunct.negated ? (*term.node)["children"][0] : *term.node;
    if (inner.contains(kCallMark)) {
      const Call& call = state_.plan.calls[inner[kCallMark].get<std::size_t>()];
      conjunct.is_call = call.kind == CallKind::kFilter && !call.options.return_error_details;
    }
    conjunct.negated = conjunct.negated && conjunct.is_call;
    if (FitsPairTable(conjunct, reads.items)) {
      conjunct.pairs = MovePairs(term, state_.plan.calls[conjunct.calls[0].call.value()]);
    }
    state_.plan.ai_conjuncts.push_back(std::move(conjunct));
  }
}

// --- pair tables ---

bool BlockBinder::FitsPairTable(const AiConjunct& conjunct, ItemSet items) const {
  // SAMPLE draws from the rows of FROM, which a pair table would thin out before.
  if (!conjunct.is_call || conjunct.relations.size() != 2 || !sql::IsAbsent(select_, "sample")) {
    return false;
  }
  // The engine's search for an order of joins takes ever longer with more tables.
  const auto same = std::ranges::count(pair_terms_, items, &PairTerm::items);
  if (same >= kMostPairTables) return false;
  const auto& arguments = state_.plan.calls[conjunct.calls[0].call.value()].arguments;
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const Argument& argument) { return argument.id_column.empty(); });
}

/// The term becomes a truth where it stands, and a join with the pairs that it lets survive.
PairTable BlockBinder::MovePairs(Term& term, const Call& call) {
  PairTerm pairs{term.reads.items, state_.NewPairTable(call.arguments.size()), nullptr};
  std::vector<Json> equalities;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    const std::size_t item = argument.relation.value() - first_relation_;
    equalities.push_back(writer_.ParseExpression(
        fmt::format("{} = {}", ColumnSql(pairs.table.name, pairs.table.columns[i]),
                    ColumnSql(from_.items[item].alias, argument.id_column))));
  }
  pairs.condition = writer_.MakeAnd(std::move(equalities));
  *term.node = writer_.truth();
  term.pushed = true;
  pair_terms_.push_back(pairs);
  return pairs.table;
}

Json BlockBinder::WithPairTables(Json from, ItemSet items, std::vector<Json>& terms) const {
  for (const PairTerm& pairs : pair_terms_) {
    if ((pairs.items & ~items) != 0) continue;
    from = writer_.CrossJoin(std::move(from), pairs.table.name);
    terms.push_back(pairs.condition);
  }
  return from;
}

/// The block's own FROM and WHERE. The last change of the tree: items and joins point into it.
void BlockBinder::ReadPairTables() {
  if (pair_terms_.empty()) return;
  std::vector<Json> terms;
  if (select_["where_clause"].is_object()) terms.push_back(std::move(select_["where_clause"]));
  select_["from_table"] = WithPairTables(std::move(select_["from_table"]), ~ItemSet{0}, terms);
  select_["where_clause"] = writer_.MakeAnd(std::move(terms));
}

void BlockBinder::NoteCase(const GuardedCall& guarded) {
  auto& noted = state_.plan.case_calls;
  if (!guarded.in_case || std::find(noted.begin(), noted.end(), guarded.call) != noted.end())
    return;
  noted.push_back(guarded.call);
}

/// FROM as far as its rows are known before the calls on demand are decided: a join on one of them,
/// on a subquery whose calls are not bound yet, or on more than `items` and what is below, keeps
/// all pairs and every row without a partner that it may have, an anti join all rows of its left
/// side; so does a join whose partners may be fewer than those in the domain. So a domain may ask
/// too much, never too little.
Json BlockBinder::WithKnownJoins(Json from, ItemSet items) const {
  KeepKnownJoins(from, items);
  return from;
}

/// WithKnownJoins in place. Returns whether `from` may have more rows now than it will have.
bool BlockBinder::KeepKnownJoins(Json& from, ItemSet items) const {
  if (sql::TypeOf(from) != "JOIN") return ReadsUndecided(from);
  const bool left_open = KeepKnownJoins(from["left"], items);
  const bool right_open = KeepKnownJoins(from["right"], items);
  const bool known =
      IsKnownBefore(from["condition"], items) &&
      !(sql::TextMember(from, "ref_type") == "POSITIONAL" && (left_open || right_open));
  if (left_open || right_open || !known) PairByCondition(from);
  const std::string_view type = sql::TextMember(from, "join_type");
  const bool outer = type == "LEFT" || type == "RIGHT" || type == "FULL";
  const bool lacks_left = type != "LEFT" && (left_open || !known);
  const bool lacks_right = type != "RIGHT" && (right_open || !known);
  if (type == "ANTI" && (right_open || !known)) {
    from["condition"] = writer_.ParseExpression("FALSE");
  } else if (outer && (lacks_left || lacks_right)) {
    from = WithLonelyRows(std::move(from), known);
  } else if (!known) {
    from["condition"] = writer_.truth();
  }
  return left_open || right_open || !known;
}

/// Of rows that may be too many ASOF would take others than the nearest that there will be, and
/// POSITIONAL those of other numbers: a join of all pairs that its condition allows has them all.
void BlockBinder::PairByCondition(Json& join) {
  const std::string form(sql::TextMember(join, "ref_type"));
  if (form != "ASOF" && form != "POSITIONAL") return;
  join["ref_type"] = "REGULAR";
  if (form == "POSITIONAL") join["join_type"] = "FULL";
}

/// The pairs of an outer join, all where its condition is not known, and each row that it keeps
/// without a partner.
Json BlockBinder::WithLonelyRows(Json join, bool known) const {
  if (!join["using_columns"].empty()) return WithLonelyRowsOfUsing(std::move(join));
  const std::string_view type = sql::TextMember(join, "join_type");
  std::string lonely;
  for (const char* side : {"left", "right"}) {
    if (type == (side == std::string_view("left") ? "LEFT" : "RIGHT")) continue;
    const std::string name = state_.NewTable();
    join[side] = WithMissingRow(std::move(join[side]), name);
    lonely += fmt::format("{}{}.n = 0", lonely.empty() ? "" : " OR ", name);
  }
  if (!known) {
    join["condition"] = writer_.truth();
  } else {
    Json either = writer_.ParseExpression(fmt::format("TRUE OR {}", lonely));
    either["children"][0] = std::move(join["condition"]);
    join["condition"] = std::move(either);
  }
  join["join_type"] = "INNER";
  return join;
}

/// The same of USING, whose columns stay merged: a side whose rows the join keeps has each of them
/// twice, once with a mark that none of the other side has.
Json BlockBinder::WithLonelyRowsOfUsing(Json join) const {
  const std::string_view type = sql::TextMember(join, "join_type");
  const std::string mark = state_.NewTable();
  const auto mark_rows = [&](const char* side, const char* marks) {
    Json from =
        writer_.ParseFrom(fmt::format("{} AS {}({}) CROSS JOIN t", marks, state_.NewTable(), mark));
    from["right"] = std::move(join[side]);
    join[side] = std::move(from);
  };
  mark_rows("left", type == "RIGHT" ? "range(1)" : "range(2)");
  mark_rows("right", type == "LEFT" ? "range(1)" : "range(0, 4, 2)");
  join["using_columns"].push_back(mark);
  return join;
}

/// Whether a part reads verdicts that are not there yet, by itself or through a WITH.
bool BlockBinder::ReadsUndecided(const Json& part) const {
  return ContainsOnDemand(part) || ContainsAiCall(part) || NamesAiCte(part, place_.ctes);
}

/// Whether a domain over `items` can test the condition of a join.
bool BlockBinder::IsKnownBefore(const Json& condition, ItemSet items) const {
  if (!condition.is_object()) return true;
  if (ReadsUndecided(condition)) return false;
  const Reads reads = scope_.ReadsOf(condition);
  if ((reads.items & ~items) != 0) return false;
  return !place_.nested || (!reads.outside && !reads.has_subquery);
}

/// The rows of a side of a join, where `name`.n is 1, and one of NULLs, where it is 0.
Json BlockBinder::WithMissingRow(Json side, const std::string& name) const {
  Json join = writer_.ParseFrom(fmt::format("range(2) AS {0}(n) LEFT JOIN t ON {0}.n = 1", name));
  join["right"] = std::move(side);
  return join;
}

/// ON of joins that keep rows without a partner: asked on the pairs that the other terms of that ON
/// leave.
void BlockBinder::PlanJoinTerms() {
  for (const FromJoin& join : from_.joins) {
    const Json& condition = (*join.node)["condition"];
    if (join.core || !condition.is_object() || !ContainsLookup(condition)) continue;
    const auto calls = GuardedCallsOf(condition, ValueUse::kFilter, scope_, writer_);
    const ItemSet sides = join.left | join.right;
    Json pairs = WithoutOpenTerms(*join.node);
    pairs["join_type"] = "INNER";
    pairs["condition"] = nullptr;
    pairs["ref_type"] = "CROSS";
    std::vector<Json> terms;
    Json from = WithPairTables(WithKnownJoins(std::move(pairs), sides), sides, terms);
    const ItemSet before = ItemsBefore(join, calls);
    from = WithItems(std::move(from), before);
    AddComputed(calls, {std::move(from), (join.seen & sides) | before, std::move(terms)});
  }
}

/// The items before a comma that the ON behind it names. That it asks about them the engine takes
/// of inner joins only, which is told before anything is asked.
ItemSet BlockBinder::ItemsBefore(const FromJoin& join, const std::vector<GuardedCall>& calls) {
  scope_.SeeJoin(join);
  const ItemSet before = scope_.SourcesOf((*join.node)["condition"]) & ~(join.left | join.right);
  scope_.SeeResult();
  if (sql::TextMember(*join.node, "join_type") == "INNER") return before;
  for (const GuardedCall& guarded : calls) {
    for (const Argument& argument : state_.plan.calls[guarded.call.value()].arguments) {
      const std::size_t item = argument.relation.value() - first_relation_;
      if (argument.id_column.empty() || Has(join.left | join.right, item)) continue;
      throw source_.At(*join.node, ErrorCode::kUnsupported,
                       fmt::format("the ON of this join asks about {}, which a comma divides from "
                                   "it: not supported, write CROSS JOIN for the comma",
                                   from_.items[item].alias));
    }
  }
  return before;
}

/// Each row of `from` with all rows of `items`, and with one of NULLs for each that may be missing.
Json BlockBinder::WithItems(Json from, ItemSet items) const {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!Has(items, i)) continue;
    from = writer_.CrossJoin(std::move(from), items_[i].table);
    Json item = *from_.items[i].node;
    from["right"] = from_.items[i].missing ? WithMissingRow(std::move(item), state_.NewTable())
                                           : std::move(item);
  }
  return from;
}

/// A join below which the AND terms of the block that ask after it hold of every pair: their
/// verdicts are not there yet.
Json BlockBinder::WithoutOpenTerms(const Json& join) const {
  std::vector<std::pair<Json*, Json>> kept;
  for (const Term& term : terms_) {
    if (!term.asks || term.core) continue;
    kept.emplace_back(term.node, std::exchange(*term.node, writer_.truth()));
  }
  Json copy = join;
  for (auto& [place, condition] : kept) *place = std::move(condition);
  return copy;
}

/// FROM without the ON terms that are AND terms of the block: some of them may not be testable yet.
Json BlockBinder::FromWithoutCoreTerms() const {
  // Moved away and back, not copied: terms point into the conditions.
  std::vector<std::pair<Json*, Json>> kept;
  for (const FromJoin& join : from_.joins) {
    Json& condition = (*join.node)["condition"];
    if (!join.core || !condition.is_object()) continue;
    kept.emplace_back(&condition, std::move(condition));
    condition = writer_.truth();
  }
  Json from = select_["from_table"];
  for (auto& [place, condition] : kept) *place = std::move(condition);
  return from;
}

}  // namespace quail::plan
