#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "quail/error.h"
#include "sql/statement.h"

namespace {

void LeadBack(const std::string& script, const std::string& sql, const quail::sql::SourceMap& map) {
  for (std::size_t i = 0; i <= sql.size(); ++i) {
    if (map.ToInput(i) > script.size()) std::abort();
  }
}

void Read(const std::string& script, quail::Dialect dialect) {
  try {
    for (const auto& part : quail::sql::SplitScript(script, dialect)) {
      const auto statement = quail::sql::ReadStatement(script, part, dialect);
      const bool writes = !statement.then.empty();
      if (writes && (statement.kept.empty() || !statement.has_ai)) std::abort();
      LeadBack(script, statement.query, statement.map);
      const bool changes = !statement.check.empty();
      if (changes) LeadBack(script, statement.check, statement.check_map);
      if (!changes && !statement.before.empty()) {
        LeadBack(script, statement.before, statement.before_map);
      }
      if (!statement.after.empty()) LeadBack(script, statement.after, statement.after_map);
    }
  } catch (const quail::Error& error) {
    if (!error.position() || error.position()->offset > script.size()) std::abort();
  }
}

}  // namespace

/// Any bytes in the places of an UPDATE, DELETE or MERGE with an AI call: an error with a place
/// inside of it, or a query, what is done with its rows, and positions that lead back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto dialect : quail::Dialects()) {
    Read("UPDATE " + text + " WHERE AI_FILTER('good? ' || x)", dialect);
    Read("UPDATE t SET x = AI_FILTER('good? ' || y) " + text, dialect);
    Read("DELETE FROM " + text + " WHERE AI_FILTER('good? ' || x)", dialect);
    Read("WITH " + text + " UPDATE t SET x = 1 WHERE AI_FILTER(y)", dialect);
    Read("WITH c AS (SELECT AI_FILTER(x)) DELETE FROM t WHERE x IN (FROM c) RETURNING " + text,
         dialect);
    Read("MERGE INTO t USING (SELECT AI_FILTER(x)) " + text, dialect);
    Read("WITH c AS (SELECT AI_FILTER(x)) MERGE INTO t USING c " + text, dialect);
    Read("DELETE FROM t USING u WHERE AI_FILTER(" + text + ")", dialect);
  }
  return 0;
}
