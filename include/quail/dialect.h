#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quail {

/// Whose SQL a script is written in: strings, names, comments, and how AI calls are spelled.
enum class Dialect : std::uint8_t { kSnowflake, kBigQuery };

/// All dialects that Quail reads.
std::span<const Dialect> Dialects();
/// "snowflake": the name in options, settings and reports.
std::string_view NameOf(Dialect dialect);
/// The dialect of that name; nullopt if there is none.
std::optional<Dialect> FindDialect(std::string_view name);
/// The text as a string literal of every dialect.
std::string TextLiteral(std::string_view text);

}  // namespace quail
