#include "plan/binder.h"

#include <algorithm>

#include "engine.h"
#include "plan/guards.h"

namespace quail::plan {
namespace {

class BinderTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    Run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'red', 'ann', 5), (2, 'blue', 'bob', 9), "
        "(3, NULL, 'cy', 1), (4, 'red', 'dan', 7)) v(id, body, author, price)");
    Run("CREATE TABLE a AS SELECT * FROM (VALUES (1, 'x', 'p'), (2, 'y', 'p'), (3, 'x', 'q')) "
        "v(id, x, k)");
    Run("CREATE TABLE b AS SELECT * FROM (VALUES (10, 'u', 'p'), (11, 'v', 'r')) v(bid, y, k)");
    Run("CREATE TABLE empty AS SELECT * FROM t WHERE FALSE");
    Run("CREATE TABLE ids AS SELECT 1 AS id, {'tokens': [3, 4]::INTEGER[]} AS doc, "
        "[5]::INTEGER[] AS list");
    verdicts_ = {{"red", true}, {"blue", false}, {"x,u", true}, {"y,u", false}, {"x,v", true}};
  }

  void ExpectError(const std::string& sql, ErrorCode code, std::string_view at,
                   std::string_view says, Dialect dialect = Dialect::kSnowflake) {
    const Error error = BindError(sql, dialect);
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << sql << "\n"
                                                                      << error.what();
    ASSERT_TRUE(error.position()) << sql << "\n" << error.what();
    EXPECT_EQ(error.position()->offset, sql.find(at)) << sql << "\n" << error.what();
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
};

TEST_F(BinderTest, AFilterKeepsOrdinaryConditionsInItsRelation) {
  const LogicalPlan plan = Bind(
      "SELECT id FROM t WHERE AI_FILTER(PROMPT('Nice? {0}', body)) AND price > 2 ORDER BY id LIMIT "
      "1");
  ASSERT_EQ(plan.calls.size(), 1U);
  EXPECT_EQ(plan.calls[0].prompt, "Nice? {0}");
  EXPECT_EQ(plan.calls[0].function, "AI_FILTER");
  ASSERT_EQ(plan.calls[0].arguments.size(), 1U);
  EXPECT_EQ(plan.calls[0].arguments[0].sql, "body");
  ASSERT_EQ(plan.ai_conjuncts.size(), 1U);
  EXPECT_TRUE(plan.ai_conjuncts[0].is_call);
  EXPECT_NE(plan.relations[0].create_sql.find("price > 2"), std::string::npos);
  EXPECT_EQ(plan.final_sql.find("price"), std::string::npos) << plan.final_sql;
  EXPECT_TRUE(plan.limits.empty()) << "ORDER BY needs all rows";
  EXPECT_EQ(RowsOf(plan), "1\n");
}

TEST_F(BinderTest, StarShowsTheUsersColumnsOnly) {
  EXPECT_EQ(RowsOf(Bind("SELECT * FROM t WHERE AI_FILTER(body) ORDER BY id")),
            "1|red|ann|5\n4|red|dan|7\n");
  EXPECT_EQ(RowsOf(Bind("FROM t WHERE NOT AI_FILTER(body)")), "2|blue|bob|9\n");
  EXPECT_EQ(RowsOf(Bind("SELECT b.*, a.id FROM a JOIN b USING (k) WHERE "
                        "AI_FILTER(PROMPT('{0} {1}', x, y))")),
            "10|u|p|1\n");
  EXPECT_EQ(RowsOf(Bind("SELECT * FROM a NATURAL JOIN b WHERE AI_FILTER(PROMPT('{0} {1}', x, y))")),
            "1|x|p|10|u\n");
  EXPECT_EQ(
      RowsOf(Bind("SELECT * EXCLUDE (one) FROM a SEMI JOIN b ON AI_FILTER(PROMPT('{0} {1}', x, y)) "
                  "CROSS JOIN (SELECT 1 AS one) o ORDER BY id")),
      "1|x|p\n3|x|q\n");
}

