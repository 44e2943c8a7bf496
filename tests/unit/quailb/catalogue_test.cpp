#include "quailb/catalogue.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "quail/error.h"
#include "quailb/suite_files.h"
#include "test_paths.h"

namespace quail::quailb {
namespace {

const std::string kFolder = QUAIL_SOURCE_DIR "/bench/quailb/";

std::string FileText(std::string_view name) {
  std::ifstream file(kFolder + "queries/" + std::string(name) + ".sql");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t CountOf(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Catalogue, HasAFileForEachOfThe31Queries) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "queries")) {
    files.insert(entry.path().stem().string());
  }
  std::set<std::string> names;
  for (const Query& query : Queries()) names.emplace(query.name);
  EXPECT_EQ(names.size(), 31U);
  EXPECT_EQ(files, names);
  for (const std::string& name : names) EXPECT_EQ(QueryText(name), FileText(name)) << name;
  EXPECT_EQ(QueryText("IMDB-11"), "");
}

/// A query's file asks the questions of its shape, each as often, and no others.
TEST(Catalogue, ShapesAgreeWithTheFiles) {
  for (const Query& query : Queries()) {
    std::multiset<std::string_view> asked;
    for (const QueryTable& table : query.tables) {
      asked.insert(table.filters.begin(), table.filters.end());
    }
    for (const QueryJoin& join : query.joins) asked.insert(join.question);
    const std::string text = FileText(query.name);
    EXPECT_EQ(CountOf(text, "AI_FILTER"), asked.size()) << query.name;
    EXPECT_EQ(CountOf(text, "JOIN ") + 1, query.tables.size()) << query.name;
    for (const Question& question : Questions()) {
      EXPECT_EQ(CountOf(text, "'" + std::string(question.text) + "'"), asked.count(question.name))
          << query.name << " " << question.name;
    }
    EXPECT_EQ(CountOf(text, "evidence_wiki_url"), query.name == "FEV-10" ? 1U : 0U);
  }
}

TEST(Catalogue, JoinsNameTheTablesOfTheirQuestion) {
  for (const Query& query : Queries()) {
    for (const QueryJoin& join : query.joins) {
      const Question& question = FindQuestion(join.question);
      EXPECT_EQ(query.tables[join.anchor].table, question.document) << query.name;
      EXPECT_EQ(query.tables[join.partner].table, question.partner) << query.name;
    }
  }
}

TEST(Catalogue, EveryQuestionHasAHint) {
  const Hints hints = ReadHints(HintsText());
  EXPECT_EQ(hints.size(), Questions().size());
  for (const Question& question : Questions()) {
    EXPECT_TRUE(hints.contains(question.name)) << question.name;
  }
}

TEST(Catalogue, RefusesUnknownNames) {
  EXPECT_THROW(FindQuery("IMDB-11"), Error);
  EXPECT_THROW(FindQuestion("F2"), Error);
  EXPECT_THROW(ReadHints("{\"F1\": \"often\"}"), Error);
  EXPECT_THROW(ReadHints("F1 0.8"), Error);
}

}  // namespace
}  // namespace quail::quailb
