#include "plan/prompt_form.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "sql/slots.h"

namespace quail::plan {

namespace {

using sql::Json;

bool IsTuple(const Json& node) {
  const std::string name = sql::FunctionName(node);
  return name == "row" || name == "struct_pack";
}

std::string DoubleBraces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out.push_back(c);
    if (c == '{' || c == '}') out.push_back(c);
  }
  return out;
}

/// The text of a constant that a concatenation takes as it is: a text or an integer.
std::optional<std::string> ConstantText(const Json& node) {
  const auto constant = sql::ConstantOf(node);
  if (!constant) return std::nullopt;
  const bool digits = constant->text.find_first_not_of("-0123456789") == std::string::npos;
  if (constant->kind == sql::ConstantKind::kText ||
      (constant->kind == sql::ConstantKind::kNumber && digits)) {
    return constant->text;
  }
  return std::nullopt;
}

void RefusePrompt(const Json& part, const SourceText& source) {
  if (sql::FunctionName(part) == "prompt") {
    throw source.At(part, ErrorCode::kBind,
                    "PROMPT(..) is all of a call's prompt: write what stands beside or around it "
                    "into its text, or into one of its expressions");
  }
  if (!part.is_structured() || IsAiCall(part)) return;
  for (const Json& child : part) RefusePrompt(child, source);
}

void AppendPart(Json& part, PromptForm& form) {
  if (IsConcatenation(part) || IsTuple(part)) {
    for (const auto& argument : sql::ArgumentsOf(part)) AppendPart(*argument.value, form);
  } else if (const auto text = ConstantText(part)) {
    form.pattern += DoubleBraces(*text);
  } else {
    form.pattern += fmt::format("{{{}}}", form.arguments.size());
    form.arguments.push_back(part);
    form.arguments.back()["alias"] = "";
  }
}

/// A `{n}` of a template.
struct Slot {
  std::size_t begin = 0;
  std::size_t size = 0;
  std::size_t number = 0;
};

std::vector<Slot> NumberedSlots(std::string_view pattern) {
  std::vector<Slot> slots;
  for (const std::size_t begin : sql::FindSlots(pattern).numbered) {
    const std::size_t end = pattern.find('}', begin);
    const std::string digits(pattern.substr(begin + 1, end - begin - 1));
    const std::size_t number = digits.size() > 6 ? 1000000 : std::stoul(digits);
    slots.push_back({begin, end + 1 - begin, number});
  }
  return slots;
}

std::string Renumber(std::string_view pattern, const std::vector<Slot>& slots,
                     const std::vector<std::size_t>& kept) {
  std::string out;
  std::size_t at = 0;
  for (const Slot& slot : slots) {
    out += pattern.substr(at, slot.begin - at);
    const auto place = std::find(kept.begin(), kept.end(), slot.number);
    out += fmt::format("{{{}}}", place - kept.begin());
    at = slot.begin + slot.size;
  }
  out += pattern.substr(at);
  return out;
}

PromptForm ReadPromptCall(Json& call, const SourceText& source) {
  auto arguments = sql::ArgumentsOf(call);
  const auto constant = arguments.empty() ? std::nullopt : sql::ConstantOf(*arguments[0].value);
  if (!constant || constant->kind != sql::ConstantKind::kText) {
    throw source.At(arguments.empty() ? call : *arguments[0].value, ErrorCode::kBind,
                    "the first argument of PROMPT is a text constant with slots {0}, {1} ..");
  }
  for (const auto& argument : arguments) {
    if (argument.name.empty()) continue;
    throw source.At(*argument.value, ErrorCode::kBind,
                    fmt::format("PROMPT has no argument {}; it takes a text with slots and their "
                                "expressions in order",
                                argument.name));
  }
  const std::vector<Slot> slots = NumberedSlots(constant->text);
  std::vector<std::size_t> kept;
  for (const Slot& slot : slots) {
    if (slot.number + 1 >= arguments.size()) {
      throw source.At(*arguments[0].value, ErrorCode::kBind,
                      fmt::format("PROMPT has no expression for {}",
                                  constant->text.substr(slot.begin, slot.size)));
    }
    kept.push_back(slot.number);
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  PromptForm form;
  form.pattern = Renumber(constant->text, slots, kept);
  form.drops_expressions = kept.size() + 1 < arguments.size();
  for (const std::size_t number : kept) {
    form.arguments.push_back(*arguments[number + 1].value);
    form.arguments.back()["alias"] = "";
  }
  return form;
}

}  // namespace

bool IsConcatenation(const Json& node) {
  const std::string name = sql::FunctionName(node);
  return name == "||" || name == "concat";
}

PromptForm ReadPrompt(Json& expression, const SourceText& source) {
  if (sql::FunctionName(expression) == "prompt") return ReadPromptCall(expression, source);
  RefusePrompt(expression, source);
  PromptForm form;
  AppendPart(expression, form);
  return form;
}

}  // namespace quail::plan
