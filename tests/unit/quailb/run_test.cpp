#include "quailb/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "file_size_limit.h"
#include "quail/error.h"
#include "quailb/generate.h"
#include "quailb/published_count.h"
#include "quailb/suite_files.h"

namespace quail::quailb {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The suite at scale 0.01, written once, and a folder for results.
class SuiteRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("quailb_run_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    GenerateOptions generate;
    generate.scale = "0.01";
    generate.output = (folder_ / "data").string();
    GenerateSuite(generate);
    const Corpus corpus = MakeCorpus(1, Scale::k001);
    data_ = std::make_unique<SuiteData>(MakeSuiteData(corpus));
    flow_ = std::make_unique<Answers>(PlantFlow4b(corpus));
    truth_ = std::make_unique<Answers>(PlantTruth(corpus));
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_ / "out"); }

  static SuiteRunOptions Options() {
    SuiteRunOptions options;
    options.data = (folder_ / "data").string();
    options.scale = "0.01";
    options.output = (folder_ / "out").string();
    options.config.model = "qwen3-4b-fp8";
    options.config.random_weights = true;
    options.config.backend = "counting";
    return options;
  }
  static Json ResultOf(std::string_view query) {
    std::ifstream file(folder_ / "out" / (std::string(query) + ".json"));
    return Json::parse(file);
  }
  static std::string TextOf(const std::string& name) {
    std::ifstream file(folder_ / "out" / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static TokenCount Count(const Query& query, const Answers& answers, PromptLayout layout) {
    return CountTokens(query, *data_, answers, ReadHints(HintsText()), layout);
  }
  static void ExpectError(const SuiteRunOptions& options, ErrorCode code, std::string_view says) {
    try {
      RunSuite(options);
      ADD_FAILURE() << "no error; expected: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }

  static inline fs::path folder_;
  static inline std::unique_ptr<SuiteData> data_;
  static inline std::unique_ptr<Answers> flow_;
  static inline std::unique_ptr<Answers> truth_;
};

/// Queries that scan no table twice: their counts are those of the published accounting, in which
/// every scan is paid for.
bool ScansOnce(const Query& query) {
  return query.tables.size() == 1 || (query.joins.size() == 1 && query.tables.size() == 2);
}

/// Of the smaller table of any join at this scale.
constexpr std::uint64_t kMostRows = 50;

/// Queries that wait for no answer of another step: nothing is computed twice.
bool IsOneStep(const Query& query) {
  return query.tables.size() == 1 || (query.joins.size() == 1 && query.tables[0].filters.empty() &&
                                      query.tables[1].filters.empty());
}

TEST_F(SuiteRunTest, CountsAreThoseOfTheTablesAlone) {
  for (const char* layout : {"published", "own"}) {
    SuiteRunOptions options = Options();
    options.layout = layout;
    options.output = (folder_ / "out").string();
    RunSuite(options);
    for (const Query& query : Queries()) {
      SCOPED_TRACE(std::string(query.name) + " " + layout);
      const Json result = ResultOf(query.name);
      EXPECT_EQ(result["planted_answers"], "flow4b");
      EXPECT_EQ(result["tokens"]["minimum"], result["tokens"]["sorted_minimum"]);
      EXPECT_EQ(result["calls"]["error"], 0);
      if (!ScansOnce(query)) continue;
      const bool published = options.layout == "published";
      const TokenCount count =
          Count(query, *flow_, published ? PromptLayout::kPublished : PromptLayout::kOwn);
      EXPECT_EQ(result["calls"]["distinct"], count.calls);
      EXPECT_EQ(result["tokens"]["requested"], count.requested);
      if (!published) continue;
      const auto minimum = result["tokens"]["minimum"].get<std::uint64_t>();
      // Rows of the same number in two tables begin with the same id: a forest finds that.
      EXPECT_LE(minimum, count.fresh);
      EXPECT_GE(minimum + (IsOneStep(query) ? 0 : kMostRows), count.fresh);
      if (IsOneStep(query)) {
        EXPECT_EQ(result["tokens"]["fresh"], count.fresh);
      }
    }
    fs::remove_all(folder_ / "out");
  }
}

/// Tokens that were run beyond the minimum, as a share of it, over these queries.
struct RegretBound {
  const char* name;
  std::uint64_t kv_tokens;
  std::int32_t chunk_tokens;
  const char* radix;
  std::vector<std::string> only;  ///< empty: all
  double most;
};

class RegretTest : public SuiteRunTest, public testing::WithParamInterface<RegretBound> {};

TEST_P(RegretTest, IsBounded) {
  const RegretBound& bound = GetParam();
  SuiteRunOptions options = Options();
  options.only = bound.only;
  options.config.kv_tokens = bound.kv_tokens;
  options.config.chunk_tokens = bound.chunk_tokens;
  options.config.radix = bound.radix;
  RunSuite(options);
  std::size_t queries = 0;
  for (const Query& query : Queries()) {
    if (!fs::exists(folder_ / "out" / (std::string(query.name) + ".json"))) continue;
    ++queries;
    const Json tokens = ResultOf(query.name)["tokens"];
    EXPECT_LE(tokens["regret"].get<double>(), bound.most * tokens["minimum"].get<double>())
        << query.name;
  }
  EXPECT_EQ(queries, bound.only.empty() ? Queries().size() : bound.only.size());
}

/// The published budget is 362,250 positions at scale 0.1, with chunks of 32,768 tokens; two
/// trajectories have at most 48,000 tokens.
const std::vector<std::string> kBounded = {"IMDB-3", "FEV-9", "BIO-4"};
INSTANTIATE_TEST_SUITE_P(
    Budgets, RegretTest,
    testing::Values(RegretBound{"AllSharedNoneEvicted", 100'000'000, 0, "always", {}, 0},
                    RegretBound{"NoneEvicted", 100'000'000, 0, "pays", {}, 0.005},
                    RegretBound{"PublishedBudget", 36'225, 3277, "pays", kBounded, 0.05},
                    RegretBound{
                        "TwoTrajectories", 48'000, 8192, "pays", {"AGENT-1", "AGENT-2"}, 0.02}),
    [](const auto& bound) { return std::string(bound.param.name); });

TEST_F(SuiteRunTest, RefusesAnUnknownRadix) {
  SuiteRunOptions options = Options();
  options.only = {"FEV-1"};
  options.config.radix = "sometimes";
  ExpectError(options, ErrorCode::kUsage, "radix 'sometimes'");
}

TEST_F(SuiteRunTest, PlantsTheAnswersThatAreAskedFor) {
  SuiteRunOptions options = Options();
  options.answers = "truth";
  options.only = {"IMDB-6", "LEP-2"};
  RunSuite(options);
  for (const char* name : {"IMDB-6", "LEP-2"}) {
    const Json result = ResultOf(name);
    EXPECT_EQ(result["planted_answers"], "truth");
    EXPECT_EQ(result["calls"]["distinct"],
              Count(FindQuery(name), *truth_, PromptLayout::kOwn).calls);
  }
  EXPECT_EQ(ResultOf("LEP-2")["rows"], 50);
  EXPECT_FALSE(fs::exists(folder_ / "out" / "IMDB-1.json"));
}

TEST_F(SuiteRunTest, TellsWhatPlansExpectWithoutRunning) {
  SuiteRunOptions options = Options();
  options.plan_only = true;
  options.only = {"BIO-2"};
  RunSuite(options);
  EXPECT_EQ(ResultOf("BIO-2")["total"]["pairs"], 50 * 113);
  EXPECT_NE(TextOf("plans.tsv").find("BIO-2\t5650\t5650\t"), std::string::npos)
      << TextOf("plans.tsv");
}

TEST_F(SuiteRunTest, ResumesAndSlices) {
  SuiteRunOptions options = Options();
  options.only = {"FEV-1", "FEV-2", "FEV-10"};
  options.slice = "1/2";
  RunSuite(options);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "FEV-1.json"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / "FEV-2.json"));
  ExpectError(options, ErrorCode::kUsage, "--resume");
  options.slice.clear();
  options.resume = true;
  std::vector<std::string> lines;
  options.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  RunSuite(options);
  EXPECT_EQ(lines.front(), "FEV-1: done before");
  EXPECT_TRUE(fs::exists(folder_ / "out" / "FEV-2.json"));
  const std::string table = TextOf("results.tsv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;
  EXPECT_NE(TextOf("results.md").find("| FEV-10 | "), std::string::npos);
  options.layout = "published";
  ExpectError(options, ErrorCode::kUsage, "layout");
}

TEST_F(SuiteRunTest, SaysWhatIsWrong) {
  SuiteRunOptions options = Options();
  options.only = {"IMDB-11"};
  ExpectError(options, ErrorCode::kUsage, "no query 'IMDB-11'");
  options = Options();
  options.scale = "0.1";
  ExpectError(options, ErrorCode::kUsage, "was generated at scale 0.01, not 0.1");
  options = Options();
  options.layout = "mine";
  ExpectError(options, ErrorCode::kUsage, "layout 'mine'");
  options = Options();
  options.answers = "guessed";
  ExpectError(options, ErrorCode::kUsage, "answers 'guessed'");
  options = Options();
  options.slice = "3/2";
  ExpectError(options, ErrorCode::kUsage, "--slice needs I/N");
  options = Options();
  options.slice = "3/3";
  options.only = {"IMDB-1", "BIO-2"};
  ExpectError(options, ErrorCode::kUsage, "slice 3/3 of 2 queries is empty");
  options = Options();
  options.hourly_price = -5;
  ExpectError(options, ErrorCode::kUsage, "--price");
  options = Options();
  options.config.model = "qwen3-40b";
  options.only = {"IMDB-1"};
  ExpectError(options, ErrorCode::kModel, "qwen3-40b");
  options = Options();
  options.config.kv_tokens = 1000;
  options.resume = true;
  fs::remove_all(folder_ / "out");
  options.only = {"IMDB-1"};
  ExpectError(options, ErrorCode::kUsage, "at least 65536");
}

TEST_F(SuiteRunTest, SaysThatTheDiskIsFull) {
  SuiteRunOptions options = Options();
  options.only = {"FEV-1"};
  fs::remove_all(folder_ / "out");
  const FileSizeLimit limit(16);
  ExpectError(options, ErrorCode::kIo, "cannot write");
}

TEST_F(SuiteRunTest, TakesOnlyDataThatIsWhole) {
  SuiteRunOptions options = Options();
  options.data = (folder_ / "none").string();
  ExpectError(options, ErrorCode::kIo, "manifest.json");

  fs::copy(folder_ / "data", folder_ / "cut");
  options.data = (folder_ / "cut").string();
  // Truth of fewer rows, as of a smaller scale.
  fs::copy_file(folder_ / "cut" / "flow4b.parquet", folder_ / "cut" / "truth.parquet",
                fs::copy_options::overwrite_existing);
  ExpectError(options, ErrorCode::kCorrupt, "truth.parquet' has ");
  fs::remove(folder_ / "cut" / "terms.parquet");
  ExpectError(options, ErrorCode::kIo, "terms.parquet' is missing");
  std::ofstream(folder_ / "cut" / "unfinished") << "";
  ExpectError(options, ErrorCode::kIo, "is not whole");
  fs::remove(folder_ / "cut" / "unfinished");
  for (const char* text :
       {"{\"suite\": \"quailb\"", "", "[1]", "{\"suite\": \"quailb\", \"format\": 1}"}) {
    std::ofstream(folder_ / "cut" / "manifest.json") << text;
    ExpectError(options, ErrorCode::kCorrupt, "run quail bench generate again");
  }
  fs::remove_all(folder_ / "cut");
}

}  // namespace
}  // namespace quail::quailb
