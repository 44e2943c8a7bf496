#include "exec/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/mapped_file.h"
#include "quail/error.h"

namespace quail::exec {

using Json = nlohmann::json;

/// Reads one line of an oracle file.
struct OracleRuleReader {
  std::string_view name;
  std::size_t line = 0;

  [[noreturn]] void Fail(std::string_view what) const {
    throw Error(ErrorCode::kCorrupt, fmt::format("oracle {}, line {}: {}", name, line, what));
  }

  std::vector<std::string> Texts(const Json& value, std::string_view key) const {
    if (!value.is_array()) Fail(fmt::format("\"{}\" must be a list of texts", key));
    std::vector<std::string> texts;
    for (const Json& text : value) {
      if (!text.is_string()) Fail(fmt::format("\"{}\" must be a list of texts", key));
      texts.push_back(text.get<std::string>());
    }
    return texts;
  }

  PlantedAnswer ReadVerdict(const Json& value) const {
    if (value.is_null()) return {Verdict::kNull, 0, ""};
    if (value.is_boolean()) {
      return value.get<bool>() ? PlantedAnswer{Verdict::kTrue, 1, ""}
                               : PlantedAnswer{Verdict::kFalse, -1, ""};
    }
    constexpr std::string_view kError = "error:";
    if (value.is_string()) {
      std::string text = value.get<std::string>();
      if (text.starts_with(kError)) {
        text.erase(0, kError.size());
        text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
        if (text.empty()) Fail("an error verdict needs a reason: \"error: REASON\"");
        return {Verdict::kError, 0, text};
      }
    }
    Fail("\"verdict\" must be true, false, null or \"error: REASON\"");
  }

  /// Margin alone implies the verdict; beside one it must agree.
  void AddMargin(const Json& value, bool has_verdict, PlantedAnswer& answer) const {
    if (!value.is_number()) Fail("\"margin\" must be a number");
    const auto margin = value.get<float>();
    if (!std::isfinite(margin)) Fail("\"margin\" must be finite");
    const Verdict implied = margin > 0 ? Verdict::kTrue : Verdict::kFalse;
    if (has_verdict && answer.verdict != implied) {
      Fail("\"margin\" contradicts \"verdict\": TRUE is a margin > 0");
    }
    answer = {implied, margin, ""};
  }

  Oracle::Rule Read(std::string_view text) const {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) Fail("not JSON");
    if (!json.is_object()) Fail("not a JSON object");
    Oracle::Rule rule;
    for (const auto& [key, value] : json.items()) {
      if (key == "template") {
        if (!value.is_string()) Fail("\"template\" must be a text");
        rule.prompt = value.get<std::string>();
      } else if (key == "args") {
        rule.arguments = Texts(value, key);
      } else if (key == "contains") {
        rule.contains = Texts(value, key);
      } else if (key == "label" || key == "scores") {
        Fail(fmt::format("\"{}\" is for AI_CLASSIFY, which is not supported yet", key));
      } else if (key != "verdict" && key != "margin") {
        Fail(fmt::format("unknown key \"{}\" (known: template, args, contains, verdict, margin)",
                         key));
      }
    }
    const bool has_verdict = json.contains("verdict");
    if (!has_verdict && !json.contains("margin")) Fail("a rule needs \"verdict\" or \"margin\"");
    if (has_verdict) rule.answer = ReadVerdict(json["verdict"]);
    if (json.contains("margin")) AddMargin(json["margin"], has_verdict, rule.answer);
    return rule;
  }
};

Oracle Oracle::Parse(std::string_view json_lines, std::string_view name) {
  Oracle oracle;
  OracleRuleReader reader{name};
  while (!json_lines.empty()) {
    const std::size_t end = std::min(json_lines.find('\n'), json_lines.size());
    const std::string_view line = json_lines.substr(0, end);
    json_lines.remove_prefix(std::min(end + 1, json_lines.size()));
    ++reader.line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    oracle.rules_.push_back(reader.Read(line));
  }
  return oracle;
}

Oracle Oracle::Load(const std::string& path) {
  const auto file = base::MappedFile::Open(path);
  const auto bytes = file.bytes();
  return Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

PlantedAnswer Oracle::Decide(std::string_view prompt,
                             std::span<const std::string_view> arguments) const {
  for (const Rule& rule : rules_) {
    if (rule.prompt && *rule.prompt != prompt) continue;
    if (rule.arguments && !std::ranges::equal(*rule.arguments, arguments)) continue;
    const bool all = std::ranges::all_of(rule.contains, [&](const std::string& text) {
      return std::ranges::any_of(arguments, [&](std::string_view argument) {
        return argument.find(text) != std::string_view::npos;
      });
    });
    if (all && (rule.contains.empty() || !arguments.empty())) return rule.answer;
  }
  return {Verdict::kError, 0, "oracle has no rule"};
}

}  // namespace quail::exec