TEST_F(BinderTest, JoinsRestrictTheirRelationsFirst) {
  const LogicalPlan plan = Bind(
      "SELECT a.id, bid FROM a JOIN b ON a.k = b.k AND AI_FILTER(PROMPT('{0} {1}', a.x, b.y)) "
      "WHERE a.id > 0");
  ASSERT_EQ(plan.relational_conjuncts.size(), 1U);
  EXPECT_EQ(plan.relational_conjuncts[0].relations.size(), 2U);
  EXPECT_EQ(plan.reduction_sql.size(), 2U);
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM " + plan.relations[0].table), "2\n") << "a.k = 'q' is gone";
  EXPECT_EQ(Rows("SELECT count(*) FROM " + plan.relations[1].table), "1\n");
  EXPECT_EQ(Rows(plan.final_sql), "1|10\n");
  Drop(plan);
}

TEST_F(BinderTest, AJoinPredicateIsATableOfPairs) {
  verdicts_["x,u"] = true;
  verdicts_["x,v"] = false;
  const std::string call = "AI_FILTER(PROMPT('{0} {1}', a.x, b.y))";
  const LogicalPlan plan = Bind("SELECT * FROM a JOIN b ON " + call + " ORDER BY a.id");
  ASSERT_EQ(plan.ai_conjuncts.size(), 1U);
  ASSERT_TRUE(plan.ai_conjuncts[0].pairs);
  EXPECT_EQ(plan.ai_conjuncts[0].pairs->columns.size(), 2U);
  EXPECT_EQ(plan.final_sql.find("quail_verdict"), std::string::npos) << plan.final_sql;
  EXPECT_EQ(RowsOf(plan), "1|x|p|10|u|p\n3|x|q|10|u|p\n");
  // What is more than a call, or of one side, stays a lookup.
  for (const std::string& term :
       {"(" + call + " OR a.id = 2)", std::string("AI_FILTER(PROMPT('{0} {0}', a.x))")}) {
    const LogicalPlan other = Bind("SELECT * FROM a CROSS JOIN b WHERE " + term);
    ASSERT_EQ(other.ai_conjuncts.size(), 1U);
    EXPECT_FALSE(other.ai_conjuncts[0].pairs) << term;
  }
  EXPECT_FALSE(Bind("SELECT * FROM a CROSS JOIN b WHERE " + call + " USING SAMPLE 100%")
                   .ai_conjuncts[0]
                   .pairs)
      << "a sample is drawn from the rows of FROM";
}

TEST_F(BinderTest, NothingIsAskedBesideAnEmptyTable) {
  const LogicalPlan plan = Bind("SELECT 1 FROM t, empty WHERE AI_FILTER(t.body)");
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM " + plan.relations[0].table), "0\n");
  Drop(plan);
}

TEST_F(BinderTest, PromptsHaveOneCanonicalForm) {
  const auto form = [&](const std::string& call, Dialect dialect = Dialect::kSnowflake) {
    const LogicalPlan plan = Bind("SELECT id FROM t WHERE " + call, dialect);
    std::string out = plan.calls.at(0).prompt;
    for (const Argument& argument : plan.calls[0].arguments) out += " | " + argument.sql;
    return out;
  };
  EXPECT_EQ(form("AI_FILTER(PROMPT('{1} {0} {1}', body, author))"), "{1} {0} {1} | body | author");
  EXPECT_EQ(form("AI_FILTER(PROMPT('{1}?', body, author))"), "{0}? | author");
  EXPECT_EQ(form("AI_FILTER('Good? ' || body || ' by {' || upper(author))"),
            "Good? {0} by {{{1} | body | upper(author)");
  EXPECT_EQ(form("AI_FILTER(CONCAT('a', body, 3))"), "a{0}3 | body");
  EXPECT_EQ(form("AI_FILTER(body)"), "{0} | body");
  EXPECT_EQ(form("AI_FILTER('wet {0}?')"), "wet {{0}}?");
  EXPECT_EQ(form("AI_FILTER(PROMPT('{{0}} {\"a\": {0}} {01}', body))"),
            "{{0}} {\"a\": {0}} {01} | body");
  EXPECT_EQ(form("AI_FILTER(PROMPT('{0} {1}', body, 'c'))"), "{0} {1} | body | 'c'");
  EXPECT_EQ(form("AI.IF(('Good? ', body, ' by ', upper(author)))", Dialect::kBigQuery),
            "Good? {0} by {1} | body | upper(author)");
  EXPECT_EQ(form("AI.IF(PROMPT(\"{body} by {t.author}?\"))", Dialect::kBigQuery).substr(0, 12),
            "{0} by {1}? ");
}

