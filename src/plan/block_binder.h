#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/bind_state.h"
#include "plan/from_items.h"
#include "plan/guards.h"
#include "plan/name_scope.h"

namespace quail::plan {

/// Where a block stands.
struct BlockPlace {
  const std::vector<VisibleCte>& ctes;
  bool nested = false;     ///< inside of an expression of another block
  bool on_demand = false;  ///< all its calls are (inside of a recursive query)
  bool exists = false;     ///< it is asked only whether it has a row
};

/// Binds one query block (SELECT_NODE) that has AI calls of its own: its FROM items become
/// relations, its calls lookups, its AND terms conjuncts of the plan; the tree is rewritten in
/// place to read the relations' tables and the lookups. Calls whose arguments only the engine can
/// tell, and all calls over a FROM that cannot be read once before, are asked on demand.
class BlockBinder {
 public:
  BlockBinder(BindState& state, sql::Json& select, const BlockPlace& place);
  /// Throws Error{kBind | kUnsupported} with the place in the user's text.
  void Bind();

 private:
  /// An AND term of WHERE or of an inner join's ON.
  struct Term {
    sql::Json* node = nullptr;
    Reads reads;
    bool core = false;  ///< every row of the result meets it, and it reads core items only
    bool asks = false;  ///< has AI calls of its own
    bool deep = false;  ///< AI calls in a subquery of it
    bool pushed = false;
  };
  /// What a relation's table needs beside the item's own columns.
  struct IdColumn {
    std::string name;
    std::string argument_sql;
    bool tokens = false;  ///< a list of token ids rather than a text
  };
  struct Item {
    RelationId relation;
    std::string table;
    sql::Json source;  ///< the item as the user wrote it, once replaced
    std::vector<sql::Json> local_terms;
    std::vector<IdColumn> id_columns;
  };

  /// A term that a pair table stands for: its relations' rows, joined with the table, where
  /// `condition` holds.
  struct PairTerm {
    ItemSet items = 0;
    PairTable table;
    sql::Json condition;
  };

  /// An argument of a call with what it reads.
  struct BoundArgument {
    sql::Json* expression = nullptr;
    NameScope::ArgumentReads reads;
  };

  // Names and shape.
  bool ReadsAiRows() const;
  bool DescribeItems();
  bool DescribeVirtualColumns();
  bool HasVirtualColumn(std::size_t item, const std::string& column);
  bool Selects(std::size_t item, const sql::Json& reference);
  bool IsList(const sql::Json& expression);
  void ReplaceValueNames();
  void ReplaceValueNames(sql::Json& node, const std::set<std::string>& names);
  bool ShowsAddedColumns() const;
  void AddItems();
  std::optional<columnar::Schema> ColumnsOf(std::size_t item);
  void NameUnnamedItems();
  bool SharesAlias() const;
  bool ShortenSchemaNames(sql::Json& node, bool nested);
  std::size_t QualifiersOf(const std::vector<std::string>& path, std::size_t index);
  void ReplaceNaturalJoins();
  /// What the aliases of the select list stand for at a place.
  enum class AliasPlace { kWhere, kCall, kElsewhere };
  void ExpandAliases(sql::Json& node, AliasPlace place, std::size_t before);
  /// The item of the select list that has an alias, of several the last.
  std::optional<std::size_t> ItemNamed(const std::string& name) const;
  /// What a key of ORDER BY means: that, or the only item that is a column of this name.
  std::optional<std::size_t> KeyNamed(const std::string& name) const;
  /// What a name means elsewhere, where a column of FROM hides it, if it is among the `before` ones
  /// in front.
  std::optional<std::size_t> AliasedItem(const std::string& name, std::size_t before) const;

  // AND terms.
  void QualifyUsingColumns(sql::Json& node) const;
  bool MergesColumn(const std::string& column) const;
  void CollectTerms();
  void AddTerms(sql::Json& node, bool core);
  void PushLocalTerms();
  bool IsUsable(const Term& term) const;
  void AddUsingTerms();
  bool IsOneCoreItem(ItemSet items) const;
  void AddRelationalConjunct(const std::string& sql, ItemSet items);

  // Calls.
  void NameResultColumns();
  bool IsGrouped() const;
  bool ForcesAggregates() const;
  std::vector<sql::Json*> KeyItems();
  void NoteKeyCalls(const sql::Json& node);
  void BindAllCalls();
  void BindOnDemand();
  void BindCallsIn(sql::Json& node);
  void BindCall(sql::Json& node);
  bool NeedsEngine(const std::vector<BoundArgument>& arguments, const sql::Json& node) const;
  Call BindPlanned(Call call, const std::vector<BoundArgument>& arguments, const sql::Json& node);
  sql::Json BindOnDemand(Call call, const std::vector<BoundArgument>& arguments,
                         const sql::Json& node);
  void ChooseAnchor(Call& call, const std::vector<BoundArgument>& arguments,
                    const sql::Json& node) const;
  Argument BindArgument(const sql::Json& expression, ItemSet items);
  bool IsTokens(const sql::Json& expression, std::size_t item) const;
  std::string LookupSql(const Call& call) const;
  /// `form` names the function of a kind of lookup: "quail_{}", "quail_known_{}", "quail_{}_until".
  static std::string LookupSql(const Call& call, const std::string& arguments,
                               std::string_view form = "quail_{}");
  void CheckAnchor(const Call& call, const sql::Json& node) const;

