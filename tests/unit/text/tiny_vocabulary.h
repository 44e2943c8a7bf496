#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "byte_vocabulary.h"
#include "test_paths.h"
#include "text/bpe_tokenizer.h"
#include "text/tokenizer_json.h"

namespace quail::text {

inline std::filesystem::path TestData(std::string_view name) {
  return std::filesystem::path(QUAIL_SOURCE_DIR) / "tests/data/tokenizer" / name;
}

/// The committed vocabulary of some 900 tokens (tools/dump_tokenizer_golden.py); 0 is its unknown,
/// 1 a control token.
inline BpeVocabulary TinyVocabulary() { return LoadTokenizerJson(TestData("tiny.json")); }

inline std::vector<TokenId> Ids(const BpeTokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  if (tokenizer.Encode(text, ids)) throw std::logic_error("not UTF-8");
  return ids;
}

/// The bytes of each token.
inline std::vector<std::string> Tokens(const BpeTokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const TokenId id : Ids(tokenizer, text)) tokens.push_back(tokenizer.Decode({id}));
  return tokens;
}

}  // namespace quail::text