// Case 5: one parenthesis is no tuple; STRUCT and tuples are concatenations, aliases ignored.
TEST_F(BinderTest, Bug5StructAndTuplePrompts) {
  const auto form = [&](const std::string& call) {
    return Bind("SELECT id FROM t WHERE " + call, Dialect::kBigQuery).calls.at(0).prompt;
  };
  EXPECT_EQ(form("AI.IF((body))"), "{0}");
  EXPECT_EQ(form("AI.IF((body, '?'))"), "{0}?");
  EXPECT_EQ(form("AI.IF(STRUCT(body AS d, '?' AS q))"), "{0}?");
}

// Case 4: fields of calls, and calls that are only known.
TEST_F(BinderTest, Bug4FieldAccessOnACall) {
  const LogicalPlan plan = Bind(
      "SELECT AI_FILTER(body, TRUE):value::BOOLEAN AS v, "
      "AI_FILTER(body, return_error_details => TRUE):error AS e FROM t");
  EXPECT_EQ(plan.calls.size(), 1U);
  EXPECT_TRUE(plan.calls[0].options.return_error_details);
  EXPECT_EQ(RowsOf(plan), "true|-\nfalse|-\n-|-\ntrue|-\n");
}

// Case 8: exact types of an empty result.
TEST_F(BinderTest, Bug8TypesAreExactWithoutRows) {
  const LogicalPlan plan = Bind(
      "DESCRIBE SELECT AI_FILTER(body), AI_PROB(body), AI_FILTER(body), "
      "AI_FILTER(body, TRUE) AS d, AI_COUNT_TOKENS(body) AS n FROM t");
  EXPECT_TRUE(plan.computed.empty());
  const std::string rows = RowsOf(plan);
  EXPECT_NE(rows.find("ai_filter|BOOLEAN|"), std::string::npos) << rows;
  EXPECT_NE(rows.find("ai_prob|DOUBLE|"), std::string::npos) << rows;
  EXPECT_NE(rows.find("ai_filter_1|BOOLEAN|"), std::string::npos) << rows;
  EXPECT_NE(rows.find("d|STRUCT(\"value\" BOOLEAN, \"error\" VARCHAR)|"), std::string::npos)
      << rows;
  EXPECT_NE(rows.find("n|INTEGER|"), std::string::npos) << rows;
}

// Case 10: a prompt without a column is one question, with a notice.
TEST_F(BinderTest, Bug10AConstantPromptIsAskedOnce) {
  const LogicalPlan plan = Bind("SELECT id FROM t WHERE AI_FILTER('Is water wet?')");
  ASSERT_EQ(plan.calls.size(), 1U);
  EXPECT_TRUE(plan.calls[0].arguments.empty());
  ASSERT_EQ(plan.notices.size(), 1U);
  EXPECT_NE(plan.notices[0].find("no column"), std::string::npos);
  ASSERT_EQ(plan.computed.size(), 1U);
}

// Case 20: half-bound templates.
TEST_F(BinderTest, Bug20SlotsWithoutAnExpression) {
  ExpectError("SELECT id FROM t WHERE AI_FILTER(PROMPT('ok? {1}', body))", ErrorCode::kBind,
              "'ok? {1}'", "no expression for {1}");
  EXPECT_EQ(Bind("SELECT id FROM t WHERE AI_FILTER(PROMPT('ok?', body))").notices.size(), 1U);
  EXPECT_EQ(Bind("SELECT id FROM t WHERE AI_FILTER(PROMPT('{0} {0}', body))").calls[0].prompt,
            "{0} {0}");
  EXPECT_TRUE(
      Bind("SELECT id FROM t WHERE AI_FILTER(PROMPT('{{0}}', body))").calls[0].arguments.empty());
}

// Case 82: the announcement's query, in the dialect that has texts in double quotes.
TEST_F(BinderTest, Bug82NamedSlotsAreResolved) {
  const std::string join = "SELECT a.id, bid FROM a JOIN b ON ";
  const LogicalPlan plan =
      Bind(join + "AI.IF(PROMPT(\"{a.x} {y}\")) ORDER BY ALL", Dialect::kBigQuery);
  EXPECT_EQ(plan.calls[0].prompt, "{0} {1}");
  EXPECT_EQ(RowsOf(plan), "1|10\n1|11\n3|10\n3|11\n");
  ExpectError(join + "AI.IF(PROMPT(\"{a.x} {b.z}\"))", ErrorCode::kBind, "b.z", "no column z",
              Dialect::kBigQuery);
  ExpectError(join + "AI.IF(PROMPT(\"{a.x} {k}\"))", ErrorCode::kBind, "k}", "ambiguous",
              Dialect::kBigQuery);
}

