#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "columnar/batch.h"

namespace quail::plan {

/// A macro and the SELECT that stands for its value.
struct Macro {
  std::string name;
  std::string select_sql;
};

/// What binding asks of the relational engine. Implemented by whoever holds the connection; errors
/// of the engine are thrown as Error, their positions (if any) in the text that was given.
class Catalog {
 public:
  virtual ~Catalog() = default;
  /// Names and types of the columns that a SELECT would return (DESCRIBE); nothing is run.
  virtual columnar::Schema Columns(std::string_view select_sql) = 0;
  /// Whether the engine knows all names of a SELECT.
  virtual bool Binds(std::string_view select_sql) = 0;
  /// The engine's own parse of one SELECT statement, as json_serialize_sql writes it.
  virtual std::string Parse(std::string_view select_sql) = 0;
  /// The SQL text of such a tree (json_deserialize_sql).
  virtual std::string Print(std::string_view json) = 0;
  /// The only row of a SELECT, as text; NULL is an empty one.
  virtual std::vector<std::string> Row(std::string_view select_sql) = 0;
  /// Whether `owner`, a schema or a database, has a function or macro of this name (in lower case).
  virtual bool HasFunction(std::string_view owner, std::string_view function) = 0;
  /// Whether every function of this name (in lower case) is the engine's own and gives a value for
  /// each row: no aggregate, macro or table.
  virtual bool IsScalar(std::string_view function) = 0;
  /// The macros that users made; of several forms of one each.
  virtual std::vector<Macro> Macros() = 0;
};

}  // namespace quail::plan
