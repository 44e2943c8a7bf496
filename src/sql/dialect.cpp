#include "sql/dialect.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace quail::sql {

namespace {

using std::string_view_literals::operator""sv;

constexpr DialectRules kSnowflakeRules{
    .dialect = Dialect::kSnowflake,
    .name = "snowflake",
    .doubled_quotes = true,
    .dollar_quotes = true,
    .slash_comments = true,
    .path_access = true,
    .cortex_prefix = true,
    .simple_escapes = "\\\\''\"\"b\bf\fn\nr\rt\t"sv,
};

constexpr DialectRules kBigQueryRules{
    .dialect = Dialect::kBigQuery,
    .name = "bigquery",
    .double_quoted_strings = true,
    .backtick_identifiers = true,
    .strict_escapes = true,
    .triple_quotes = true,
    .raw_strings = true,
    .hash_comments = true,
    .words_after_dots = true,
    .struct_constructor = true,
    .printf_format = true,
    .star_except = true,
    .named_slots = true,
    .simple_escapes = "a\ab\bf\fn\nr\rt\tv\v\\\\??\"\"''``"sv,
};

constexpr DialectRules kEngineRules{
    .dialect = std::nullopt,
    .name = "duckdb",
    .plain_strings = true,
    .doubled_quotes = true,
    .simple_escapes = "\\\\''b\bf\fn\nr\rt\t"sv,
};

constexpr std::array kRules = {kSnowflakeRules, kBigQueryRules};

constexpr auto kDialects = [] {
  std::array<Dialect, kRules.size()> dialects{};
  std::ranges::transform(kRules, dialects.begin(),
                         [](const DialectRules& rules) { return *rules.dialect; });
  return dialects;
}();

}  // namespace

const DialectRules& RulesOf(Dialect dialect) {
  const auto* found = std::ranges::find(kRules, dialect, &DialectRules::dialect);
  QUAIL_CHECK(found != kRules.end());
  return *found;
}

const DialectRules& EngineRules() { return kEngineRules; }

}  // namespace quail::sql

namespace quail {

std::span<const Dialect> Dialects() { return sql::kDialects; }

std::string_view NameOf(Dialect dialect) { return sql::RulesOf(dialect).name; }

std::optional<Dialect> FindDialect(std::string_view name) {
  const auto* found = std::ranges::find(sql::kRules, name, &sql::DialectRules::name);
  if (found == sql::kRules.end()) return std::nullopt;
  return found->dialect;
}

std::string TextLiteral(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      literal += c == '\n' ? "\\n" : "\\r";
      continue;
    }
    if (c == '\'' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "'";
}

}  // namespace quail
