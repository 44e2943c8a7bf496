#include "sql/set_statement.h"

#include <string>
#include <string_view>

#include "base/text_position.h"
#include "fmt/format.h"
#include "sql/lexer.h"

namespace quail::sql {

namespace {

using View = TokenView;

constexpr std::string_view kFailOnError = "ai_sql_error_handling_use_fail_on_error";

/// The place of the name in SET [SESSION | GLOBAL], ALTER SESSION SET, RESET, ALTER SESSION UNSET.
std::optional<std::size_t> SettingName(const View& view) {
  if (view.WordAt(0, "ALTER")) {
    const bool session =
        view.WordAt(1, "SESSION") && (view.WordAt(2, "SET") || view.WordAt(2, "UNSET"));
    return session && view.tokens.size() > 3 ? std::optional<std::size_t>(3) : std::nullopt;
  }
  if (!view.WordAt(0, "SET") && !view.WordAt(0, "RESET")) return std::nullopt;
  const bool scope = view.WordAt(1, "SESSION") || view.WordAt(1, "GLOBAL");
  const std::size_t name = scope ? 2 : 1;
  return name < view.tokens.size() ? std::optional(name) : std::nullopt;
}

}  // namespace

std::optional<Statement> ReadSetting(const View& view) {
  const auto place = SettingName(view);
  if (!place) return std::nullopt;
  const std::size_t name = *place;
  const std::string setting = LowerCase(Spelling(view.text, view.tokens[name]));
  const auto fail = [&](ErrorCode code, const std::string& message) -> Error {
    return {code, message, base::Locate(view.text, view.tokens[name].offset)};
  };
  if (!setting.starts_with("quail_") && setting != kFailOnError) {
    if (name == 3) throw fail(ErrorCode::kBind, fmt::format("unknown session setting {}", setting));
    return std::nullopt;
  }
  Statement statement;
  statement.kind = StatementKind::kSet;
  statement.setting = setting;
  statement.setting_offset = statement.value_offset = view.tokens[name].offset;
  const bool assigned = view.SymbolAt(name + 1, "=") || view.WordAt(name + 1, "TO");
  std::size_t value = name + 2;
  const std::size_t end = view.tokens.size();
  const bool is_reset = view.WordAt(0, "RESET") || view.WordAt(2, "UNSET");
  statement.resets = is_reset || (assigned && value + 1 == end && view.WordAt(value, "DEFAULT"));
  if (is_reset && name + 1 != end) {
    throw fail(ErrorCode::kSyntax, fmt::format("write RESET {}", setting));
  }
  if (statement.resets) return statement;
  const bool negative = view.SymbolAt(value, "-");
  if (value < end) statement.value_offset = view.tokens[value].offset;
  if (negative) ++value;
  if (!assigned || value + 1 != end) {
    throw fail(ErrorCode::kSyntax, fmt::format("write SET {} = value", setting));
  }
  const Token& token = view.tokens[value];
  const bool decoded = token.kind == TokenKind::kString || token.kind == TokenKind::kIdentifier;
  statement.value =
      fmt::format("{}{}", negative ? "-" : "", decoded ? token.value : Spelling(view.text, token));
  return statement;
}

}  // namespace quail::sql
