#pragma once

#include "query_generator.h"
#include "query_parts.h"

namespace quail::test {

/// Random statements, each about one concept.
RandomQuery GroupedQuery(QueryParts& parts);
RandomQuery WindowQuery(QueryParts& parts);
RandomQuery StarQuery(QueryParts& parts);
RandomQuery ChangedTable(QueryParts& parts);
RandomQuery PreparedQuery(QueryParts& parts);
RandomQuery MacroQuery(QueryParts& parts);
RandomQuery TwiceViewed(QueryParts& parts);

}  // namespace quail::test
