#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/from_items.h"
#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// What an expression reads from its block.
struct Reads {
  ItemSet items = 0;
  /// It reads what is not a column of an item for certain: an enclosing block's column, an alias of
  /// the select list, a parameter.
  bool outside = false;
  bool has_subquery = false;
  bool is_volatile = false;  ///< random() and the like: must run once
  bool aggregates = false;   ///< it is about groups or windows, not rows
};

/// Whether a function makes one value of many rows.
bool IsAggregate(std::string_view function);

/// The names of one block.
class NameScope {
 public:
  /// `volatile_macros`: see VolatileMacros; outlives the scope.
  NameScope(const FromTree& from, const SourceText& source,
            const std::set<std::string>& volatile_macros)
      : from_(from), source_(source), volatile_macros_(volatile_macros) {
    SeeResult();
  }

  /// Names of arguments stand where the rows of FROM are seen, or in the ON of a join.
  void SeeResult();
  void SeeJoin(const FromJoin& join) { seen_ = join.seen; }

  /// The items' columns are not known: names are the engine's to resolve.
  void LeaveUndescribed() { described_ = false; }

  /// Everything that `expression` may read; names inside of nested queries that could be an item's
  /// count as its.
  Reads ReadsOf(const sql::Json& expression) const;

  /// Adds the columns that `expression` reads of enclosing queries, each once. REQUIRES: no nested
  /// queries and lambdas in it.
  void CollectOutside(const sql::Json& expression, std::vector<sql::Json>& columns) const;

  /// What an argument of an AI call reads.
  struct ArgumentReads {
    ItemSet items = 0;
    bool outside = false;  ///< columns of enclosing queries
    bool computed =
        false;  ///< more than columns of rows: subqueries, aggregates, AI calls, lambdas
  };
  /// `nested`: names that no item has are an enclosing query's columns. Throws Error{kBind} for
  /// unknown and ambiguous columns, with their place, Error{kUnsupported} for volatile functions.
  ArgumentReads ResolveArgument(const sql::Json& expression, bool nested) const;

  /// The item and the column of a plain COLUMN_REF, -1 where it is none.
  struct Column {
    int item = -1;
    int column = -1;
  };
  Column ColumnOf(const sql::Json& expression) const;
  /// Whether an item of that name has that column.
  bool IsColumn(const std::string& item, const std::string& column) const;
  /// The items whose column a name without a qualifier is, where it is seen: one, none, or more of
  /// them where it is ambiguous or where FULL JOIN .. USING merged it into the first that is not
  /// NULL.
  ItemSet SourcesOf(const std::string& column) const;
  /// The same of all columns of an expression.
  ItemSet SourcesOf(const sql::Json& expression) const;
  /// The same of the column that USING names, in one side of its join.
  ItemSet SourcesIn(const std::string& column, ItemSet side) const;
  /// The first reference in `expression` to a column of a type, also to a member of it; nullptr if
  /// there is none.
  const sql::Json* FirstColumnOfType(const sql::Json& expression, std::string_view type) const;

 private:
  bool IsVolatile(const std::string& function) const;
  void RefuseVolatile(const std::string& function, const sql::Json& at) const;
  ItemSet ItemsWith(const std::string& column) const;
  ItemSet SeenItemsWith(const std::string& column) const;
  int ItemNamed(const std::string& alias) const;
  void AddReads(const sql::Json& node, bool nested, Reads& reads) const;
  void AddColumn(const sql::Json& reference, bool nested, Reads& reads) const;
  void Resolve(const sql::Json& node, bool nested, ArgumentReads& reads) const;
  /// nullopt: no item has it.
  std::optional<ItemSet> ResolveColumn(const sql::Json& reference) const;
  [[noreturn]] void FailAtUnknown(const sql::Json& reference) const;
  [[noreturn]] void FailAtAmbiguous(const sql::Json& reference, ItemSet one, ItemSet other) const;
  /// A column that USING merged.
  struct MergedColumn {
    ItemSet items = 0;
    ItemSet sources = 0;  ///< of `items`: whose it is; more than one after FULL
  };
  std::vector<MergedColumn> MergedIn(const std::string& column, ItemSet items) const;
  ItemSet SourcesAmong(const std::string& column, ItemSet items) const;
  std::string Suggest(const std::string& name) const;

  const FromTree& from_;
  const SourceText& source_;
  const std::set<std::string>& volatile_macros_;
  ItemSet seen_ = 0;
  bool described_ = true;
};

}  // namespace quail::plan
