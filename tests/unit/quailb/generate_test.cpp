#include "quailb/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "file_size_limit.h"
#include "quail/session.h"
#include "quailb/catalogue.h"
#include "test_paths.h"

namespace quail::quailb {
namespace {

namespace fs = std::filesystem;

/// A folder of the test, removed at its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / (name + "_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

GenerateOptions SmallSuite(const fs::path& output) {
  GenerateOptions options;
  options.scale = "0.01";
  options.output = output.string();
  return options;
}

/// The cells of a statement's rows, joined by '|'.
std::string Rows(Session& session, const std::string& sql) {
  const auto result = session.Run(sql, {sql, 0}, {});
  std::string text;
  for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
    for (const auto& row : rows) {
      for (const auto& cell : row) text += cell.value_or("NULL") + "|";
    }
  }
  return text;
}

std::string FileText(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The suite at scale 0.01, written once.
class GeneratedSuite : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<Folder>("quailb_generated");
    GenerateSuite(SmallSuite(data()));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static fs::path data() { return *folder_ / "data"; }

 private:
  static inline std::unique_ptr<Folder> folder_;
};

TEST_F(GeneratedSuite, IsWholeAndReadable) {
  EXPECT_FALSE(fs::exists(data().string() + ".partial"));
  EXPECT_TRUE(fs::exists(data() / "manifest.json"));
  EXPECT_FALSE(fs::exists(data() / "unfinished"));
  const auto session = Session::Open({});
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const TableInfo& info = InfoOf(static_cast<Table>(i));
    const std::string name(info.name);
    session->RegisterFile(name, (data() / (name + ".parquet")).string());
    EXPECT_EQ(Rows(*session, "SELECT count(*), min(id), max(id) FROM " + name),
              std::to_string(info.rows[0]) + "|0|" + std::to_string(info.rows[0] - 1) + "|");
  }
  EXPECT_EQ(Rows(*session, "SELECT typeof(review) FROM reviews LIMIT 1"),
            "STRUCT(tokens INTEGER[])|");
  // Documents begin with different ids, and all ids are in the smallest model's vocabulary.
  EXPECT_EQ(Rows(*session,
                 "SELECT count(DISTINCT review.tokens[1]), min(list_min(review.tokens)) >= 1024, "
                 "max(list_max(review.tokens)) < 49152 FROM reviews"),
            "500|true|true|");
  EXPECT_EQ(Rows(*session,
                 "SELECT count(*) FROM claims c JOIN evidence e "
                 "ON c.evidence_wiki_url = e.id"),
            "50|");
}

TEST_F(GeneratedSuite, NamesItsTokenColumnsInTheFiles) {
  const auto session = Session::Open({});
  EXPECT_EQ(Rows(*session, "SELECT decode(key), decode(value) FROM parquet_kv_metadata('" +
                               (data() / "reports.parquet").string() + "')"),
            "quail_tokens|report|");
}

TEST_F(GeneratedSuite, AnswersNameTheirQuestionAndRows) {
  const auto session = Session::Open({});
  session->RegisterFile("truth", (data() / "truth.parquet").string());
  EXPECT_EQ(Rows(*session, "SELECT count(*), count(partner) FROM truth WHERE question = 'CITES'"),
            "50|50|");
  EXPECT_EQ(Rows(*session, "SELECT count(partner) FROM truth WHERE question = 'F1'"), "0|");
}

TEST_F(GeneratedSuite, IsTheSameAgain) {
  const Folder folder("quailb_again");
  GenerateSuite(SmallSuite(folder / "data"));
  for (const char* name : {"reviews.parquet", "agent_traces.parquet", "flow4b.parquet",
                           "prompts.parquet", "manifest.json"}) {
    EXPECT_EQ(FileText(folder / "data" / name), FileText(data() / name)) << name;
  }
}