TEST_F(BinderTest, OrdinaryTermsGuardTheCalls) {
  const LogicalPlan plan = Bind(
      "SELECT id FROM t WHERE AI_FILTER(body) OR price > 6 OR "
      "AI_FILTER(author)");
  ASSERT_EQ(plan.ai_conjuncts.size(), 1U);
  const auto& calls = plan.ai_conjuncts[0].calls;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NE(ConditionSql(calls[0].guard).find("price > 6"), std::string::npos);
  EXPECT_EQ(ConditionSql(calls[0].guard).find("quail_verdict"), std::string::npos);
  EXPECT_NE(ConditionSql(calls[1].guard).find("quail_verdict(0"), std::string::npos);
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM " + plan.relations[0].table + " AS t WHERE " +
                 ConditionSql(calls[0].guard)),
            "2\n");
  EXPECT_EQ(Rows(plan.final_sql), "1\n2\n4\n");
  Drop(plan);
}

TEST_F(BinderTest, ANameOfWithMeansTheNearestThatIsKnown) {
  EXPECT_EQ(
      RowsOf(Bind("WITH t AS (SELECT id + 10 AS id, body FROM t), u AS (SELECT * FROM t WHERE "
                  "AI_FILTER(t.body)) SELECT id FROM u ORDER BY id")),
      "11\n14\n");
  EXPECT_EQ(
      RowsOf(Bind("WITH u AS (SELECT 7 AS id, 'red' AS body) SELECT id FROM (WITH u AS (SELECT "
                  "id + 1 AS id, body FROM u) SELECT u.* FROM u WHERE AI_FILTER(body))")),
      "8\n");
  EXPECT_EQ(RowsOf(Bind("WITH v AS (SELECT * FROM t WHERE AI_FILTER(body)), t AS (SELECT 5 AS id) "
                        "SELECT v.id, t.id FROM v, t ORDER BY ALL")),
            "1|5\n4|5\n");
}

TEST_F(BinderTest, CaseAsksWhereItsBranchIsReached) {
  const LogicalPlan plan = Bind(
      "SELECT id, CASE WHEN price > 5 THEN 'dear' WHEN AI_FILTER(body) THEN 'P' ELSE 'N' END s "
      "FROM t");
  ASSERT_EQ(plan.computed.size(), 1U);
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM (" + plan.computed[0].domain_sql + ")"), "2\n");
  EXPECT_EQ(Rows(plan.final_sql), "1|P\n2|dear\n3|N\n4|dear\n");
  Drop(plan);
}

TEST_F(BinderTest, OuterJoinsKeepTheirRows) {
  const LogicalPlan plan = Bind(
      "SELECT a.id, bid FROM a LEFT JOIN b ON AI_FILTER(PROMPT('{0} {1}', a.x, b.y)) AND a.k = b.k "
      "ORDER BY a.id");
  EXPECT_TRUE(plan.ai_conjuncts.empty());
  ASSERT_EQ(plan.computed.size(), 1U);
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM (" + plan.computed[0].domain_sql + ")"), "2\n");
  EXPECT_EQ(Rows(plan.final_sql), "1|10\n2|-\n3|-\n");
  Drop(plan);
}

