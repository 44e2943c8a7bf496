#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/catalog.h"
#include "relational/connection.h"

namespace quail::session {

/// What binding asks, answered by the session's connection.
class ConnectionCatalog : public plan::Catalog {
 public:
  explicit ConnectionCatalog(relational::Connection& connection) : connection_(connection) {}

  columnar::Schema Columns(std::string_view select_sql) override;
  bool Binds(std::string_view select_sql) override;
  std::string Parse(std::string_view select_sql) override;
  std::string Print(std::string_view json) override;
  std::vector<std::string> Row(std::string_view select_sql) override;
  std::vector<plan::Macro> Macros() override;

 private:
  relational::Connection& connection_;
};

}  // namespace quail::session
