#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/function_evaluator.h"

namespace quail::exec {

/// A truth table instead of a model (docs/sql.md, "Testing without a model"): JSON lines, the first
/// rule that matches decides, no match is the error "oracle has no rule".
class Oracle {
 public:
  /// `name` stands in messages. Throws Error{kCorrupt} naming the line.
  static Oracle Parse(std::string_view json_lines, std::string_view name);
  /// Throws Error{kIo} too.
  static Oracle Load(const std::string& path);

  PlantedAnswer Decide(std::string_view prompt, std::span<const std::string_view> arguments) const;

 private:
  struct Rule {
    std::optional<std::string> prompt;
    std::optional<std::vector<std::string>> arguments;
    std::vector<std::string> contains;
    PlantedAnswer answer;
  };
  friend struct OracleRuleReader;

  std::vector<Rule> rules_;
};

}  // namespace quail::exec