  void ReadOnDemandLazily();

  // EXISTS.
  bool StopsEarly();
  void BindEarlyStop();
  void CollectOutside(sql::Json& condition, std::vector<sql::Json>& columns) const;
  sql::Json MetCondition(sql::Json condition, std::size_t stop, const std::string& row) const;

  // Conjuncts and computed calls.
  void PlanCoreTerms();
  void NoteCase(const GuardedCall& guarded);
  void PlanJoinTerms();
  bool FitsPairTable(const AiConjunct& conjunct, ItemSet items) const;
  PairTable MovePairs(Term& term, const Call& call);
  /// FROM over `items` with their pair tables; their conditions are added to `terms`.
  sql::Json WithPairTables(sql::Json from, ItemSet items, std::vector<sql::Json>& terms) const;
  void ReadPairTables();
  sql::Json FromWithoutCoreTerms() const;
  sql::Json WithKnownJoins(sql::Json from, ItemSet items) const;
  bool ReadsUndecided(const sql::Json& part) const;
  bool IsKnownBefore(const sql::Json& condition, ItemSet items) const;
  ItemSet ItemsBefore(const FromJoin& join, const std::vector<GuardedCall>& calls);
  sql::Json WithItems(sql::Json from, ItemSet items) const;
  sql::Json WithoutOpenTerms(const sql::Json& join) const;
  bool KeepKnownJoins(sql::Json& from, ItemSet items) const;
  static void PairByCondition(sql::Json& join);
  sql::Json WithLonelyRows(sql::Json join, bool known) const;
  sql::Json WithLonelyRowsOfUsing(sql::Json join) const;
  sql::Json WithMissingRow(sql::Json side, const std::string& name) const;
  void PlanComputed();
  void PlanSelectList(const sql::Json& from, const std::vector<sql::Json>& terms);
  /// The rows of a domain: FROM, the items whose columns it shows, AND terms, and what LIMIT leaves
  /// of the rows (null: all).
  struct DomainRows {
    sql::Json from;
    ItemSet items = 0;
    std::vector<sql::Json> terms;
    sql::Json modifiers = nullptr;
  };
  /// The rows of a domain that are kept, as a condition.
  struct OpenRows {
    KeptGuards guards;
    sql::Json condition = nullptr;
  };
  void AddComputed(const std::vector<GuardedCall>& calls, const DomainRows& rows);
  std::string DomainSql(const GuardedCall& guarded, const DomainRows& rows,
                        const OpenRows& open) const;
  std::string LimitedDomainSql(const GuardedCall& guarded, const DomainRows& rows) const;
  std::string KeepOpenRows(const GuardedCall& guarded, const DomainRows& rows, OpenRows& open);
  std::vector<sql::Json> OpenTerms(const std::shared_ptr<const Guard>& guard,
                                   const DomainRows& rows, const OpenRows& open) const;
  ItemSet VisibleItems() const;
  bool LimitsPlainRows() const;
  std::optional<std::set<std::size_t>> OrderedItems() const;
  sql::Json LimitModifiers(bool has_list) const;
  void SpellItem(sql::Json& key) const;
  std::vector<sql::Json> IdColumnsOf(const Call& call) const;
  std::vector<RelationId> RelationsOf(ItemSet items) const;

  // Relations.
  void CreateRelations();
  std::string CreateSql(std::size_t index, const std::vector<std::string>& columns) const;
  std::vector<std::string> NeededColumns(std::size_t index);
  sql::Json ReadOf(std::size_t item) const;
  void ReplaceItems();
  void HideColumns(sql::Json& node);
  void DropTruths(sql::Json& holder, const char* key);
  void AddReductions();
  void SetLimit();
  std::string WithVisibleCtes(sql::Json node) const;

  BindState& state_;
  const SourceText& source_;
  const SqlWriter& writer_;
  sql::Json& select_;
  BlockPlace place_;
  FromTree from_;
  NameScope scope_;
  std::vector<Term> terms_;
  std::vector<Item> items_;
  std::vector<PairTerm> pair_terms_;
  std::size_t first_relation_ = 0;
  std::size_t first_conjunct_ = 0;
  std::size_t first_computed_ = 0;
  std::size_t first_relational_ = 0;
  std::size_t expansions_ = 0;  ///< of names of the select list
  bool rows_known_ = true;  ///< joins and AND terms can all be tested when computed calls are asked
  bool limits_rows_ = false;  ///< the select list is asked about the rows that LIMIT leaves
  bool on_demand_ = false;    ///< every call is
  /// What lookups need to belong to an early stop.
  struct EarlyStopLookup {
    std::size_t number = 0;
    std::string row;  ///< the number of ids that tell the outer query's row, and they
  };
  std::optional<EarlyStopLookup> early_stop_;
  bool by_group_ = false;            ///< the expression at hand has a value a group
  std::set<std::string> key_calls_;  ///< calls inside of grouping keys, as text
};

}  // namespace quail::plan
