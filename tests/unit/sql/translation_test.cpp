#include "sql/translation.h"

#include <gtest/gtest.h>

#include <string>

#include "quail/error.h"

namespace quail::sql {
namespace {

Translation Read(std::string_view text, Dialect dialect) {
  const DialectRules& rules = RulesOf(dialect);
  auto tokens = Lex(text, rules);
  tokens.pop_back();
  return Translate(text, tokens, rules);
}
std::string Snowflake(std::string_view text) { return Read(text, Dialect::kSnowflake).sql; }
std::string BigQuery(std::string_view text) { return Read(text, Dialect::kBigQuery).sql; }

struct Failure {
  ErrorCode code{};
  std::size_t offset = 9999;
  std::string message;
};
Failure FailureOf(std::string_view text, Dialect dialect) {
  try {
    Read(text, dialect);
  } catch (const Error& error) {
    return {error.code(), error.position() ? error.position()->offset : 9999, error.what()};
  }
  ADD_FAILURE() << "no error for " << text;
  return {};
}
bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Translation, PlainSqlIsKeptByteForByte) {
  const std::string text = "SELECT a.x,  1.5e3 || 'it''s'\n\tFROM \"T t\" a WHERE b::int >= $1";
  EXPECT_EQ(Snowflake(text), text);
  EXPECT_FALSE(Read(text, Dialect::kSnowflake).has_ai);
}

// The statements of the reference's parser table (dependencies 3.2), each into what both engine
// versions read right.
TEST(Translation, AiNamesReachTheParserUnderOneName) {
  EXPECT_EQ(Snowflake("WHERE AI_FILTER(PROMPT('x {0}', r.c))"),
            "WHERE ai_filter(PROMPT('x {0}', r.c))");
  EXPECT_EQ(Snowflake("SELECT 1 // comment\n+ 2"), "SELECT 1  \n+ 2");
  EXPECT_EQ(BigQuery("ON AI.IF(PROMPT('q'))"), "ON ai_if(PROMPT('q'))");
  EXPECT_EQ(BigQuery("ON AI.IF(PROMPT(\"q\"))"), "ON ai_if(PROMPT('q'))");
  EXPECT_EQ(BigQuery("AI_IF(PROMPT(\"text {0}\", c.x))"), "ai_if(PROMPT('text {0}', c.\"x\"))");
  EXPECT_EQ(BigQuery("AI.IF(('text ', t.b), connection_id => 'c')"),
            "ai_if(('text ', t.\"b\"), connection_id => 'c')");
  EXPECT_EQ(BigQuery("AI.IF(prompt => (\"..\", b))"), "ai_if(prompt => ('..', b))");
  EXPECT_EQ(BigQuery("FROM `p-q.d.t` CROSS JOIN `x`"), "FROM \"p-q\".\"d\".\"t\" CROSS JOIN \"x\"");
  EXPECT_EQ(BigQuery("SELECT * EXCEPT (x) FROM t"), "SELECT * EXCLUDE (x) FROM t");
  EXPECT_EQ(BigQuery("SELECT \"AI\".x"), "SELECT 'AI'.\"x\"");
  EXPECT_EQ(Snowflake("\"AI\".\"IF\"(x)"), "ai_if(x)");
  EXPECT_EQ(BigQuery("`AI`.`IF`(x)"), "ai_if(x)");
  EXPECT_EQ(BigQuery("SELECT \"\"\"triple quoted\"\"\""), "SELECT 'triple quoted'");
  EXPECT_EQ(BigQuery("SELECT r'raw {0}'"), "SELECT 'raw {0}'");
  EXPECT_EQ(Snowflake("SELECT $$dollar's$$"), "SELECT 'dollar''s'");
  EXPECT_EQ(Snowflake("SELECT E'a\\tb'"), "SELECT 'a\tb'");
}

TEST(Translation, PathsOnCallsCountFromOne) {
  EXPECT_EQ(Snowflake("SELECT f(a, [1]):labels[0]::STRING"),
            "SELECT f(a, [1]).\"labels\"[1]::STRING");
  EXPECT_EQ(Snowflake("SELECT AI_FILTER(x, TRUE):value::BOOLEAN"),
            "SELECT ai_filter(x, TRUE).\"value\"::BOOLEAN");
  EXPECT_EQ(Snowflake("SELECT f():a.b['c d'][2]"), "SELECT f().\"a\".\"b\".\"c d\"[3]");
  EXPECT_EQ(Snowflake("SELECT x[f(1):g]"), "SELECT x[f(1):g]");
  EXPECT_EQ(Snowflake("SELECT {'k': v}, x[1:2]"), "SELECT {'k': v}, x[1:2]");
  EXPECT_EQ(Snowflake("SELECT {'k': f(1):g}"), "SELECT {'k': f(1).\"g\"}");
}

TEST(Translation, StructBecomesOneOfTheEnginesForms) {
  EXPECT_EQ(BigQuery("AI.IF(STRUCT('Good? ' AS p, upper(body) AS d))"),
            "ai_if(struct_pack(\"p\" := 'Good? ', \"d\" := upper(body)))");
  EXPECT_EQ(BigQuery("STRUCT(1, STRUCT(f(2, 3) AS x))"), "row(1, struct_pack(\"x\" := f(2, 3)))");
  EXPECT_EQ(BigQuery("STRUCT(a AS p, b)"), "row(a, b)");
}

TEST(Translation, NamedSlotsBecomeColumns) {
  const Translation out = Read(
      "AI.IF(PROMPT(\"{customers.profile} might buy: {products.description} {{x}} "
      "{Customers.Profile}\"))",
      Dialect::kBigQuery);
  EXPECT_EQ(out.sql,
            "ai_if(PROMPT('{0} might buy: {1} {{x}} {0}', \"customers\".\"profile\", "
            "\"products\".\"description\"))");
  const std::size_t column = out.sql.find("\"products\"");
  EXPECT_EQ(out.map.ToInput(column), 46U);
  EXPECT_EQ(BigQuery("PROMPT('{\"a\": {1}} {not a name}', x, y)"),
            "PROMPT('{\"a\": {1}} {not a name}', x, y)");
  const Failure mixed = FailureOf("PROMPT('{a} and {0}', x)", Dialect::kBigQuery);
  EXPECT_EQ(mixed.code, ErrorCode::kBind);
  EXPECT_EQ(mixed.offset, 16U);
}

TEST(Translation, FilesStayOneName) {
  EXPECT_EQ(BigQuery("FROM `examples/a.csv`, `b.parquet`, `d.t`"),
            "FROM \"examples/a.csv\", \"b.parquet\", \"d\".\"t\"");
}

TEST(Translation, CortexPrefixIsDropped) {
  EXPECT_EQ(Snowflake("SNOWFLAKE.CORTEX.AI_FILTER(SNOWFLAKE.CORTEX.PROMPT('{0}', x))"),
            "ai_filter(PROMPT('{0}', x))");
  const Failure known = FailureOf("SELECT SNOWFLAKE.CORTEX.COMPLETE('m', x)", Dialect::kSnowflake);
  EXPECT_EQ(known.code, ErrorCode::kUnsupported);
  EXPECT_EQ(known.offset, 24U);
  EXPECT_EQ(FailureOf("SELECT SNOWFLAKE.CORTEX.NOPE(x)", Dialect::kSnowflake).code,
            ErrorCode::kBind);
}

TEST(Translation, UnknownAndUnsupportedFunctionsFailAtTheirName) {
  const Failure unknown = FailureOf("SELECT 1, AI_FILTR(x)", Dialect::kSnowflake);
  EXPECT_EQ(unknown.code, ErrorCode::kBind);
  EXPECT_EQ(unknown.offset, 10U);
  EXPECT_TRUE(Contains(unknown.message, "AI_FILTR"));
  EXPECT_TRUE(Contains(unknown.message, "AI_FILTER (AI.IF)"));
  const Failure known = FailureOf("SELECT AI.GENERATE(x).result", Dialect::kBigQuery);
  EXPECT_EQ(known.code, ErrorCode::kUnsupported);
  EXPECT_EQ(known.offset, 7U);
  EXPECT_TRUE(Contains(known.message, "known, but not supported yet"));
}

// Case 1: `AI.` is a namespace for any number of arguments, never the conditional IF.
TEST(Translation, Bug1AiIfIsNeverTheScalarIf) {
  EXPECT_EQ(BigQuery("SELECT id FROM t WHERE AI.IF(('Snow? ', body))"),
            "SELECT id FROM t WHERE ai_if(('Snow? ', body))");
  EXPECT_EQ(BigQuery("AI . IF (x, connection_id => 'a', endpoint => 'b')"),
            "ai_if (x, connection_id => 'a', endpoint => 'b')");
  EXPECT_EQ(BigQuery("IF(a, b, c)"), "IF(a, b, c)");
}

// Case 2: any word after a dot is a name.
TEST(Translation, Bug2KeywordsAfterADot) {
  EXPECT_EQ(BigQuery("SELECT t.current, t.if FROM t WHERE AI.IF((t.end, ' ok?'))"),
            "SELECT t.\"current\", t.\"if\" FROM t WHERE ai_if((t.\"end\", ' ok?'))");
}

// Case 7: apostrophes inside literals stay byte for byte.
TEST(Translation, Bug7ApostrophesInsideArrays) {
  EXPECT_EQ(Snowflake("f(body, ['driver''s fault', 'other\\'s'])"),
            "f(body, ['driver''s fault', 'other''s'])");
  EXPECT_EQ(BigQuery("f(body, [\"driver's fault\", 'other\\'s'])"),
            "f(body, ['driver''s fault', 'other''s'])");
}

// Case 82: the announcement's first query.
TEST(Translation, Bug82DoubleQuotedPromptExplainsItself) {
  const std::string_view text =
      "SELECT * FROM customers JOIN products ON "
      "AI.IF(PROMPT(\"{customers.profile} might buy this: {products.description}\"))";
  EXPECT_TRUE(Contains(BigQuery(text),
                       "PROMPT('{0} might buy this: {1}', "
                       "\"customers\".\"profile\", \"products\".\"description\")"));
  const Failure failure = FailureOf(text, Dialect::kSnowflake);
  EXPECT_EQ(failure.offset, text.find('"'));
  EXPECT_TRUE(
      Contains(failure.message,
               "PROMPT('{0} might buy this: {1}', customers.profile, products.description)"))
      << failure.message;
}

TEST(Translation, EveryOutputByteLeadsToItsPlace) {
  const std::string_view text = "SELECT /* c */ `a.b` # d\n, AI.IF((\"it's\", body)) AS z";
  const Translation out = Read(text, Dialect::kBigQuery);
  EXPECT_EQ(out.sql, "SELECT   \"a\".\"b\"  \n, ai_if(('it''s', body)) AS z");
  for (const std::string_view word : {"SELECT", "body", "AS z", ")) AS"}) {
    EXPECT_EQ(out.map.ToInput(out.sql.find(word)), text.find(word)) << word;
  }
  EXPECT_EQ(out.map.ToInput(out.sql.find("ai_if") + 3), text.find("AI.IF"));
  EXPECT_EQ(out.map.ToInput(out.sql.find("s', body")), text.find("\"it's"));
}

}  // namespace
}  // namespace quail::sql
