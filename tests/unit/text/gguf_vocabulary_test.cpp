#include "text/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "quail/error.h"
#include "tiny_vocabulary.h"

namespace quail::text {
namespace {

/// Entries of a small but whole vocabulary: 256 bytes in GPT-2's alphabet, one merge, one control
/// token.
class GgufFields {
 public:
  GgufFields() {
    std::size_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      std::string name;
      base::AppendUtf8(static_cast<char32_t>(itself ? static_cast<std::size_t>(byte) : next++),
                       name);
      names_.push_back(name);
    }
    names_.emplace_back("\u0120a");
    names_.emplace_back("<|end|>");
    types_.assign(257, 1);
    types_.push_back(3);
    merges_ = {"\u0120 a"};
    views_.assign(names_.begin(), names_.end());
    fields = {"gpt2", "smollm", views_, types_, merges_, 257};
  }

  GgufVocabularyFields fields;

 private:
  std::vector<std::string> names_;
  std::vector<std::string_view> views_;
  std::vector<std::int32_t> types_;
  std::vector<std::string_view> merges_;
};

void ExpectRefused(const GgufVocabularyFields& fields, const std::vector<std::string>& parts) {
  try {
    ReadGgufVocabulary(fields);
    ADD_FAILURE() << "accepted: " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(GgufVocabulary, DecodesThePrintableAlphabet) {
  const BpeVocabulary vocabulary = ReadGgufVocabulary(GgufFields().fields);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(vocabulary.tokens[static_cast<std::size_t>(byte)],
              std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(vocabulary.tokens[256], " a");
  EXPECT_EQ(vocabulary.tokens[257], "<|end|>");
  EXPECT_TRUE(vocabulary.is_control[257]);
  EXPECT_EQ(vocabulary.unknown, TokenId(257));
  const auto tokenizer = BpeTokenizer::Create(vocabulary);
  EXPECT_EQ(Tokens(*tokenizer, "b a"), (std::vector<std::string>{"b", " a"}));
}

TEST(GgufVocabulary, KnowsWhatEachPreTokenizerImplies) {
  GgufFields gguf;
  const auto read = [&](std::string_view pre) {
    gguf.fields.pre = pre;
    return ReadGgufVocabulary(gguf.fields);
  };
  EXPECT_EQ(read("gpt-2").scheme, SplitScheme::kGpt2);
  EXPECT_EQ(read("smollm").scheme, SplitScheme::kSmolLm);
  EXPECT_EQ(read("qwen2").scheme, SplitScheme::kQwen2);
  EXPECT_TRUE(read("qwen2").nfc);
  EXPECT_FALSE(read("smollm").nfc);
  EXPECT_EQ(read("llama-bpe").scheme, SplitScheme::kLlama3);
  EXPECT_TRUE(read("llama-bpe").ignore_merges);
  EXPECT_FALSE(read("qwen2").ignore_merges);
}

/// Case 43 (unknown pre-tokenizer accepted with a guess).
TEST(GgufVocabulary, Case43RefusesUnknownPreTokenizersByName) {
  GgufFields gguf;
  gguf.fields.pre = "smollm3";
  ExpectRefused(gguf.fields, {"'smollm3'", "known are", "smollm", "qwen2", "llama-bpe", "gpt-2"});
  gguf.fields.pre = "default";
  ExpectRefused(gguf.fields, {"'default'"});
  gguf.fields.pre = "smollm";
  gguf.fields.model = "llama";
  ExpectRefused(gguf.fields, {"'llama'", "gpt2"});
}

TEST(GgufVocabulary, RefusesEntriesThatContradictEachOther) {
  GgufFields gguf;
  gguf.fields.token_types = gguf.fields.token_types.first(10);
  ExpectRefused(gguf.fields, {"258", "10"});
  GgufFields unknown;
  unknown.fields.unknown_token_id = 258;
  ExpectRefused(unknown.fields, {"unknown_token_id is 258"});
  GgufFields merges;
  const std::vector<std::string_view> bad{"ab"};
  merges.fields.merges = bad;
  ExpectRefused(merges.fields, {"'ab' is not a pair"});
}

}  // namespace
}  // namespace quail::text