TEST_F(BinderTest, SqlAroundTheCallsIsTheEngines) {
  EXPECT_EQ(RowsOf(Bind("SELECT v, count(*) FROM (SELECT AI_FILTER(body) AS v FROM t WHERE id < 4) "
                        "GROUP BY ALL ORDER BY ALL")),
            "false|1\ntrue|1\n-|1\n");
  EXPECT_EQ(
      RowsOf(Bind("WITH c AS (SELECT * FROM t WHERE id > 1) SELECT k, count(*) AS n FROM c JOIN "
                  "a USING (id) WHERE AI_FILTER(body) OR price = 9 GROUP BY k ORDER BY n DESC")),
      "p|1\n");
  EXPECT_EQ(RowsOf(Bind("SELECT id FROM t WHERE AI_FILTER(body) UNION ALL SELECT id FROM a WHERE "
                        "AI_FILTER(x || 'z') IS NULL ORDER BY ALL")),
            "1\n1\n2\n3\n4\n");
  EXPECT_EQ(RowsOf(Bind(
                "SELECT id FROM a WHERE (id IN (SELECT id FROM t WHERE AI_FILTER(body))) IS TRUE")),
            "1\n");
  EXPECT_EQ(RowsOf(Bind("SELECT sum(CASE WHEN AI_FILTER(body) THEN 1 ELSE 0 END) FROM t")), "2\n");
  EXPECT_EQ(RowsOf(Bind("SELECT id FROM t WHERE AI_PROB(body) > 0.5 ORDER BY id DESC")), "4\n1\n");
  EXPECT_EQ(RowsOf(Bind("SELECT AI_FILTER(body) AS v, id FROM t WHERE v ORDER BY id")),
            "true|1\ntrue|4\n");
}

TEST_F(BinderTest, StatementsAroundAQueryStay) {
  RowsOf(Bind("CREATE TABLE kept AS SELECT id FROM t WHERE AI_FILTER(body)"));
  EXPECT_EQ(Rows("SELECT id FROM kept ORDER BY id"), "1\n4\n");
  RowsOf(Bind("INSERT INTO kept SELECT id + 10 FROM t WHERE NOT AI_FILTER(body)"));
  EXPECT_EQ(Rows("SELECT max(id) FROM kept"), "12\n");
}

TEST_F(BinderTest, LimitsCountOnlyWhatTheTermsDecide) {
  const auto rows = [this](const char* sql) { return Bind(sql).limits.at(0).rows; };
  EXPECT_EQ(rows("SELECT id FROM t WHERE AI_FILTER(body) LIMIT 2 OFFSET 1"), 3U);
  EXPECT_EQ(rows("SELECT left(body, 2) FROM t WHERE AI_FILTER(body) LIMIT 2"), 2U);
  EXPECT_EQ(rows("SELECT AI_FILTER(author) FROM t WHERE AI_FILTER(body) LIMIT 1"), 1U);
  EXPECT_EQ(rows("SELECT id FROM (SELECT * FROM t WHERE AI_FILTER(body) LIMIT 4)"), 4U);
  for (const char* sql :
       {"SELECT count(*) FROM t WHERE AI_FILTER(body) LIMIT 1",
        "SELECT DISTINCT id FROM t WHERE AI_FILTER(body) LIMIT 1",
        "SELECT id FROM t WHERE AI_FILTER(body) ORDER BY id LIMIT 1",
        "SELECT quantile_cont(id, 0.5) FROM t WHERE AI_FILTER(body) LIMIT 1",
        "SELECT a.id FROM a ANTI JOIN b ON a.k = b.k WHERE AI_FILTER(x) LIMIT 1"}) {
    EXPECT_TRUE(Bind(sql).limits.empty()) << sql;
  }
}

TEST_F(BinderTest, EqualCallsAreOne) {
  const LogicalPlan plan = Bind(
      "SELECT AI_FILTER(body) FROM t WHERE AI_FILTER(body) AND "
      "AI_FILTER('' || body) AND AI_FILTER(author)");
  EXPECT_EQ(plan.calls.size(), 2U);
  EXPECT_EQ(plan.relations[0].id_columns.size(), 2U);
}

TEST_F(BinderTest, TokenColumnsAreKeyedByTheirIds) {
  const LogicalPlan plan = Bind("SELECT id FROM ids WHERE AI_FILTER(PROMPT('q {0}', doc))");
  EXPECT_NE(plan.relations[0].create_sql.find("quail_token_list_id(struct_extract(doc, 'tokens'))"),
            std::string::npos);
  EXPECT_TRUE(plan.calls[0].arguments[0].tokens);
  // The type goes through subqueries.
  EXPECT_TRUE(Bind("SELECT id FROM (SELECT doc AS d, id FROM ids) s WHERE AI_FILTER(s.d)")
                  .calls[0]
                  .arguments[0]
                  .tokens);
  // A list that is not declared is an argument like any other: cast to text.
  const LogicalPlan list = Bind("SELECT id FROM ids WHERE AI_FILTER(PROMPT('q {0}', list))");
  EXPECT_NE(list.relations[0].create_sql.find("quail_text_id(CAST(list AS VARCHAR))"),
            std::string::npos);
  EXPECT_FALSE(list.calls[0].arguments[0].tokens);
}

