#include "session/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "quail/error.h"

namespace quail::session {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

[[noreturn]] void Refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw Error(ErrorCode::kUsage, fmt::format("{} cannot be '{}': it is {}", name, value, allowed));
}

bool ReadBoolean(std::string_view name, std::string_view value) {
  const std::string lower = Lower(value);
  if (lower == "true" || lower == "on" || lower == "1") return true;
  if (lower == "false" || lower == "off" || lower == "0") return false;
  Refuse(name, value, "TRUE or FALSE");
}

std::uint64_t ReadCount(std::string_view name, std::string_view value) {
  std::uint64_t count = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, fault] = std::from_chars(value.data(), end, count);
  if (fault != std::errc() || stopped != end) Refuse(name, value, "a whole number");
  return count;
}

double ReadSeconds(std::string_view name, std::string_view value) {
  double seconds = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, fault] = std::from_chars(value.data(), end, seconds);
  const bool number = fault == std::errc() && stopped == end && std::isfinite(seconds);
  if (!number || seconds < 0) Refuse(name, value, "a number of seconds");
  return seconds;
}

}  // namespace

void Settings::Set(std::string_view name, std::string_view value) {
  const std::string lower = Lower(value);
  if (name == "quail_on_error") {
    if (lower != "null" && lower != "fail") Refuse(name, value, "'null' or 'fail'");
    fail_on_error = lower == "fail";
  } else if (name == "ai_sql_error_handling_use_fail_on_error") {
    fail_on_error = ReadBoolean(name, value);
  } else if (name == "quail_anchor") {
    if (lower == "data") {
      anchor = optimizer::AnchorRule::kData;
    } else if (lower == "as_written") {
      anchor = optimizer::AnchorRule::kAsWritten;
    } else if (lower == "plan") {
      throw Error(ErrorCode::kUnsupported, "quail_anchor = 'plan' is not supported yet");
    } else {
      Refuse(name, value, "'data', 'as_written' or 'plan'");
    }
  } else if (name == "quail_max_pairs") {
    max_pairs = ReadCount(name, value);
  } else if (name == "quail_max_tokens") {
    max_tokens.reset();
    if (lower != "none") max_tokens = ReadCount(name, value);
  } else if (name == "quail_max_seconds") {
    max_seconds.reset();
    if (lower != "none") max_seconds = ReadSeconds(name, value);
  } else {
    throw Error(ErrorCode::kUsage,
                fmt::format("unknown setting {} (known: quail_on_error, quail_anchor, "
                            "quail_max_pairs, quail_max_tokens, quail_max_seconds)",
                            name));
  }
}

void Settings::Reset(std::string_view name, const Settings& before) {
  if (name == "ai_sql_error_handling_use_fail_on_error") name = "quail_on_error";
  for (const auto& [known, value] : before.List()) {
    if (known == name) return Set(name, value);
  }
  Set(name, "");  // says that it is unknown
}

std::vector<std::pair<std::string, std::string>> Settings::List() const {
  const auto budget = [](const auto& limit) { return limit ? fmt::format("{}", *limit) : "none"; };
  const bool data = anchor == optimizer::AnchorRule::kData;
  return {{"quail_on_error", fail_on_error ? "fail" : "null"},
          {"quail_anchor", data ? "data" : "as_written"},
          {"quail_max_pairs", fmt::format("{}", max_pairs)},
          {"quail_max_tokens", budget(max_tokens)},
          {"quail_max_seconds", budget(max_seconds)}};
}

}  // namespace quail::session
