#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/catalog.h"
#include "relational/connection.h"

namespace quail::session {

/// What is known of a connection's functions: the engine takes as long to list them as to bind a
/// statement.
struct KnownFunctions {
  /// Those that users made, once they were read; empty again whenever one may have come or gone.
  std::optional<std::vector<plan::Macro>> macros;
  std::set<std::string> built_in;  ///< owner.function, of those asked for
  /// The engine's that give a value for each row; read and empty again as macros.
  std::optional<std::set<std::string>> scalars;
};

/// What binding asks, answered by the session's connection.
class ConnectionCatalog : public plan::Catalog {
 public:
  ConnectionCatalog(relational::Connection& connection, KnownFunctions& known)
      : connection_(connection), known_(known) {}

  columnar::Schema Columns(std::string_view select_sql) override;
  bool Binds(std::string_view select_sql) override;
  std::string Parse(std::string_view select_sql) override;
  std::string Print(std::string_view json) override;
  std::vector<std::string> Row(std::string_view select_sql) override;
  bool HasFunction(std::string_view owner, std::string_view function) override;
  bool IsScalar(std::string_view function) override;
  std::vector<plan::Macro> Macros() override;

 private:
  relational::Connection& connection_;
  KnownFunctions& known_;
};

}  // namespace quail::session
