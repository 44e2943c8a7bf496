#include "sql/lexer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "quail/error.h"

namespace quail::sql {
namespace {

const DialectRules& Snowflake() { return RulesOf(Dialect::kSnowflake); }
const DialectRules& BigQuery() { return RulesOf(Dialect::kBigQuery); }

/// The value of the only token of `text`.
std::string ValueOf(std::string_view text, const DialectRules& rules) {
  const auto tokens = Lex(text, rules);
  EXPECT_EQ(tokens.size(), 2U) << text;
  return tokens[0].value;
}

struct Failure {
  ErrorCode code;
  std::size_t offset;
  std::string message;
};
Failure FailureOf(std::string_view text, const DialectRules& rules) {
  try {
    Lex(text, rules);
  } catch (const Error& error) {
    return {error.code(), error.position() ? error.position()->offset : 9999, error.what()};
  }
  ADD_FAILURE() << "no error for " << text;
  return {};
}

TEST(Lexer, SnowflakeStringsDecodeTheirEscapes) {
  EXPECT_EQ(ValueOf(R"('it''s')", Snowflake()), "it's");
  EXPECT_EQ(ValueOf(R"('a\\b\'c\"d\n\t\r\b\f')", Snowflake()), "a\\b'c\"d\n\t\r\b\f");
  EXPECT_EQ(ValueOf(R"('\101\x42\u00e9\q\d')", Snowflake()), "AB\xC3\xA9qd");
  EXPECT_EQ(ValueOf("'\\\xC3\xA9'", Snowflake()), "\xC3\xA9");
  EXPECT_EQ(ValueOf(R"('\ud83d\ude00')", Snowflake()), "\xF0\x9F\x98\x80");
  EXPECT_EQ(ValueOf("$$it's \\n -- raw$$", Snowflake()), "it's \\n -- raw");
  EXPECT_EQ(ValueOf("''", Snowflake()), "");
  EXPECT_EQ(ValueOf("''''", Snowflake()), "'");
}

TEST(Lexer, BigQueryStringsDecodeTheirEscapes) {
  EXPECT_EQ(ValueOf(R"('it\'s')", BigQuery()), "it's");
  EXPECT_EQ(ValueOf(R"("it's \"so\"")", BigQuery()), "it's \"so\"");
  EXPECT_EQ(ValueOf(R"('\a\b\f\n\r\t\v\\\?\`\101\x42\u00e9\U0001F600')", BigQuery()),
            "\a\b\f\n\r\t\v\\?`AB\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(ValueOf(R"(r'raw \n {0} \' x')", BigQuery()), R"(raw \n {0} \' x)");
  EXPECT_EQ(ValueOf("'''it's\n''two'''", BigQuery()), "it's\n''two");
  EXPECT_EQ(ValueOf("\"\"\"say \"x\" y\"\"\"", BigQuery()), "say \"x\" y");
}

TEST(Lexer, TheEngineReadsBackslashesInOneKindOfStringOnly) {
  EXPECT_EQ(ValueOf(R"('a\')", EngineRules()), "a\\");
  EXPECT_EQ(ValueOf(R"('it''s \n')", EngineRules()), "it's \\n");
  EXPECT_EQ(ValueOf(R"(E'it\'s''\n')", EngineRules()), "it's'\n");
  EXPECT_EQ(ValueOf(R"("a \ ""b""")", EngineRules()), R"(a \ "b")");
}

TEST(Lexer, FailsAtThePlaceThatIsWrong) {
  EXPECT_EQ(FailureOf("SELECT 'abc", Snowflake()).offset, 7U);
  EXPECT_EQ(FailureOf("SELECT $$abc", Snowflake()).offset, 7U);
  EXPECT_EQ(FailureOf("SELECT 1 /* abc", Snowflake()).offset, 9U);
  EXPECT_EQ(FailureOf("SELECT \"abc", Snowflake()).offset, 7U);
  EXPECT_EQ(FailureOf(R"('ab\qc')", BigQuery()).offset, 3U);
  EXPECT_EQ(FailureOf(R"('ab\x4')", Snowflake()).offset, 3U);
  EXPECT_EQ(FailureOf(R"('\0')", Snowflake()).offset, 1U);
  EXPECT_EQ(FailureOf(R"('\ud83d')", Snowflake()).offset, 1U);
  EXPECT_EQ(FailureOf(std::string("SELECT \0 1", 10), Snowflake()).offset, 7U);
  const Failure doubled = FailureOf("'it''s'", BigQuery());
  EXPECT_EQ(doubled.offset, 3U);
  EXPECT_NE(doubled.message.find("\\'"), std::string::npos) << doubled.message;
}

TEST(Lexer, CommentsAreThoseOfTheDialect) {
  EXPECT_EQ(Lex("a // b\nc", Snowflake()).size(), 3U);
  EXPECT_EQ(Lex("a // b\nc", BigQuery()).size(), 5U);
  EXPECT_EQ(Lex("a # b\nc", BigQuery()).size(), 3U);
  EXPECT_EQ(Lex("a #1 b", Snowflake()).size(), 5U);
  const Failure hash = FailureOf("a # b\nc", Snowflake());
  EXPECT_EQ(hash.offset, 2U);
  EXPECT_NE(hash.message.find("bigquery"), std::string::npos) << hash.message;
  EXPECT_EQ(Lex("a /* /* b */ c -- d", Snowflake()).size(), 3U);
}

TEST(Lexer, NumbersKeepTheirDotsAndNamesKeepTheirs) {
  const auto spell = [](std::string_view text) {
    std::vector<std::string> out;
    for (const Token& token : Lex(text, Snowflake())) out.emplace_back(Spelling(text, token));
    return out;
  };
  EXPECT_EQ(spell("1.5e-3+.5"), (std::vector<std::string>{"1.5e-3", "+", ".5", ""}));
  EXPECT_EQ(spell("a.b::int"), (std::vector<std::string>{"a", ".", "b", "::", "int", ""}));
  EXPECT_EQ(spell("x[1].5"), (std::vector<std::string>{"x", "[", "1", "]", ".", "5", ""}));
}

TEST(Lexer, BytesAreNoText) {
  for (const char* text : {"a b'x'", "a B\"x\"", "a rb\"\"\"x\"\"\"", "a BR'x'"}) {
    const Failure bytes = FailureOf(text, BigQuery());
    EXPECT_EQ(bytes.offset, 2U) << text;
    EXPECT_NE(bytes.message.find("bytes"), std::string::npos) << bytes.message;
  }
  EXPECT_EQ(Lex("b 'x'", BigQuery()).size(), 3U);
  EXPECT_EQ(Lex("ab'x'", BigQuery()).size(), 3U);
}

RC_GTEST_PROP(LexerProperty, TokensAreInOrderAndNeverOverlap, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("ab1 '\"`\\$;/-*#.()[]{}:=\n,")));
  for (const auto* rules : {&Snowflake(), &BigQuery(), &EngineRules()}) {
    try {
      std::size_t end = 0;
      for (const Token& token : Lex(text, *rules)) {
        RC_ASSERT(token.offset >= end);
        end = token.offset + token.size;
        RC_ASSERT(end <= text.size());
      }
    } catch (const Error& error) {
      RC_ASSERT(error.code() == ErrorCode::kSyntax || error.code() == ErrorCode::kUnfinished);
      RC_ASSERT(error.position().has_value());
    }
  }
}

RC_GTEST_PROP(LexerProperty, EveryTextSurvivesQuotingForTheEngine, ()) {
  auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a'\"$\\ \n{}")));
  const auto tokens = Lex(QuoteString(text), EngineRules());
  RC_ASSERT(tokens.size() == 2U);
  RC_ASSERT(tokens[0].value == text);
}

RC_GTEST_PROP(LexerProperty, ATextLiteralIsThatTextInEveryDialect, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ar'\"\\$`# \n\r{}")));
  for (const Dialect dialect : Dialects()) {
    const auto tokens = Lex(TextLiteral(text), RulesOf(dialect));
    RC_ASSERT(tokens.size() == 2U);
    RC_ASSERT(tokens[0].value == text);
  }
}

}  // namespace
}  // namespace quail::sql
