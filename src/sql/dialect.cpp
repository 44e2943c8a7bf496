#include "sql/dialect.h"

namespace quail::sql {

namespace {

using std::string_view_literals::operator""sv;

constexpr DialectRules kSnowflakeRules{
    .name = "snowflake",
    .doubled_quotes = true,
    .dollar_quotes = true,
    .slash_comments = true,
    .path_access = true,
    .cortex_prefix = true,
    .simple_escapes = "\\\\''\"\"b\bf\fn\nr\rt\t"sv,
};

constexpr DialectRules kBigQueryRules{
    .name = "bigquery",
    .double_quoted_strings = true,
    .backtick_identifiers = true,
    .strict_escapes = true,
    .triple_quotes = true,
    .raw_strings = true,
    .hash_comments = true,
    .words_after_dots = true,
    .struct_constructor = true,
    .star_except = true,
    .named_slots = true,
    .simple_escapes = "a\ab\bf\fn\nr\rt\tv\v\\\\??\"\"''``"sv,
};

}  // namespace

const DialectRules& RulesOf(Dialect dialect) {
  switch (dialect) {
    case Dialect::kSnowflake:
      return kSnowflakeRules;
    case Dialect::kBigQuery:
      return kBigQueryRules;
  }
  return kSnowflakeRules;
}

}  // namespace quail::sql
