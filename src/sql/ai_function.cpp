#include "sql/ai_function.h"

#include <algorithm>
#include <array>

#include "sql/lexer.h"

namespace quail::sql {

namespace {

constexpr std::array kFunctions = {
    AiFunction{.name = "AI_AGG",
               .snowflake = "AI_AGG",
               .bigquery = "AI.AGG",
               .arguments = "text, instruction",
               .result_type = "VARCHAR",
               .summary = "Answers an instruction over all texts of a group."},
    AiFunction{.name = "AI_CLASSIFY",
               .snowflake = "AI_CLASSIFY",
               .bigquery = "AI.CLASSIFY",
               .arguments = "input, categories [, options]",
               .result_type = "STRUCT(labels VARCHAR[])",
               .summary = "Picks the categories that fit a text."},
    AiFunction{.name = "AI_COMPLETE",
               .snowflake = "AI_COMPLETE",
               .bigquery = "",
               .arguments = "model, prompt [, model_parameters, ..]",
               .result_type = "VARCHAR",
               .summary = "Writes a continuation of a prompt."},
    AiFunction{.name = "AI_COUNT_TOKENS",
               .snowflake = "AI_COUNT_TOKENS",
               .bigquery = "AI.COUNT_TOKENS",
               .arguments = "[function_name,] text",
               .prompt = PromptShape::kText,
               .readout = Readout::kTokenCount,
               .result_type = "INTEGER",
               .summary = "Tokens of a text in the model's vocabulary; the model is not run.",
               .example = "SELECT AI_COUNT_TOKENS(body) FROM reviews"},
    AiFunction{.name = "AI_DETECT_ANOMALIES",
               .snowflake = "",
               .bigquery = "AI.DETECT_ANOMALIES",
               .arguments = "history, target, options",
               .result_type = "TABLE",
               .summary = "Finds unusual values of a time series."},
    AiFunction{.name = "AI_EMBED",
               .snowflake = "AI_EMBED",
               .bigquery = "AI.EMBED",
               .arguments = "model, input",
               .result_type = "FLOAT[]",
               .summary = "Embeds a text."},
    AiFunction{.name = "AI_EVALUATE",
               .snowflake = "",
               .bigquery = "AI.EVALUATE",
               .arguments = "history, actual, options",
               .result_type = "TABLE",
               .summary = "Measures a forecast against actual values."},
    AiFunction{.name = "AI_EXTRACT",
               .snowflake = "AI_EXTRACT",
               .bigquery = "",
               .arguments = "text, response_format [, ..]",
               .result_type = "STRUCT",
               .summary = "Reads named facts out of a text."},
    AiFunction{.name = "AI_FILTER",
               .snowflake = "AI_FILTER",
               .bigquery = "AI.IF",
               .arguments = "prompt [, return_error_details] [, options]",
               .prompt = PromptShape::kPrompt,
               .readout = Readout::kVerdict,
               .result_type = "BOOLEAN",
               .summary = "Whether the answer to a yes-or-no question is TRUE.",
               .example = "SELECT * FROM reviews WHERE "
                          "AI_FILTER(PROMPT('Is the customer happy? {0}', body))"},
    AiFunction{.name = "AI_FORECAST",
               .snowflake = "",
               .bigquery = "AI.FORECAST",
               .arguments = "table, options",
               .result_type = "TABLE",
               .summary = "Forecasts a time series."},
    AiFunction{.name = "AI_GENERATE",
               .snowflake = "",
               .bigquery = "AI.GENERATE",
               .arguments = "prompt [, output_schema, ..]",
               .result_type = "STRUCT",
               .summary = "Writes an answer to a prompt."},
    AiFunction{.name = "AI_GENERATE_BOOL",
               .snowflake = "",
               .bigquery = "AI.GENERATE_BOOL",
               .arguments = "prompt [, ..]",
               .result_type = "STRUCT",
               .summary = "Writes a truth value."},
    AiFunction{.name = "AI_GENERATE_DOUBLE",
               .snowflake = "",
               .bigquery = "AI.GENERATE_DOUBLE",
               .arguments = "prompt [, ..]",
               .result_type = "STRUCT",
               .summary = "Writes a number."},
    AiFunction{.name = "AI_GENERATE_EMBEDDING",
               .snowflake = "",
               .bigquery = "AI.GENERATE_EMBEDDING",
               .arguments = "model, table",
               .result_type = "TABLE",
               .summary = "Embeds the texts of a table."},
    AiFunction{.name = "AI_GENERATE_INT",
               .snowflake = "",
               .bigquery = "AI.GENERATE_INT",
               .arguments = "prompt [, ..]",
               .result_type = "STRUCT",
               .summary = "Writes an integer."},
    AiFunction{.name = "AI_GENERATE_TABLE",
               .snowflake = "",
               .bigquery = "AI.GENERATE_TABLE",
               .arguments = "model, table, options",
               .result_type = "TABLE",
               .summary = "Writes rows of a given schema."},
    AiFunction{.name = "AI_GENERATE_TEXT",
               .snowflake = "",
               .bigquery = "AI.GENERATE_TEXT",
               .arguments = "model, table, options",
               .result_type = "TABLE",
               .summary = "Writes answers to the prompts of a table."},
    AiFunction{.name = "AI_PARSE_DOCUMENT",
               .snowflake = "AI_PARSE_DOCUMENT",
               .bigquery = "",
               .arguments = "file [, options]",
               .result_type = "STRUCT",
               .summary = "Reads the text of a document file."},
    AiFunction{.name = "AI_PROB",
               .snowflake = "AI_PROB",
               .bigquery = "AI.PROB",
               .arguments = "prompt [, options]",
               .prompt = PromptShape::kPrompt,
               .readout = Readout::kProbability,
               .result_type = "DOUBLE",
               .summary = "Probability that the answer is TRUE; read in AI_FILTER's forward pass.",
               .example = "SELECT id, AI_PROB(PROMPT('Is it urgent? {0}', body)) FROM tickets"},
    AiFunction{.name = "AI_REDACT",
               .snowflake = "AI_REDACT",
               .bigquery = "",
               .arguments = "text [, categories]",
               .result_type = "VARCHAR",
               .summary = "Blanks personal data in a text."},
    AiFunction{
        .name = "AI_SCORE",
        .snowflake = "",
        .bigquery = "AI.SCORE",
        .arguments = "prompt [, ..]",
        .result_type = "DOUBLE",
        .summary =
            "Rates a text on the scale that the prompt states; AI.PROB gives a probability."},
    AiFunction{.name = "AI_SEARCH",
               .snowflake = "",
               .bigquery = "AI.SEARCH",
               .arguments = "table, column, query",
               .result_type = "TABLE",
               .summary = "Finds the rows nearest in meaning to a text."},
    AiFunction{.name = "AI_SENTIMENT",
               .snowflake = "AI_SENTIMENT",
               .bigquery = "",
               .arguments = "text [, categories]",
               .result_type = "STRUCT",
               .summary = "Sentiment of a text, overall and by category."},
    AiFunction{.name = "AI_SIMILARITY",
               .snowflake = "AI_SIMILARITY",
               .bigquery = "AI.SIMILARITY",
               .arguments = "input1, input2 [, options]",
               .result_type = "DOUBLE",
               .summary = "Cosine of two texts' embeddings."},
    AiFunction{.name = "AI_SUMMARIZE_AGG",
               .snowflake = "AI_SUMMARIZE_AGG",
               .bigquery = "",
               .arguments = "text",
               .result_type = "VARCHAR",
               .summary = "Summarises all texts of a group."},
    AiFunction{.name = "AI_TRANSCRIBE",
               .snowflake = "AI_TRANSCRIBE",
               .bigquery = "",
               .arguments = "file [, options]",
               .result_type = "STRUCT",
               .summary = "Writes down the speech of an audio file."},
    AiFunction{.name = "AI_TRANSLATE",
               .snowflake = "AI_TRANSLATE",
               .bigquery = "",
               .arguments = "text, from, to",
               .result_type = "VARCHAR",
               .summary = "Translates a text."},
};

constexpr std::array<std::string_view, 15> kCortexFunctions = {
    "CLASSIFY_TEXT",  "COMPLETE",         "COUNT_TOKENS",   "EMBED_TEXT_1024",
    "EMBED_TEXT_768", "ENTITY_SENTIMENT", "EXTRACT_ANSWER", "FINETUNE",
    "PARSE_DOCUMENT", "SEARCH_PREVIEW",   "SENTIMENT",      "SPLIT_TEXT_RECURSIVE_CHARACTER",
    "SUMMARIZE",      "TRANSLATE",        "TRY_COMPLETE"};

/// AI.IF and AI_IF are one spelling.
std::string Normalized(std::string_view name) {
  std::string upper = UpperCase(name);
  if (upper.starts_with("AI.")) upper[2] = '_';
  return upper;
}

}  // namespace

std::string_view AiFunction::spelling(Dialect dialect) const {
  switch (dialect) {
    case Dialect::kSnowflake:
      return snowflake;
    case Dialect::kBigQuery:
      return bigquery;
  }
  return {};
}

std::span<const AiFunction> AiFunctions() { return kFunctions; }

const AiFunction* FindAiFunction(std::string_view name) {
  const std::string wanted = Normalized(name);
  const auto matches = [&wanted](const AiFunction& function) {
    return function.name == wanted || std::ranges::any_of(Dialects(), [&](Dialect dialect) {
             const std::string_view spelling = function.spelling(dialect);
             return !spelling.empty() && Normalized(spelling) == wanted;
           });
  };
  const auto* found = std::find_if(kFunctions.begin(), kFunctions.end(), matches);
  return found == kFunctions.end() ? nullptr : found;
}

bool IsCortexFunction(std::string_view name) {
  const std::string upper = UpperCase(name);
  return std::find(kCortexFunctions.begin(), kCortexFunctions.end(), upper) !=
         kCortexFunctions.end();
}

std::string ParsedName(std::string_view name) { return LowerCase(Normalized(name)); }

std::string SupportedAiFunctions() {
  std::string list;
  for (const AiFunction& function : kFunctions) {
    if (!function.implemented()) continue;
    if (!list.empty()) list += ", ";
    list += function.name;
    if (!function.bigquery.empty()) list.append(" (").append(function.bigquery).append(")");
  }
  return list;
}

}  // namespace quail::sql
