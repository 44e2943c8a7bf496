#include "relational/file_table.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine.h"
#include "test_paths.h"

namespace quail::relational {
namespace {

namespace fs = std::filesystem;

class FileTableTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    folder = fs::temp_directory_path() / ("quail_file_table_" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string Write(const std::string& name, std::string_view content) {
    const fs::path path = folder / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string Path(const std::string& name) { return (folder / name).string(); }
  void Cut(const std::string& path, double part) {
    fs::resize_file(path,
                    static_cast<std::uintmax_t>(static_cast<double>(fs::file_size(path)) * part));
  }
  void Add(std::string_view path) { RegisterFile(*connection, "f", path); }
  /// The error of registering and reading the file.
  Error ReadError(std::string_view path) {
    return ErrorOf([&] {
      Add(path);
      Rows("SELECT count(COLUMNS(*)) FROM f");
    });
  }
  void ExpectNamed(const Error& error, std::string_view name) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }

  fs::path folder;
};

TEST_F(FileTableTest, ReadsEveryTextFormat) {
  const TextRows expected = {{"1", "a, \"b\""}, {"2", std::nullopt}};
  const std::string jsonl = "{\"id\": 1, \"t\": \"a, \\\"b\\\"\"}\n{\"id\": 2, \"t\": null}\n";
  for (const std::string& path :
       {Write("a.csv", "id,t\n1,\"a, \"\"b\"\"\"\n2,\n"),
        Write("b.TSV", "id\tt\n1\t\"a, \"\"b\"\"\"\n2\t\n"),
        Write("c.json", "[{\"id\": 1, \"t\": \"a, \\\"b\\\"\"}, {\"id\": 2, \"t\": null}]"),
        Write("d.jsonl", jsonl), Write("e.ndjson", jsonl)}) {
    SCOPED_TRACE(path);
    Add(path);
    EXPECT_EQ(Rows("SELECT id, t FROM f ORDER BY id"), expected);
  }
}

TEST_F(FileTableTest, ReadsParquetAndCompressedText) {
  Rows("COPY (SELECT range AS id FROM range(1000)) TO '" + Path("p.parquet") + "'");
  Rows("COPY (SELECT range AS id FROM range(1000)) TO '" + Path("p.csv.gz") + "'");
  Rows("COPY (SELECT range AS id FROM range(1000)) TO '" + Path("p.json.gz") + "' (FORMAT json)");
  for (const std::string name : {"p.parquet", "p.csv.gz", "p.json.gz"}) {
    Add(Path(name));
    EXPECT_EQ(Single("SELECT sum(id) FROM f"), "499500") << name;
  }
}

TEST_F(FileTableTest, ReadsGlobsAndNamesWithSpecialCharacters) {
  Write("part1.csv", "id\n1\n");
  Write("part2.csv", "id\n2\n");
  Add(Path("part*.csv"));
  EXPECT_EQ(Single("SELECT sum(id) FROM f"), "3");
  Add(Write("it's [1] {0} * é.csv", "id\n7\n"));
  EXPECT_EQ(Single("SELECT sum(id) FROM f"), "7");
  RegisterFile(*connection, "a \"b\" C", Path("part1.csv"));
  EXPECT_EQ(Single("SELECT id FROM \"a \"\"b\"\" C\""), "1");
}

TEST_F(FileTableTest, AMissingFileIsAnErrorWithItsPath) {
  const Error error = ReadError("no/such/file.csv");
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_STREQ(error.what(), "cannot read 'no/such/file.csv': No such file or directory");
  EXPECT_EQ(ReadError(Path("none*.parquet")).code(), ErrorCode::kIo);
  ExpectNamed(ReadError(Path("none*.parquet")), "none*.parquet");
  ExpectNamed(ReadError(Path("none*.nope")), "no file matches");
  fs::create_directory(folder / "d");
  EXPECT_EQ(ReadError(Path("d")).code(), ErrorCode::kIo);
  ExpectNamed(ReadError(Path("d")), "it is a folder");
}

TEST_F(FileTableTest, OtherKindsOfFilesAreRefusedByName) {
  EXPECT_EQ(ReadError(Write("x.xlsx", "PK")).code(), ErrorCode::kUsage);
  EXPECT_EQ(ReadError(Write("noending", "1")).code(), ErrorCode::kUsage);
  ExpectNamed(ReadError(Path("x.arrow")), "x.arrow");
}

TEST_F(FileTableTest, ReadsArrowFilesOfAnotherImplementation) {
  const std::string folder_of_data = QUAIL_SOURCE_DIR "/tests/data/arrow/";
  for (const char* name : {"uncompressed.feather", "lz4.feather", "zstd.feather",
                           "dictionary.feather", "stream.arrow"}) {
    SCOPED_TRACE(name);
    Add(folder_of_data + name);
    EXPECT_EQ(Rows("SELECT count(*), count(t), count(DISTINCT t), sum(id), max(t) FROM f"),
              (TextRows{{"40", "32", "3", "780", "row 2"}}));
  }
  Add(folder_of_data + "[ld]*[4y].feather");
  EXPECT_EQ(Rows("SELECT count(*) FROM f"), (TextRows{{"80"}}));
  const Error error = ReadError(folder_of_data + "dictionary_zstd.feather");
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  ExpectNamed(error, "dictionary_zstd.feather");
}

TEST_F(FileTableTest, ArrowFilesThatFailLeaveTheEarlierTableAndNoOther) {
  const fs::path source = fs::path(QUAIL_SOURCE_DIR) / "tests/data/arrow";
  const fs::path seeds = fs::path(QUAIL_SOURCE_DIR) / "tests/fuzz/seeds/arrow_ipc_fuzz";
  Add((source / "stream.arrow").string());
  fs::copy_file(source / "stream.arrow", Path("part1.arrow"));
  fs::copy_file(source / "lz4.feather", Path("part2.arrow"));
  Cut(Path("part2.arrow"), 0.5);
  ExpectNamed(ReadError(Path("part*.arrow")), "part2.arrow");
  fs::copy_file(seeds / "nested.arrow", Path("part2.arrow"), fs::copy_options::overwrite_existing);
  ExpectNamed(ReadError(Path("part*.arrow")), "part2.arrow");
  EXPECT_EQ(Rows("SELECT count(*) FROM f"), (TextRows{{"40"}}));
  EXPECT_EQ(Rows("SELECT table_name FROM duckdb_tables()"), (TextRows{{"f"}}));
}

TEST_F(FileTableTest, CutArrowFilesAreErrorsWithTheirPath) {
  const fs::path source = fs::path(QUAIL_SOURCE_DIR) / "tests/data/arrow";
  for (const char* name : {"uncompressed.feather", "zstd.feather", "dictionary.feather"}) {
    for (int part = 1; part < 32; ++part) {
      const std::string path = Path("cut.arrow");
      fs::copy_file(source / name, path, fs::copy_options::overwrite_existing);
      Cut(path, part / 32.0);
      const Error error = ReadError(path);
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << name << " " << part << " " << error.what();
      ExpectNamed(error, "cut.arrow");
    }
  }
  ExpectNamed(ReadError(Write("empty.arrow", "")), "too short");
  EXPECT_EQ(ReadError(Write("other.arrow", std::string(100, 'x'))).code(), ErrorCode::kCorrupt);
}

TEST_F(FileTableTest, CutFilesAreErrorsWithTheirPath) {
  Rows("COPY (SELECT range AS id, repeat('x', 50) || range AS t FROM range(20000)) TO '" +
       Path("cut.parquet") + "'");
  Cut(Path("cut.parquet"), 0.7);
  EXPECT_EQ(ReadError(Path("cut.parquet")).code(), ErrorCode::kCorrupt);
  ExpectNamed(ReadError(Path("cut.parquet")), "cut.parquet");
  const std::string json = Write("cut.json", "[{\"id\": 1}, {\"id\": 2}, {\"id");
  ExpectNamed(ReadError(json), "cut.json");
  const std::string empty = Write("empty.parquet", "");
  ExpectNamed(ReadError(empty), "empty.parquet");
  Rows("COPY (SELECT range AS id, md5(range::VARCHAR) AS t FROM range(200000)) TO '" +
       Path("cut.csv.gz") + "'");
  Cut(Path("cut.csv.gz"), 0.5);
  ExpectNamed(ReadError(Path("cut.csv.gz")), "cut.csv.gz");
}

TEST_F(FileTableTest, OtherEncodingsAreErrorsWithTheirPath) {
  ExpectNamed(ReadError(Write("latin.csv", "id,t\n1,caf\xe9\n2,b\n")), "latin.csv");
  ExpectNamed(ReadError(Write("latin.json", "[{\"id\": 1, \"t\": \"caf\xe9\"}]")), "latin.json");
  std::string late = "id,t\n";
  for (int i = 0; i < 100000; ++i) late += std::to_string(i) + ",plain text\n";
  ExpectNamed(ReadError(Write("late.csv", late + "7,caf\xe9\n")), "late.csv");
}

TEST_F(FileTableTest, SeesWhatTheFileHoldsWhenRead) {
  const std::string path = Write("g.csv", "id\n1\n");
  Add(path);
  EXPECT_EQ(Single("SELECT sum(id) FROM f"), "1");
  Write("g.csv", "id\n1\n5\n");
  EXPECT_EQ(Single("SELECT sum(id) FROM f"), "6");
}

}  // namespace
}  // namespace quail::relational