TEST_F(BinderTest, TokenColumnsStandInNoTextExpression) {
  const std::string_view says = "holds token ids (TOKENS)";
  ExpectError("SELECT id FROM ids WHERE AI_FILTER(PROMPT('q {0}', upper(ids.doc)))",
              ErrorCode::kBind, "ids.doc", says);
  ExpectError("SELECT id FROM ids WHERE AI_FILTER(PROMPT('q {0}', CAST(doc AS VARCHAR)))",
              ErrorCode::kBind, "doc", says);
  ExpectError("SELECT id FROM ids WHERE AI_FILTER(PROMPT('q {0}', doc.tokens))", ErrorCode::kBind,
              "doc.tokens", says);
}

TEST_F(BinderTest, OptionsAreReadAndChecked) {
  const Call call =
      Bind(
          "SELECT a.id FROM a JOIN b ON AI_FILTER(PROMPT('{0} {1}', x, y), {'selectivity': 0.25, "
          "'anchor': 'b', 'threshold': 0.5, 'on_long': 'head'}, max_error_ratio => 0.1)")
          .calls[0];
  EXPECT_EQ(call.options.selectivity, 0.25);
  EXPECT_EQ(call.options.anchor, "b");
  EXPECT_EQ(call.options.threshold, 0.5);
  EXPECT_EQ(call.options.max_error_ratio, 0.1);
  EXPECT_EQ(static_cast<int>(call.options.on_long), static_cast<int>(OnLong::kHead));
  const std::string head = "SELECT id FROM t WHERE AI_FILTER(body, ";
  ExpectError(head + "{'selectivty': 0.3})", ErrorCode::kBind, "0.3", "unknown option selectivty");
  ExpectError(head + "{'selectivity': 1.5})", ErrorCode::kBind, "1.5", "from 0 to 1");
  ExpectError(head + "{'on_long': 'cut'})", ErrorCode::kBind, "'cut'", "on_long");
  ExpectError(head + "nonsense => 1)", ErrorCode::kBind, "1)", "no argument nonsense");
  ExpectError(head + "examples => 7)", ErrorCode::kUnsupported, "7)", "not supported yet");
  ExpectError(head + "author)", ErrorCode::kBind, "author", "files are not supported");
  ExpectError("SELECT id FROM t WHERE AI_FILTER(body, {'anchor': 'zz'})", ErrorCode::kBind,
              "AI_FILTER", "'zz'");
  EXPECT_EQ(Bind("SELECT id FROM t WHERE AI_FILTER(body, endpoint => 'x', connection_id => 'y')")
                .notices.size(),
            2U);
}

TEST_F(BinderTest, ErrorsStandAtTheUsersText) {
  ExpectError("SELECT id FROM t WHERE /* c */ AI_FILTER(PROMPT('it''s {0}', boddy))",
              ErrorCode::kBind, "boddy", "unknown column boddy");
  ExpectError("SELECT a.id FROM a, b WHERE AI_FILTER(k)", ErrorCode::kBind, "k)", "ambiguous");
  ExpectError("SELECT id FROM t WHERE AI_FILTER(\"Is it nice?\")", ErrorCode::kBind,
              "\"Is it nice?\"", "'..'");
  // What the engine finds: in a part that is ours to print again, its places still hold.
  ExpectError("SELECT 'a\\'b' AS s, nope FROM t WHERE AI_FILTER(body)", ErrorCode::kBind, "nope",
              "nope");
  ExpectError("SELECT 'a\\'b' AS s FROM t WHERE AI_FILTER(body) ORDER 5", ErrorCode::kSyntax, "5",
              "syntax error");
  ExpectError("SELECT id FROM nowhere WHERE AI_FILTER(body)", ErrorCode::kBind, "nowhere",
              "nowhere");
}

