#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "byte_vocabulary.h"
#include "quail/error.h"

namespace quail::text {
namespace {

/// Bytes, and the markers of all forms as control tokens from id 256 on.
class ChatTemplate : public testing::Test {
 protected:
  static std::shared_ptr<const BpeTokenizer> Tokenizer(const std::vector<std::string>& markers = {
                                                           "<|im_start|>", "<|im_end|>", "<think>",
                                                           "</think>", "<|start_header_id|>",
                                                           "<|end_header_id|>", "<|eot_id|>",
                                                           "<|begin_of_text|>"}) {
    BpeVocabulary vocabulary = ByteVocabulary();
    for (const std::string& marker : markers) {
      vocabulary.tokens.push_back(marker);
      vocabulary.is_control.push_back(true);
    }
    return BpeTokenizer::Create(std::move(vocabulary));
  }

  struct Turns {
    std::string before, after;
    auto operator<=>(const Turns&) const = default;
  };
  /// The pieces as text; every marker must be one token.
  static Turns Read(std::string_view text) {
    const auto tokenizer = Tokenizer();
    const ChatPieces pieces = ReadChatPieces(text, *tokenizer);
    const Turns turns{tokenizer->Decode(pieces.before), tokenizer->Decode(pieces.after)};
    const std::string all = turns.before + turns.after;
    std::size_t controls = 0;
    for (const auto* side : {&pieces.before, &pieces.after}) {
      for (const TokenId id : *side) controls += id.value() >= 256 ? 1 : 0;
    }
    EXPECT_EQ(controls, static_cast<std::size_t>(std::count(all.begin(), all.end(), '<')));
    return turns;
  }
  static std::string ErrorOf(std::string_view text, const BpeTokenizer& tokenizer) {
    try {
      ReadChatPieces(text, tokenizer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  static std::string ErrorOf(std::string_view text) { return ErrorOf(text, *Tokenizer()); }
};

constexpr std::string_view kPlainTurns =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

TEST_F(ChatTemplate, TurnsOfChatMl) {
  EXPECT_EQ(Read(kPlainTurns),
            (Turns{"<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"}));
}

// Both spellings of a line feed in a literal; a system turn that is put together of a message's
// content is none of the template's own.
TEST_F(ChatTemplate, ASystemTextOfTheTemplatesOwnIsPartOfThePrompt) {
  for (const std::string feed : {"\\n", "\n"}) {
    const std::string text = "{% if messages[0].role == 'system' %}{{ '<|im_start|>system" + feed +
                             "' + messages[0].content + '<|im_end|>" + feed +
                             "' }}{% else %}{{ '<|im_start|>system" + feed + "Be brief.<|im_end|>" +
                             feed + "' }}{% endif %}" + std::string(kPlainTurns);
    EXPECT_EQ(Read(text).before, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n");
  }
  const std::string none = "{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}" +
                           std::string(kPlainTurns);
  EXPECT_EQ(Read(none).before, "<|im_start|>user\n");
}

TEST_F(ChatTemplate, ThinkingIsOff) {
  const std::string text =
      std::string(kPlainTurns) + "{% if enable_thinking is false %}..{% endif %}";
  EXPECT_EQ(Read(text).after, "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST_F(ChatTemplate, TurnsOfLlama3BeginWithItsFirstToken) {
  const std::string turn =
      "'<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] + '<|eot_id|>'";
  const Turns wanted{"<|start_header_id|>user<|end_header_id|>\n\n",
                     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"};
  EXPECT_EQ(Read("{{ " + turn + " }}"), wanted);
  EXPECT_EQ(Read("{{ bos_token + " + turn + " }}"),
            (Turns{"<|begin_of_text|>" + wanted.before, wanted.after}));
}

TEST_F(ChatTemplate, WhatIsNotKnownIsRefused) {
  EXPECT_NE(ErrorOf("[INST] {{ content }} [/INST]").find("known are ChatML"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string(kPlainTurns) + "'<|tool|>'").find("'<|tool|>'"), std::string::npos);
  const std::string dated = std::string(kPlainTurns) + "{{ strftime_now('%d') }}";
  EXPECT_NE(ErrorOf(dated).find("date"), std::string::npos);
  EXPECT_NE(ErrorOf(kPlainTurns, *Tokenizer({"<|im_start|>"})).find("no token '<|im_end|>'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("").find("no known form"), std::string::npos);
}

TEST_F(ChatTemplate, AFolderHasItInOneOfTwoFiles) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "chat_template_test";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(folder / name) << text;
  };
  EXPECT_EQ(LoadChatTemplate(folder), std::nullopt);
  write("tokenizer_config.json", R"({"model_max_length": 8})");
  EXPECT_EQ(LoadChatTemplate(folder), std::nullopt);
  write("tokenizer_config.json", R"({"chat_template": "a\nb"})");
  EXPECT_EQ(LoadChatTemplate(folder), "a\nb");
  for (const char* wrong : {R"({"chat_template": ["a"]})", R"({"chat_template": )", ""}) {
    write("tokenizer_config.json", wrong);
    EXPECT_THROW(LoadChatTemplate(folder), Error) << wrong;
  }
  write("chat_template.jinja", "c");
  EXPECT_EQ(LoadChatTemplate(folder), "c");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quail::text
