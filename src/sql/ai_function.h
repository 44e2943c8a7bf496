#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quail/dialect.h"

namespace quail::sql {

/// What the first argument of an AI function is.
enum class PromptShape : std::uint8_t {
  kPrompt,  ///< PROMPT(..), a concatenation, a tuple, or any text expression (sql.md section 1)
  kText,    ///< a text, judged as it is
  kOther,   ///< the function is not implemented
};

/// What is read from the model.
enum class Readout : std::uint8_t {
  kVerdict,
  kProbability,
  kTokenCount,
  kOther,  ///< the function is not implemented
};

/// One row of the only list of AI functions: the parser, the errors and the documentation all read
/// it.
struct AiFunction {
  std::string_view name;       ///< canonical, with which reports and result columns name it
  std::string_view snowflake;  ///< spelling there; empty: unknown to that vendor
  std::string_view bigquery;   ///< a dialect with names of its own has a field more
  std::string_view arguments;  ///< as the documentation shows them
  PromptShape prompt = PromptShape::kOther;
  Readout readout = Readout::kOther;
  std::string_view result_type;  ///< as DuckDB names it
  std::string_view summary;
  std::string_view example = {};  ///< empty: not implemented

  bool implemented() const { return readout != Readout::kOther; }
  /// As the dialect spells it; empty: unknown to that vendor.
  std::string_view spelling(Dialect dialect) const;
};

/// All functions, sorted by canonical name.
std::span<const AiFunction> AiFunctions();

/// By any spelling in any case: `AI_IF`, `AI.IF`; nullptr if unknown. Both dialects accept both
/// vendors' names.
const AiFunction* FindAiFunction(std::string_view name);

/// Older functions that stand behind SNOWFLAKE.CORTEX. alone (COMPLETE, SENTIMENT ..).
bool IsCortexFunction(std::string_view name);

/// The name under which a call reaches the relational engine's parser: `ai_if` for AI.IF.
std::string ParsedName(std::string_view name);

/// "AI_FILTER (AI.IF), AI_PROB (AI.PROB), .."
std::string SupportedAiFunctions();

}  // namespace quail::sql
