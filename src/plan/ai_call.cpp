#include "plan/ai_call.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::ConstantKind;
using sql::Json;

constexpr std::array<std::string_view, 6> kMeaninglessHere = {
    "connection_id", "endpoint", "request_type", "model_params", "embeddings", "optimization_mode"};

std::string_view OptionNames(CallKind kind) {
  return kind == CallKind::kFilter ? "selectivity, anchor, threshold, on_long, max_error_ratio"
                                   : "selectivity, anchor, on_long, max_error_ratio";
}

/// Reads the arguments of one call.
class CallReader {
 public:
  CallReader(Json& node, const SourceText& source) : node_(node), source_(source) {
    call_.function = sql::FindAiFunction(sql::FunctionName(node));
    switch (call_.function->readout) {
      case sql::Readout::kVerdict:
      case sql::Readout::kOther:
        call_.kind = CallKind::kFilter;
        break;
      case sql::Readout::kProbability:
        call_.kind = CallKind::kProbability;
        break;
      case sql::Readout::kTokenCount:
        call_.kind = CallKind::kCountTokens;
        break;
    }
  }

  AiCall Read() {
    const auto arguments = sql::ArgumentsOf(node_);
    std::vector<Json*> positional;
    for (const auto& argument : arguments) {
      if (argument.name.empty()) {
        positional.push_back(argument.value);
      } else {
        ReadNamed(argument.name, *argument.value);
      }
    }
    if (call_.kind == CallKind::kCountTokens) {
      ReadCountedText(positional);
    } else {
      ReadPositional(positional);
    }
    return std::move(call_);
  }

 private:
  std::string_view name() const { return call_.function->name; }

  [[noreturn]] void Fail(const Json& at, const std::string& message,
                         ErrorCode code = ErrorCode::kBind) const {
    throw source_.At(at, code, message);
  }

  void ReadPositional(std::vector<Json*>& positional) {
    if (prompt_ == nullptr) {
      if (positional.empty()) Fail(node_, fmt::format("{} needs a prompt", name()));
      prompt_ = positional.front();
      positional.erase(positional.begin());
    }
    for (Json* argument : positional) {
      const auto constant = sql::ConstantOf(*argument);
      if (constant && constant->kind == ConstantKind::kBoolean) {
        SetErrorDetails(*argument);
      } else if (sql::FunctionName(*argument) == "struct_pack") {
        for (const auto& option : sql::ArgumentsOf(*argument)) {
          ReadOption(option.name, *option.value);
        }
      } else {
        Fail(*argument, fmt::format("{} takes a prompt, then TRUE or FALSE for "
                                    "return_error_details, then an options object; files are not "
                                    "supported yet",
                                    name()));
      }
    }
    call_.prompt = ReadPrompt(*prompt_, source_);
  }

  /// AI_COUNT_TOKENS([function_name,] text).
  void ReadCountedText(const std::vector<Json*>& positional) {
    if (positional.empty()) Fail(node_, fmt::format("{} needs a text", name()));
    if (positional.size() > 2) {
      Fail(*positional[2], fmt::format("{} with a model or options is not supported yet", name()),
           ErrorCode::kUnsupported);
    }
    call_.prompt.pattern = "{0}";
    call_.prompt.arguments.push_back(*positional.back());
    call_.prompt.arguments.back()["alias"] = "";
  }

  void ReadNamed(std::string_view argument, Json& value) {
    RefuseSecond(sql::LowerCase(argument), value);
    const bool prompt = call_.kind != CallKind::kCountTokens &&
                        (sql::SameWord(argument, "prompt") || sql::SameWord(argument, "input"));
    if (prompt) {
      prompt_ = &value;
    } else if (sql::SameWord(argument, "return_error_details")) {
      SetErrorDetails(value);
    } else if (sql::SameWord(argument, "max_error_ratio")) {
      call_.options.max_error_ratio = Fraction(argument, value);
    } else if (sql::SameWord(argument, "examples")) {
      Fail(value, fmt::format("argument examples of {} is known, but not supported yet", name()),
           ErrorCode::kUnsupported);
    } else if (std::any_of(
                   kMeaninglessHere.begin(), kMeaninglessHere.end(),
                   [&](std::string_view known) { return sql::SameWord(argument, known); })) {
      call_.notices.push_back(
          fmt::format("argument {} has no meaning here and is ignored", sql::LowerCase(argument)));
    } else {
      Fail(value, fmt::format("{} has no argument {}; it takes: {}", name(), argument,
                              call_.function->arguments));
    }
  }

