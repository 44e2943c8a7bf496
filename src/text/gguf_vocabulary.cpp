#include "text/gguf_vocabulary.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/utf8.h"
#include "quail/error.h"
#include "text/byte_level_vocabulary.h"

namespace quail::text {
namespace {

/// What a name of `tokenizer.ggml.pre` stands for: the pipeline of the model's own tokenizer.json,
/// which the GGUF file does not carry.
struct PreTokenizer {
  std::string_view name;
  SplitScheme scheme;
  bool nfc;
  bool ignore_merges;
};

constexpr std::array<PreTokenizer, 6> kPreTokenizers{{
    {"gpt-2", SplitScheme::kGpt2, false, false},
    {"smollm", SplitScheme::kSmolLm, false, false},
    {"llama-bpe", SplitScheme::kLlama3, false, true},
    {"llama3", SplitScheme::kLlama3, false, true},
    {"llama-v3", SplitScheme::kLlama3, false, true},
    {"qwen2", SplitScheme::kQwen2, true, false},
}};

constexpr std::int32_t kNormalType = 1;
constexpr std::int32_t kByteType = 6;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kModel, "GGUF tokenizer: " + base::Escaped(what));
}

const PreTokenizer& FindPreTokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return pre;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", pre.name);
  }
  Refuse(fmt::format("tokenizer.ggml.pre is '{}'; known are {}", name, known));
}

void CheckFields(const GgufVocabularyFields& fields) {
  if (fields.model != "gpt2") {
    Refuse(
        fmt::format("tokenizer.ggml.model is '{}'; known is gpt2 (byte-level BPE)", fields.model));
  }
  if (fields.tokens.size() != fields.token_types.size()) {
    Refuse(fmt::format("{} tokenizer.ggml.tokens, but {} tokenizer.ggml.token_type",
                       fields.tokens.size(), fields.token_types.size()));
  }
  if (fields.unknown_token_id && *fields.unknown_token_id >= fields.tokens.size()) {
    Refuse(fmt::format("tokenizer.ggml.unknown_token_id is {}, but there are {} tokens",
                       *fields.unknown_token_id, fields.tokens.size()));
  }
}

}  // namespace

BpeVocabulary ReadGgufVocabulary(const GgufVocabularyFields& fields) {
  CheckFields(fields);
  const PreTokenizer& pre = FindPreTokenizer(fields.pre);
  ByteLevelVocabulary builder(fields.tokens.size());
  for (std::size_t i = 0; i < fields.tokens.size(); ++i) {
    const std::int32_t type = fields.token_types[i];
    builder.SetToken(TokenId(static_cast<std::int32_t>(i)), fields.tokens[i],
                     type != kNormalType && type != kByteType);
  }
  for (const std::string_view merge : fields.merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) Refuse(fmt::format("merge '{}' is not a pair", merge));
    builder.AddMerge(merge.substr(0, space), merge.substr(space + 1));
  }
  BpeVocabulary vocabulary = builder.Take();
  vocabulary.scheme = pre.scheme;
  vocabulary.nfc = pre.nfc;
  vocabulary.ignore_merges = pre.ignore_merges;
  if (fields.unknown_token_id) {
    vocabulary.unknown = TokenId(static_cast<std::int32_t>(*fields.unknown_token_id));
  }
  return vocabulary;
}

}  // namespace quail::text
