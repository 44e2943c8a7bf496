#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "quail/error.h"
#include "test_paths.h"
#include "tiny_vocabulary.h"

namespace quail::text {
namespace {

using nlohmann::json;

json TinyJson() {
  std::ifstream file(TestData("tiny.json"));
  return json::parse(file);
}

/// The tiny vocabulary's file after `change`.
BpeVocabulary ReadChanged(const std::function<void(json&)>& change) {
  json file = TinyJson();
  change(file);
  return ReadTokenizerJson(file.dump());
}

void ExpectRefused(const std::function<void(json&)>& change,
                   const std::vector<std::string>& parts) {
  try {
    ReadChanged(change);
    ADD_FAILURE() << "accepted: " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}

json SplitBy(const std::string& pattern) {
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, ByteLevel(false)}}};
}

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(TokenizerJson, RecognisesTheKnownPreTokenizers) {
  const auto scheme_with = [](const json& pre_tokenizer) {
    return ReadChanged([&](json& file) { file["pre_tokenizer"] = pre_tokenizer; }).scheme;
  };
  EXPECT_EQ(scheme_with(ByteLevel(true)), SplitScheme::kGpt2);
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(scheme_with({{"type", "Sequence"}, {"pretokenizers", {digits, ByteLevel(true)}}}),
            SplitScheme::kSmolLm);
  EXPECT_EQ(scheme_with(SplitBy(kLlama3)), SplitScheme::kLlama3);
  EXPECT_EQ(scheme_with(SplitBy(kQwen2)), SplitScheme::kQwen2);
}

/// Case 43 (unknown pre-tokenizer accepted with a guess).
TEST(TokenizerJson, Case43RefusesUnknownPreTokenizersByName) {
  const auto refuse = [](const json& pre_tokenizer, const std::string& part) {
    ExpectRefused([&](json& file) { file["pre_tokenizer"] = pre_tokenizer; },
                  {part, "known are", "GPT-2", "SmolLM", "Llama 3", "Qwen2"});
  };
  refuse(SplitBy(std::string(kQwen2) + "|x"), "|x");
  refuse({{"type", "Whitespace"}}, "Whitespace");
  refuse(nullptr, "pre_tokenizer is none");
  json prefix = ByteLevel(true);
  prefix["add_prefix_space"] = true;
  refuse(prefix, "add_prefix_space");
  json inverted = SplitBy(kQwen2);
  inverted["pretokenizers"][0]["invert"] = true;
  refuse(inverted, "invert");
  json removed = SplitBy(kQwen2);
  removed["pretokenizers"][0]["behavior"] = "Removed";
  refuse(removed, "Removed");
  const json digits = {{"type", "Digits"}, {"individual_digits", false}};
  refuse({{"type", "Sequence"}, {"pretokenizers", {digits, ByteLevel(true)}}}, "Digits");
}

TEST(TokenizerJson, ReadsNfcAndRefusesOtherNormalizers) {
  const auto nfc_with = [](const json& normalizer) {
    return ReadChanged([&](json& file) { file["normalizer"] = normalizer; }).nfc;
  };
  EXPECT_FALSE(nfc_with(nullptr));
  EXPECT_TRUE(nfc_with({{"type", "NFC"}}));
  EXPECT_TRUE(nfc_with({{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}}));
  ExpectRefused(
      [](json& file) {
        file["normalizer"] = {{"type", "NFKC"}};
      },
      {"NFKC", "known are none and NFC"});
}

TEST(TokenizerJson, ReadsAddedTokensAsControlAndBothFormsOfMerges) {
  const BpeVocabulary plain = TinyVocabulary();
  EXPECT_TRUE(plain.is_control[0]);
  EXPECT_TRUE(plain.is_control[1]);
  EXPECT_EQ(plain.tokens[1], "<|end|>");
  EXPECT_EQ(plain.unknown, TokenId(0));
  const BpeVocabulary joined = ReadChanged([](json& file) {
    for (json& merge : file["model"]["merges"]) {
      merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    }
    file["added_tokens"].push_back({{"id", 5000}, {"content", "<|late|>"}});
  });
  EXPECT_EQ(joined.merges, plain.merges);
  ASSERT_EQ(joined.tokens.size(), 5001U);
  EXPECT_EQ(joined.tokens[5000], "<|late|>");
  EXPECT_TRUE(joined.is_control[4999]);
}

TEST(TokenizerJson, RefusesModelOptionsThatWouldChangeIds) {
  const auto refuse = [](const char* option, const json& value) {
    ExpectRefused([&](json& file) { file["model"][option] = value; }, {option, "known"});
  };
  refuse("type", "Unigram");
  refuse("dropout", 0.1);
  refuse("byte_fallback", true);
  refuse("fuse_unk", true);
  refuse("continuing_subword_prefix", "##");
  refuse("end_of_word_suffix", "</w>");
}

TEST(TokenizerJson, RefusesBrokenFiles) {
  ExpectRefused([](json& file) { file["model"]["vocab"]["huge"] = 4'000'000'000; }, {"4000000000"});
  ExpectRefused([](json& file) { file["model"]["vocab"]["low"] = -1; }, {"-1"});
  ExpectRefused(
      [](json& file) {
        file["model"]["merges"].push_back({"a", "b", "c"});
      },
      {"not a pair"});
  ExpectRefused([](json& file) { file["model"]["merges"].push_back("ab"); }, {"not a pair"});
  ExpectRefused(
      [](json& file) {
        file["model"]["merges"].push_back({"nowhere", "b"});
      },
      {"nowhere"});
  ExpectRefused([](json& file) { file["model"].erase("vocab"); }, {"'vocab' is missing"});
  ExpectRefused([](json& file) { file["model"]["unk_token"] = "<none>"; }, {"<none>"});
  ExpectRefused([](json& file) { file = json::array(); }, {"the file"});
}

/// A file cut anywhere is an error, never a crash or a vocabulary.
TEST(TokenizerJson, RefusesEveryCutFile) {
  const std::string file = TinyJson().dump();
  for (std::size_t part = 0; part < 64; ++part) {
    EXPECT_THROW(ReadTokenizerJson(std::string_view(file).substr(0, file.size() * part / 64)),
                 Error);
  }
  EXPECT_THROW(ReadTokenizerJson(std::string(100'000, '[')), Error);
}

TEST(TokenizerJson, NamesTheFileInErrors) {
  try {
    LoadTokenizerJson(TestData("golden.jsonl"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("golden.jsonl"), std::string::npos) << error.what();
  }
}

TEST(TokenizerJson, ReadsQwen3) {
  const std::filesystem::path path =
      std::filesystem::path(QUAIL_SHARED_DIR) / "data/tokenizers/qwen3/tokenizer.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no shared data";
  BpeVocabulary vocabulary = LoadTokenizerJson(path);
  EXPECT_TRUE(vocabulary.nfc);
  EXPECT_FALSE(vocabulary.ignore_merges);
  EXPECT_EQ(vocabulary.scheme, SplitScheme::kQwen2);
  const auto tokenizer = BpeTokenizer::Create(std::move(vocabulary));
  EXPECT_EQ(tokenizer->Find("TRUE"), TokenId(20611));
  EXPECT_EQ(tokenizer->Find(" FALSE"), TokenId(7833));
}

}  // namespace
}  // namespace quail::text
