#include "relational/duckdb_error.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/text_position.h"
#include "fmt/format.h"

namespace quail::relational {
namespace {

struct Report {
  std::string type;  ///< DuckDB's exception type, "Binder" ..
  std::string message;
  std::optional<TextPosition> position;
};

ErrorCode CodeOf(std::string_view type) {
  static constexpr struct {
    std::string_view type;
    ErrorCode code;
  } kCodes[] = {
      {"Parser", ErrorCode::kSyntax},
      {"Syntax", ErrorCode::kSyntax},
      {"Binder", ErrorCode::kBind},
      {"Catalog", ErrorCode::kBind},
      {"IO", ErrorCode::kIo},
      {"HTTP", ErrorCode::kIo},
      {"Permission", ErrorCode::kIo},
      {"INTERRUPT", ErrorCode::kInterrupted},
      {"Interrupt", ErrorCode::kInterrupted},
      {"Out of Memory", ErrorCode::kOutOfMemory},
  };
  for (const auto& entry : kCodes) {
    if (entry.type == type) return entry.code;
  }
  return ErrorCode::kQuery;
}

/// "Binder Error: what" as ("Binder", "what"); without such a head the type is empty.
Report SplitType(std::string_view text) {
  constexpr std::string_view kMark = " Error: ";
  constexpr std::size_t kLongestType = 40;
  const std::size_t mark = text.find(kMark);
  if (mark > kLongestType || text.substr(0, mark).find('\n') != text.npos) {
    return {"", std::string(text), std::nullopt};
  }
  return {std::string(text.substr(0, mark)), std::string(text.substr(mark + kMark.size())),
          std::nullopt};
}

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Offset of the character `index`; the text's end where it has fewer.
std::size_t OffsetOfCharacter(std::string_view text, std::size_t index) {
  std::size_t offset = 0;
  const auto is_tail = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  for (; index > 0 && offset < text.size(); --index) {
    ++offset;
    while (offset < text.size() && is_tail(offset)) ++offset;
  }
  return offset;
}

Report ReadReport(std::string_view text, std::string_view sql) {
  Report report = SplitType(text);
  const std::string_view body = report.message;
  if (body.starts_with('{')) {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    if (json.is_object() && json.contains("exception_message")) {
      return {TextOf(json, "exception_type"), TextOf(json, "exception_message"),
              ReportedPosition(json, sql)};
    }
  }
  const std::size_t quote = report.message.find("\n\nLINE ");
  if (quote != std::string::npos) report.message.resize(quote);
  return report;
}

/// Lines of a message that quote a file's content can be as long as that: their beginning is
/// enough.
std::string WithShortLines(std::string_view message) {
  constexpr std::size_t kLongest = 500;
  constexpr std::size_t kShown = 200;
  std::string text;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size() - 1) + 1;
    const std::string_view line = message.substr(0, end);
    std::size_t shown = line.size() > kLongest ? kShown : line.size();
    while (shown < line.size() && (static_cast<unsigned char>(line[shown]) & 0xC0U) == 0x80U) {
      ++shown;
    }
    text += line.substr(0, shown);
    if (shown < line.size()) {
      text += fmt::format(".. ({} bytes){}", line.size(), line.ends_with('\n') ? "\n" : "");
    }
    message.remove_prefix(end);
  }
  return text;
}

/// What helps beside DuckDB's own advice, which names an option of a call that the user may not
/// have written.
std::string_view AdviceOn(std::string_view message) {
  if (message.find("Maximum line size of") == message.npos) return "";
  return "\nread_csv('FILE', max_line_size = N) reads longer lines; as JSONL (rows up to 16 MB) "
         "or Parquet they need no option";
}

}  // namespace

std::optional<TextPosition> ReportedPosition(const nlohmann::json& report, std::string_view sql) {
  const std::string digits = TextOf(report, "position");
  std::size_t offset = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), offset);
  if (digits.empty() || parsed.ec != std::errc()) return std::nullopt;
  // DuckDB 2.0, which counts bytes everywhere, adds the length of the place in "location".
  const bool counts_characters =
      TextOf(report, "error_subtype") == "SYNTAX_ERROR" && !report.contains("location");
  if (counts_characters) offset = OffsetOfCharacter(sql, offset);
  if (offset > sql.size()) return std::nullopt;
  return base::Locate(sql, offset);
}

Error ToError(std::string_view duckdb_message, std::string_view sql) {
  Report report = ReadReport(duckdb_message, sql);
  const ErrorCode code = CodeOf(report.type);
  if (code == ErrorCode::kInterrupted) report.message = "interrupted";
  return Error(code, WithShortLines(report.message).append(AdviceOn(report.message)),
               report.position);
}

}  // namespace quail::relational
