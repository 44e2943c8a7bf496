#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/strong_id.h"
#include "quail/error.h"

/// The waist between planner and executor: what to run, in what order, with which anchor. Plain
/// data.
namespace quail::plan {

using RelationId = base::StrongId<struct RelationIdTag, std::uint32_t>;
using CallId = base::StrongId<struct CallIdTag, std::uint32_t>;

/// What a call reads from the model, and what its lookup returns.
enum class CallKind : std::uint8_t {
  kFilter,       ///< BOOLEAN: TRUE iff probability > threshold (default .5)
  kProbability,  ///< DOUBLE: sigmoid(margin)
  kCountTokens,  ///< INTEGER: tokens of the text, no model call
};

enum class OnLong : std::uint8_t { kError, kHead, kTail, kMiddle };

struct CallOptions {
  std::optional<double> selectivity;      ///< hint, in [0, 1]
  std::optional<double> threshold;        ///< in [0, 1]
  std::optional<std::string> anchor;      ///< alias of the side that becomes the anchor
  std::optional<double> max_error_ratio;  ///< in [0, 1]
  OnLong on_long = OnLong::kError;
  bool return_error_details = false;
};

/// A prompt argument: a text of one relation's row, known by its TextId in `id_column` of the
/// relation's table. A constant argument beside others belongs to the first relation that the call
/// reads. In a call that reads no relation, id_column is empty; such calls are asked by an
/// AskColumnStep only.
struct Argument {
  RelationId relation;
  std::string id_column;
  std::string sql;      ///< the expression as the user would write it, for EXPLAIN
  bool tokens = false;  ///< its texts are token lists: a TOKENS column
};

/// One AI call in canonical form (sql.md section 1). Two calls of a statement that ask the same are
/// one Call.
struct Call {
  CallId id;
  CallKind kind = CallKind::kFilter;
  std::string function;  ///< canonical name, "AI_FILTER"
  std::string prompt;    ///< canonical template: {0}.. are `arguments`, braces doubled
  std::vector<Argument> arguments;
  CallOptions options;
  std::optional<TextPosition> position;
  /// Only the engine can tell the arguments, row by row (correlated subqueries, aggregates, AI
  /// calls inside of arguments ..): asked by an AskOnDemandStep. Its lookups intern the texts
  /// themselves; the arguments have no id_column and no meaning of `relation`.
  bool on_demand = false;
  /// Of a call on demand between two sides: which arguments are the anchor's. Else empty.
  std::vector<bool> on_demand_anchor;
};

/// One FROM item of a query block, materialised once: its non-AI part, read by one statement.
/// `create_sql` makes `table` with a BIGINT column quail_row, the columns that the block needs, and
/// one INTEGER column a distinct argument expression holding quail_text_id(expression), NULL where
/// the text is NULL.
struct Relation {
  RelationId id;
  std::string alias;
  std::string table;
  std::string create_sql;
  std::vector<std::string> id_columns;
};

/// A row (or pair) survives where the verdict of `call` is TRUE, or with `negated` FALSE.
struct Predicate {
  CallId call;
  bool negated = false;
};

/// Asks filters of one relation, document by document in the given order: a later predicate only
/// where all earlier ones let the row survive.
struct AskFilterStep {
  RelationId relation;
  std::vector<Predicate> predicates;
  std::optional<std::size_t>
      feeds;  ///< the later step whose anchor is this relation: KV is kept for it
  /// Surviving rows after which no more is asked (LIMIT without ORDER BY).
  std::optional<std::uint64_t> enough = std::nullopt;
};

/// Asks join predicates on the distinct pairs of two relations' surviving rows.
struct AskJoinStep {
  RelationId anchor;
  RelationId partner;
  std::vector<Predicate> stages;
  /// Empty: the cross product of both sides' distinct argument tuples. Else a SELECT that gives one
  /// row for each pair of rows that all other conditions leave (the executor counts them and asks
  /// the distinct ones): first the anchor's id columns, then the partner's, each once, by first use
  /// in the stages' arguments. It may use quail_verdict() of earlier steps.
  std::string pairs_sql;
  /// To run once all verdicts are decided: fills the tables of surviving pairs that later SQL
  /// reads.
  std::vector<std::string> keep_sql = {};
  /// Surviving pairs after which no more is asked.
  std::optional<std::uint64_t> enough = std::nullopt;
};

/// Asks one call on the distinct argument tuples that `domain_sql` selects (one row a row that
/// needs the value; columns: the id columns of the arguments in order, or one column of any kind
/// for a call without arguments), which may use quail_verdict() of earlier steps: computed columns,
/// conditions under OR and CASE.
struct AskColumnStep {
  CallId call;
  std::string domain_sql;
  /// Set where the arguments come from two relations: prompts are laid out as a join's with this
  /// side as the anchor.
  std::optional<RelationId> anchor;
};

/// Runs `sql` for its effect: a temp table that a later step reads, or a DELETE of a relation's
/// rows that can no longer be in the result. So a step reads the relations' tables when it begins,
/// not before.
struct RelationalStep {
  std::string sql;
  /// Set where `sql` deletes the rows of one side of the join step before it that are in no pair
  /// which all its stages let survive. Such a step may run later, until a step reads that relation.
  std::optional<RelationId> keeps_matched = std::nullopt;
};

/// An EXISTS that needs, for a row of the query around it, no more than one row of the subquery.
/// Lookups in it are quail_verdict_until(stop, call, width, row.., id..) and the like, where `row`,
/// `width` text ids, says which row of the query around it is meant. A row of the subquery is found
/// by the truth of the only call, or by a condition over the calls: quail_met(condition, stop,
/// row..).
struct EarlyStop {
  std::vector<CallId> calls;
  bool has_condition = false;
  bool negated = false;    ///< without a condition: FALSE is what is looked for
  std::uint32_t wave = 1;  ///< tuples of a row that are asked before the first answer is looked at
};

/// Runs the statement, `query`, again and again: what the lookups of `calls` find undecided is
/// asked, until a run finds nothing. That run is one of `sql`, which keeps the rows. They are right
/// whatever the engine evaluated in whichever order, because it read decided verdicts only. Of the
/// tuples of an early stop's row nothing is asked once one lets it survive: then the others are
/// read undecided and cannot matter. The last step; final_sql reads what it kept.
struct AskOnDemandStep {
  std::vector<CallId> calls;
  std::string sql;
  std::string query;
  std::vector<EarlyStop> stops = {};  ///< index = `stop` of the lookups
};

using Step =
    std::variant<RelationalStep, AskFilterStep, AskJoinStep, AskColumnStep, AskOnDemandStep>;

/// What the planner predicts of a step; EXPLAIN prints it, EXPLAIN ANALYZE beside the actual
/// figures.
struct StepEstimate {
  std::string name;    ///< "filter reviews", "join customers x products"
  double rows_in = 0;  ///< rows or pairs that reach the step
  double asks = 0;
  double selectivity = 0;
  std::string selectivity_from;  ///< "hint", "default", "history", "sample"
  double fresh_tokens = 0;
  double requested_tokens = 0;
  double roofline_seconds = 0;
  double predicted_seconds = 0;
  std::string anchor_reason;  ///< with the price of the other side
};

/// A statement with AI calls, ready to run: make the relations in order, run every `reduction_sql`
/// (each deletes rows of a relation that the conditions without AI calls exclude), run the steps in
/// order, then `final_sql` once. In final_sql and step SQL every AI call is a lookup keyed by text
/// ids: quail_verdict(call, id..) BOOLEAN, quail_probability(call, id..) DOUBLE, quail_tokens(call,
/// id..) INTEGER, quail_error(call, id..) VARCHAR; or quail_verdict_until and the like (EarlyStop).
/// quail_known_verdict(call, id..) and the like are read where only the value matters, not that it
/// is read; quail_is_decided(call, id..) BOOLEAN says whether there is one, and has it asked if not
/// (quail_is_decided_until of an EarlyStop).
struct PhysicalPlan {
  std::vector<Relation> relations;
  std::vector<std::string> reduction_sql;
  std::vector<Call> calls;         ///< index = CallId
  std::vector<CallId> case_calls;  ///< without a verdict of theirs a row falls into ELSE of a CASE
  std::vector<Step> steps;
  std::vector<StepEstimate> estimates;  ///< one a step
  std::string final_sql;
  /// The rows of final_sql as one query over lookups, empty where another run of it may give
  /// others.
  std::string repeatable_sql;
  std::vector<std::string> cleanup_sql;  ///< drops what the relations and steps made
  std::vector<std::string> notices;
};

}  // namespace quail::plan
