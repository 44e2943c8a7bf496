#include "session/connection_catalog.h"

#include "relational/sql_json.h"
#include "session/describe.h"

namespace quail::session {

columnar::Schema ConnectionCatalog::Columns(std::string_view select_sql) {
  return DescribeQuery(connection_, select_sql);
}

std::string ConnectionCatalog::Parse(std::string_view select_sql) {
  return relational::SerializeSql(connection_, select_sql);
}

std::string ConnectionCatalog::Print(std::string_view json) {
  return relational::DeserializeSql(connection_, json);
}

}  // namespace quail::session