/// Every query runs through the whole product, on some rows of each table and an oracle.
TEST_F(GeneratedSuite, AllQueriesRun) {
  const Folder folder("quailb_queries");
  std::ofstream(folder / "oracle.jsonl") << "{\"verdict\": true}\n";
  Config config;
  config.oracle = (folder / "oracle.jsonl").string();
  const auto session = Session::Open(config);
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const std::string name(InfoOf(static_cast<Table>(i)).name);
    Rows(*session, "CREATE TABLE " + name + " AS SELECT * FROM '" +
                       (data() / (name + ".parquet")).string() + "' WHERE id < 2");
  }
  for (const Query& query : Queries()) {
    const std::string sql = FileText(fs::path(QUAIL_SOURCE_DIR) / "bench/quailb/queries" /
                                     (std::string(query.name) + ".sql"));
    const auto statements = session->Split(sql);
    ASSERT_EQ(statements.size(), 1U) << query.name;
    const auto result = session->Run(sql, statements[0], {});
    std::size_t rows = 0;
    for (auto batch = result->Next(); !batch.empty(); batch = result->Next()) rows += batch.size();
    // Two rows a table; claims 0 and 1 name the same page.
    const std::size_t all = std::size_t{1} << query.tables.size();
    EXPECT_EQ(rows, query.name == "FEV-10" ? 2 : all) << query.name;
  }
}

TEST(GenerateSuite, LeavesWhatItDidNotWrite) {
  const Folder folder("quailb_refused");
  fs::create_directories(folder / "data");
  EXPECT_THROW(GenerateSuite(SmallSuite(folder / "data")), Error);

  std::ofstream(folder / "other.partial") << "a user's";
  EXPECT_THROW(GenerateSuite(SmallSuite(folder / "other")), Error);
  EXPECT_EQ(FileText(folder / "other.partial"), "a user's");
}

TEST(GenerateSuite, ReplacesWhatAnInterruptedRunLeft) {
  const Folder folder("quailb_interrupted");
  fs::create_directories(folder / "data.partial");
  std::ofstream(folder / "data.partial/unfinished") << "";
  std::ofstream(folder / "data.partial/half.parquet") << "half";
  GenerateSuite(SmallSuite(folder / "data"));
  EXPECT_TRUE(fs::exists(folder / "data/manifest.json"));
  EXPECT_FALSE(fs::exists(folder / "data/half.parquet"));
}

TEST(GenerateSuite, SaysWhatIsNotKnown) {
  const Folder folder("quailb_unknown");
  GenerateOptions options = SmallSuite(folder / "data");
  options.scale = "0.3";
  EXPECT_THROW(GenerateSuite(options), Error);
  options = SmallSuite(folder / "data");
  options.suite = "tpch";
  EXPECT_THROW(GenerateSuite(options), Error);
  options = SmallSuite(folder / "data");
  options.mode = "text";
  EXPECT_THROW(GenerateSuite(options), Error);
  EXPECT_FALSE(fs::exists(folder / "data"));
}

TEST(GenerateSuite, RemovesWhatAFailureLeaves) {
  const Folder folder("quailb_failed");
  std::ofstream(folder / "file") << "no folder";
  EXPECT_THROW(GenerateSuite(SmallSuite(folder / "file/data")), Error);
  GenerateOptions options = SmallSuite(folder / "data");
  options.on_table = [](std::string_view table) {
    if (table == "claims") throw Error(ErrorCode::kInterrupted, "stopped");
  };
  EXPECT_THROW(GenerateSuite(options), Error);
  EXPECT_FALSE(fs::exists(folder / "data"));
  EXPECT_FALSE(fs::exists(folder / "data.partial"));
}

TEST(GenerateSuite, GivesUpWhenAsked) {
  const Folder folder("quailb_asked");
  GenerateOptions options = SmallSuite(folder / "data");
  std::string last;
  options.on_table = [&](std::string_view table) { last = table; };
  options.interrupted = [&] { return last == "reports"; };
  try {
    GenerateSuite(options);
    ADD_FAILURE() << "not given up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
  EXPECT_EQ(last, "reports");
  EXPECT_FALSE(fs::exists(folder / "data"));
  EXPECT_FALSE(fs::exists(folder / "data.partial"));
}

TEST(GenerateSuite, SaysThatTheDiskIsFull) {
  const Folder folder("quailb_full");
  // Small enough for the first table, for a later one, and for the manifest.
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{4096}, rlim_t{50'000}}) {
    const FileSizeLimit limit(bytes);
    try {
      GenerateSuite(SmallSuite(folder / "data"));
      ADD_FAILURE() << "no error with " << bytes << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
    }
    EXPECT_FALSE(fs::exists(folder / "data"));
    EXPECT_FALSE(fs::exists(folder / "data.partial"));
  }
}

}  // namespace
}  // namespace quail::quailb
