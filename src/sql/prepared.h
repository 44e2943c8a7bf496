#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sql/statement.h"

namespace quail::sql {

/// PREPARE name AS statement.
struct Preparation {
  std::string name;
  ScriptPart inner;
};

/// EXECUTE name(value, ..) or name(parameter := value, ..).
struct Execution {
  struct Value {
    std::string parameter;  ///< lower case; "1" and on where none is named
    std::string sql;        ///< as the relational engine reads it
  };
  std::string name;
  std::vector<Value> values;
};

/// nullopt for other statements. Throw Error{kSyntax | kUnsupported} with positions in the script.
std::optional<Preparation> ReadPreparation(std::string_view script, const ScriptPart& part,
                                           Dialect dialect);
std::optional<Execution> ReadExecution(std::string_view script, const ScriptPart& part,
                                       Dialect dialect);
/// DEALLOCATE: the name, empty for ALL.
std::optional<std::string> ReadDeallocation(std::string_view script, const ScriptPart& part,
                                            Dialect dialect);

}  // namespace quail::sql
