// Compiled where a fetched duckdb.h is at hand (no code comes of it): fails when duckdb_api.h has
// drifted from it.

#define DUCKDB_API_ALLOW_DEPRECATED 1
#include <duckdb.h>

#include <cstddef>
#include <type_traits>

#define QUAIL_DUCKDB_TYPES_FROM_HEADER
#include "relational/duckdb_api.h"

namespace quail::relational {

#define QUAIL_CHECK_SIGNATURE(name, result, parameters)                                \
  static_assert(std::is_same_v<decltype(&::duckdb_##name), decltype(DuckDbApi::name)>, \
                "duckdb_" #name " is declared differently in duckdb.h");
QUAIL_DUCKDB_FUNCTIONS(QUAIL_CHECK_SIGNATURE)
#undef QUAIL_CHECK_SIGNATURE

static_assert(sizeof(duckdb_string_t) == sizeof(DuckDbString));
static_assert(offsetof(duckdb_string_t, value.pointer.ptr) == offsetof(DuckDbString, pointer));
static_assert(offsetof(duckdb_string_t, value.inlined.inlined) == offsetof(DuckDbString, prefix));
static_assert(std::is_trivially_copyable_v<duckdb_result> && sizeof(duckdb_type) == 4);

}  // namespace quail::relational
