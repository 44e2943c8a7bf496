#include "sql/ai_function.h"

#include <algorithm>
#include <array>

#include "sql/lexer.h"

namespace quail::sql {

namespace {

constexpr AiFunction Known(std::string_view name, std::string_view snowflake,
                           std::string_view bigquery, std::string_view arguments,
                           std::string_view result_type, std::string_view summary) {
  AiFunction function;
  function.name = name;
  function.snowflake = snowflake;
  function.bigquery = bigquery;
  function.arguments = arguments;
  function.result_type = result_type;
  function.summary = summary;
  return function;
}

constexpr std::array kFunctions = {
    Known("AI_AGG", "AI_AGG", "AI.AGG", "text, instruction", "VARCHAR",
          "Answers an instruction over all texts of a group."),
    Known("AI_CLASSIFY", "AI_CLASSIFY", "AI.CLASSIFY", "input, categories [, options]",
          "STRUCT(labels VARCHAR[])", "Picks the categories that fit a text."),
    Known("AI_COMPLETE", "AI_COMPLETE", "", "model, prompt [, model_parameters, ..]", "VARCHAR",
          "Writes a continuation of a prompt."),
    AiFunction{.name = "AI_COUNT_TOKENS",
               .snowflake = "AI_COUNT_TOKENS",
               .bigquery = "AI.COUNT_TOKENS",
               .arguments = "[function_name,] text",
               .prompt = PromptShape::kText,
               .readout = Readout::kTokenCount,
               .result_type = "INTEGER",
               .summary = "Tokens of a text in the model's vocabulary; the model is not run.",
               .example = "SELECT AI_COUNT_TOKENS(body) FROM reviews"},
    Known("AI_EMBED", "AI_EMBED", "AI.EMBED", "model, input", "FLOAT[]", "Embeds a text."),
    Known("AI_EXTRACT", "AI_EXTRACT", "", "text, response_format [, ..]", "STRUCT",
          "Reads named facts out of a text."),
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
    Known("AI_GENERATE", "", "AI.GENERATE", "prompt [, output_schema, ..]", "STRUCT",
          "Writes an answer to a prompt."),
    Known("AI_GENERATE_BOOL", "", "AI.GENERATE_BOOL", "prompt [, ..]", "STRUCT",
          "Writes a truth value."),
    Known("AI_GENERATE_DOUBLE", "", "AI.GENERATE_DOUBLE", "prompt [, ..]", "STRUCT",
          "Writes a number."),
    Known("AI_GENERATE_EMBEDDING", "", "AI.GENERATE_EMBEDDING", "model, table", "TABLE",
          "Embeds the texts of a table."),
    Known("AI_GENERATE_INT", "", "AI.GENERATE_INT", "prompt [, ..]", "STRUCT",
          "Writes an integer."),
    Known("AI_GENERATE_TABLE", "", "AI.GENERATE_TABLE", "model, table, options", "TABLE",
          "Writes rows of a given schema."),
    Known("AI_GENERATE_TEXT", "", "AI.GENERATE_TEXT", "model, table, options", "TABLE",
          "Writes answers to the prompts of a table."),
    Known("AI_PARSE_DOCUMENT", "AI_PARSE_DOCUMENT", "", "file [, options]", "STRUCT",
          "Reads the text of a document file."),
    AiFunction{.name = "AI_PROB",
               .snowflake = "AI_PROB",
               .bigquery = "AI.PROB",
               .arguments = "prompt [, options]",
               .prompt = PromptShape::kPrompt,
               .readout = Readout::kProbability,
               .result_type = "DOUBLE",
               .summary = "Probability that the answer is TRUE; read in AI_FILTER's forward pass.",
               .example = "SELECT id, AI_PROB(PROMPT('Is it urgent? {0}', body)) FROM tickets"},
    Known("AI_REDACT", "AI_REDACT", "", "text [, categories]", "VARCHAR",
          "Blanks personal data in a text."),
    Known("AI_SCORE", "", "AI.SCORE", "prompt [, ..]", "DOUBLE",
          "Rates a text on the scale that the prompt states; AI.PROB gives a probability."),
    Known("AI_SENTIMENT", "AI_SENTIMENT", "", "text [, categories]", "STRUCT",
          "Sentiment of a text, overall and by category."),
    Known("AI_SIMILARITY", "AI_SIMILARITY", "AI.SIMILARITY", "input1, input2 [, options]", "DOUBLE",
          "Cosine of two texts' embeddings."),
    Known("AI_SUMMARIZE_AGG", "AI_SUMMARIZE_AGG", "", "text", "VARCHAR",
          "Summarises all texts of a group."),
    Known("AI_TRANSCRIBE", "AI_TRANSCRIBE", "", "file [, options]", "STRUCT",
          "Writes down the speech of an audio file."),
    Known("AI_TRANSLATE", "AI_TRANSLATE", "", "text, from, to", "VARCHAR", "Translates a text."),
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

std::span<const AiFunction> AiFunctions() { return kFunctions; }

const AiFunction* FindAiFunction(std::string_view name) {
  const std::string wanted = Normalized(name);
  const auto matches = [&wanted](const AiFunction& function) {
    return function.name == wanted ||
           (!function.snowflake.empty() && Normalized(function.snowflake) == wanted) ||
           (!function.bigquery.empty() && Normalized(function.bigquery) == wanted);
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