TEST_F(BinderTest, WhatOnlyTheEngineCanTellIsAskedOnDemand) {
  for (const char* sql :
       {"SELECT id FROM (SELECT * FROM t WHERE AI_FILTER(body)) WHERE AI_FILTER(author)",
        "SELECT 1 FROM a, b, t WHERE AI_FILTER(PROMPT('{0}{1}{2}', x, y, body))",
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE AI_FILTER(PROMPT('{0} {1}', a.x, "
        "b.y)))",
        "SELECT AI_FILTER(max(body)) FROM t", "SELECT k, AI_FILTER(k) FROM a GROUP BY k",
        "SELECT id FROM t WHERE AI_FILTER(PROMPT('{0}', AI_FILTER(body)))",
        "SELECT 1 FROM a, b WHERE AI_FILTER(lower(x || y))"}) {
    const LogicalPlan plan = Bind(sql);
    const auto on_demand = std::count_if(plan.calls.begin(), plan.calls.end(),
                                         [](const Call& c) { return c.on_demand; });
    EXPECT_EQ(on_demand, 1) << sql;
    EXPECT_NE(plan.on_demand_sql, "") << sql;
    EXPECT_EQ(plan.final_sql, "SELECT * FROM quail_kept") << sql;
  }
}

/// `count` times `part`, # in it numbered.
std::string Repeated(int count, const std::string& part) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (const char c : part) text += c == '#' ? std::to_string(100 + i) : std::string(1, c);
  }
  return text;
}

std::size_t SqlSizeOf(const LogicalPlan& plan) {
  std::size_t size = plan.on_demand_sql.size();
  for (const ComputedCall& computed : plan.computed) {
    size += computed.domain_sql.size() + computed.open_rows_sql.size();
  }
  return size;
}

TEST_F(BinderTest, TheStatementsOfALongChainGrowWithItsLength) {
  const std::string call = "AI_FILTER(PROMPT('q# {0}', body))";
  const std::string on_group = "AI_FILTER(PROMPT('q# {0}', max(body)))";
  const auto chain = [](const std::string& head, const std::string& part, const std::string& end) {
    return [=](int count) { return head + Repeated(count, part) + end; };
  };
  for (const auto& sql :
       {chain("SELECT CASE", " WHEN " + call + " THEN #", " END FROM t"),
        chain("SELECT COALESCE(NULL", ", nullif(" + call + ", FALSE)", ") FROM t"),
        chain("SELECT 1 FROM a LEFT JOIN t ON FALSE", " OR " + call, ""),
        chain("SELECT 1 FROM t GROUP BY id HAVING TRUE", " AND " + on_group, ""),
        chain("SELECT 1 FROM t GROUP BY id HAVING FALSE", " OR " + on_group, ""),
        chain("SELECT FALSE", " OR " + on_group, " FROM t"),
        chain("SELECT CASE", " WHEN " + on_group + " THEN #", " END FROM t"),
        chain("SELECT COALESCE(NULL", ", nullif(" + on_group + ", FALSE)", ") FROM t")}) {
    const std::size_t size = SqlSizeOf(Bind(sql(30)));
    EXPECT_LT(SqlSizeOf(Bind(sql(60))), size * 5 / 2) << sql(2);
  }
}

TEST_F(BinderTest, CallsBetweenTwoSidesOnDemandHaveAnAnchor) {
  const std::string head =
      "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE AI_FILTER(PROMPT('{1} {0}', a.x, b.y)";
  EXPECT_EQ(Bind(head + "))").calls[0].on_demand_anchor, (std::vector<bool>{true, false}));
  EXPECT_EQ(Bind(head + ", {'anchor': 'b'}))").calls[0].on_demand_anchor,
            (std::vector<bool>{false, true}));
  ExpectError(head + ", {'anchor': 'c'}))", ErrorCode::kBind, "AI_FILTER", "'c'");
}

TEST_F(BinderTest, TheSelectListUnderLimitIsAskedAboutTheRowsThatAreLeft) {
  const LogicalPlan plan =
      Bind("SELECT id, AI_FILTER(body) AS v FROM t ORDER BY id DESC LIMIT 2 OFFSET 1");
  ASSERT_EQ(plan.computed.size(), 1U);
  EXPECT_TRUE(plan.computed[0].after_limit);
  Make(plan);
  EXPECT_EQ(Rows("SELECT count(*) FROM (" + plan.computed[0].domain_sql + ")"), "2\n");
  Drop(plan);
  EXPECT_FALSE(
      Bind("SELECT AI_FILTER(body) AS v FROM t ORDER BY v LIMIT 2").computed[0].after_limit);
}

}  // namespace
}  // namespace quail::plan
