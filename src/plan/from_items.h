#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/batch.h"
#include "plan/physical.h"
#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// A set of FROM items of a block, bit i = item i.
using ItemSet = std::uint64_t;
constexpr std::size_t kMaxItems = 64;

/// A table, file, subquery or function in FROM: a leaf of the tree of joins.
struct FromItem {
  sql::Json* node = nullptr;
  std::string alias;     ///< its name for columns; may be empty
  bool renamed = false;  ///< by an alias: no qualified name is its
  std::string schema;    ///< of a table named with one
  std::string table;     ///< the table's own name
  bool core =
      true;  ///< every row of the result has a row of it, and every WHERE term may be tested on it
  bool missing = false;      ///< a row of the result may have NULLs in its place
  bool visible = true;       ///< `*` shows its columns (not the right side of SEMI and ANTI joins)
  columnar::Schema columns;  ///< filled by the binder
  /// The last ones of `columns`, as many as these, are virtual: `*` does not show them (rowid).
  std::vector<std::string> virtual_columns;

  std::size_t shown_columns() const { return columns.size() - virtual_columns.size(); }
};

/// A JOIN of the tree.
struct FromJoin {
  sql::Json* node = nullptr;
  ItemSet left = 0;
  ItemSet right = 0;
  ItemSet seen = 0;   ///< whose columns its ON may name: not the right sides of SEMI and ANTI below
  bool core = false;  ///< an inner join whose ON terms every row of the result meets
};

struct FromTree {
  std::vector<FromItem> items;
  std::vector<FromJoin> joins;  ///< inner before outer
};

/// The items and joins below a block's from_table. Throws Error{kUnsupported} for more than
/// kMaxItems items.
FromTree ReadFrom(sql::Json& from, const SourceText& source);

/// The set of an item.
inline ItemSet SetOf(std::size_t item) { return ItemSet{1} << item; }
/// Its first item. REQUIRES: it has one.
inline std::size_t FirstOf(ItemSet set) { return static_cast<std::size_t>(std::countr_zero(set)); }
inline bool Has(ItemSet set, std::size_t item) { return (set & SetOf(item)) != 0; }

/// Index of a column in a schema (names compare without case), or -1.
int FindColumn(const columnar::Schema& columns, std::string_view name);

}  // namespace quail::plan
