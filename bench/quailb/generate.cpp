#include "quailb/generate.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "quail/session.h"
#include "quailb/answers.h"
#include "quailb/corpus.h"
#include "quailb/suite_tables.h"
#include "quailb/table_stream.h"

namespace quail::quailb {
namespace {

namespace fs = std::filesystem;

/// In a directory that is being written; tells what an interrupted run left from a user's files.
constexpr const char* kMarker = "unfinished";

void RunStatement(Session& session, const std::string& sql) {
  const auto result = session.Run(sql, {sql, 0}, {});
  while (result->has_rows() && !result->Next().empty()) {
  }
}

std::string QuoteText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    // The snowflake dialect knows both doubled quotes and backslash escapes.
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + "'";
}

void GiveUpIfAsked(const GenerateOptions& options) {
  if (!options.interrupted || !options.interrupted()) return;
  throw Error(ErrorCode::kInterrupted,
              fmt::format("interrupted: '{}' was not written", options.output));
}

void WriteTable(Session& session, TableSource source, const SuiteTable& table,
                const fs::path& folder) {
  ArrowArrayStream stream{};
  ExportStream(std::move(source), &stream);
  session.RegisterStream("quailb_table", &stream);
  const std::string tokens =
      table.token_column.empty()
          ? ""
          : fmt::format(", KV_METADATA {{quail_tokens: {}}}", QuoteText(table.token_column));
  const fs::path path = folder / (table.name + ".parquet");
  RunStatement(session,
               fmt::format("COPY quailb_table TO {} (FORMAT parquet, ROW_GROUP_SIZE 8192{})",
                           QuoteText(path.string()), tokens));
  RunStatement(session, "DROP TABLE quailb_table");
}

/// `rows` are those of every file.
nlohmann::ordered_json Manifest(const GenerateOptions& options, const Corpus& corpus,
                                const std::map<std::string, std::uint64_t>& rows) {
  nlohmann::ordered_json manifest = {
      {"suite", options.suite}, {"format", 1},          {"scale", ScaleName(corpus.scale)},
      {"seed", options.seed},   {"mode", options.mode}, {"answers", {"truth", "flow4b"}}};
  for (const auto& [name, count] : rows) manifest["tables"][name]["rows"] = count;
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    std::uint64_t tokens = 0;
    for (std::uint32_t row = 0; row < corpus.rows(table); ++row) {
      tokens += corpus.lengths_of(table)[row];
    }
    manifest["tables"][std::string(InfoOf(table).name)]["tokens"] = tokens;
  }
  return manifest;
}

void WriteText(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::kIo, fmt::format("cannot write '{}'", path.string()));
}

/// The folder that is written before it gets its name; removed again unless Finish was reached.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& target)
      : target_(target), path_(target.string() + ".partial") {
    if (fs::exists(target_)) {
      throw Error(ErrorCode::kIo, fmt::format("'{}' exists already", target_.string()));
    }
    if (fs::exists(path_) && !fs::exists(path_ / kMarker)) {
      throw Error(ErrorCode::kIo,
                  fmt::format("'{}' is in the way, and not of an earlier run", path_.string()));
    }
    fs::remove_all(path_);
    fs::create_directories(path_);
    WriteText(path_ / kMarker, "");
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const fs::path& path() const { return path_; }

  void Finish() {
    fs::remove(path_ / kMarker);
    fs::rename(path_, target_);
    path_.clear();
  }

 private:
  fs::path target_;
  fs::path path_;
};

void CheckNames(const GenerateOptions& options) {
  if (options.suite != "quailb") {
    throw Error(ErrorCode::kUsage,
                fmt::format("there is no suite '{}' (known: quailb)", options.suite));
  }
  if (options.mode == "text") {
    throw Error(ErrorCode::kUnsupported, "mode text is not supported yet; mode ids is");
  }
  if (options.mode != "ids") {
    throw Error(ErrorCode::kUsage,
                fmt::format("there is no mode '{}' (known: ids, text)", options.mode));
  }
  if (options.output.empty()) throw Error(ErrorCode::kUsage, "bench generate needs -o DIR");
}

void WriteSuite(const GenerateOptions& options, const Corpus& corpus) {
  fs::path target(options.output);
  if (!target.has_filename()) target = target.parent_path();
  PartialFolder folder(target);
  Config config;
  config.duckdb_library = options.duckdb_library;
  const std::unique_ptr<Session> session = Session::Open(config);
  std::map<std::string, std::uint64_t> rows;
  for (const SuiteTable& table : SuiteTables(corpus)) {
    if (options.on_table) options.on_table(table.name);
    TableSource source = table.source();
    source.ends_early = options.interrupted;
    rows[table.name] = source.rows;
    WriteTable(*session, std::move(source), table, folder.path());
    GiveUpIfAsked(options);
  }
  WriteText(folder.path() / "manifest.json", Manifest(options, corpus, rows).dump(2) + "\n");
  folder.Finish();
}

}  // namespace

void GenerateSuite(const GenerateOptions& options) {
  CheckNames(options);
  const Corpus corpus = MakeCorpus(options.seed, ReadScale(options.scale));
  GiveUpIfAsked(options);
  try {
    WriteSuite(options, corpus);
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write '{}': {}", options.output, error.code().message()));
  }
}

}  // namespace quail::quailb