  void ReadOption(std::string_view option, const Json& value) {
    const std::string key = sql::LowerCase(option);
    RefuseSecond(key, value);
    if (key == "selectivity") {
      call_.options.selectivity = Fraction(option, value);
    } else if (key == "threshold" && call_.kind == CallKind::kFilter) {
      call_.options.threshold = Fraction(option, value);
    } else if (key == "max_error_ratio") {
      call_.options.max_error_ratio = Fraction(option, value);
    } else if (key == "anchor") {
      call_.options.anchor = Text(option, value);
    } else if (key == "on_long") {
      call_.options.on_long = ReadOnLong(value);
    } else {
      Fail(value, fmt::format("unknown option {} of {}; options: {}", option, name(),
                              OptionNames(call_.kind)));
    }
  }

  void RefuseSecond(const std::string& key, const Json& value) {
    if (!given_.insert(key).second) Fail(value, fmt::format("{} is given twice", key));
  }

  OnLong ReadOnLong(const Json& value) const {
    const std::string text = Text("on_long", value);
    if (text == "error") return OnLong::kError;
    if (text == "head") return OnLong::kHead;
    if (text == "tail") return OnLong::kTail;
    if (text == "middle") return OnLong::kMiddle;
    Fail(value,
         fmt::format("option on_long is 'error', 'head', 'tail' or 'middle', not '{}'", text));
  }

  void SetErrorDetails(const Json& value) {
    const auto constant = sql::ConstantOf(value);
    if (!constant || constant->kind != ConstantKind::kBoolean) {
      Fail(value, "return_error_details is TRUE or FALSE");
    }
    if (constant->boolean && call_.kind != CallKind::kFilter) {
      Fail(value, fmt::format("return_error_details of {} is not supported yet", name()),
           ErrorCode::kUnsupported);
    }
    call_.options.return_error_details = constant->boolean;
  }

  double Fraction(std::string_view key, const Json& value) const {
    const auto constant = sql::ConstantOf(value);
    const bool good = constant && constant->kind == ConstantKind::kNumber &&
                      constant->number >= 0 && constant->number <= 1;
    if (!good) Fail(value, fmt::format("{} is a number from 0 to 1", key));
    return constant->number;
  }

  std::string Text(std::string_view key, const Json& value) const {
    const auto constant = sql::ConstantOf(value);
    if (!constant || constant->kind != ConstantKind::kText) {
      Fail(value, fmt::format("{} is a text constant", key));
    }
    return constant->text;
  }

  Json& node_;
  const SourceText& source_;
  Json* prompt_ = nullptr;
  std::set<std::string> given_;  ///< options and named arguments, lower case
  AiCall call_;
};

}  // namespace

bool IsAiCall(const Json& node) {
  const std::string name = sql::FunctionName(node);
  return name.starts_with("ai_") && sql::FindAiFunction(name) != nullptr;
}

bool ContainsAiCall(const Json& node) { return sql::AnyNode(node, IsAiCall); }

bool AsksForErrorDetails(Json call) {
  const auto is_true = [](const Json& value) {
    const auto constant = sql::ConstantOf(value);
    return constant && constant->kind == ConstantKind::kBoolean && constant->boolean;
  };
  const auto arguments = sql::ArgumentsOf(call);
  return std::any_of(arguments.begin(), arguments.end(), [&](const auto& argument) {
    const bool place =
        argument.name.empty() || sql::SameWord(argument.name, "return_error_details");
    return place && is_true(*argument.value);
  });
}

AiCall ReadAiCall(Json& node, const SourceText& source) { return CallReader(node, source).Read(); }

void CheckAiCalls(Json unread, const SourceText& source) {
  const auto check = [&](auto& self, Json& node) -> void {
    if (IsAiCall(node)) ReadAiCall(node, source);
    sql::ForEachChild(node, [&](Json& child) { self(self, child); });
  };
  check(check, unread);
}

}  // namespace quail::plan
