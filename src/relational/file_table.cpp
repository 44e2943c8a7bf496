#include "relational/file_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "columnar/arrow_ipc.h"
#include "columnar/tokens_type.h"
#include "quail/error.h"
#include "relational/callback_guard.h"
#include "relational/quote.h"

namespace quail::relational {
namespace {

/// How DuckDB reads a kind of file: `call` with the quoted path for {}; empty where we read it.
struct Format {
  std::string_view ending;
  std::string_view call;
  bool may_be_compressed;
};

constexpr Format kFormats[] = {
    {".csv", "read_csv({})", true},
    {".tsv", "read_csv({}, delim = '\t')", true},
    {".json", "read_json({})", true},
    {".jsonl", "read_json({}, format = 'newline_delimited')", true},
    {".ndjson", "read_json({}, format = 'newline_delimited')", true},
    {".parquet", "read_parquet({})", false},
    {".arrow", "", false},
    {".feather", "", false},
    {".ipc", "", false},
};

constexpr std::string_view kCompressions[] = {".gz", ".zst"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

const Format& FormatOf(std::string_view path) {
  std::string name = Lower(path);
  bool compressed = false;
  for (const std::string_view ending : kCompressions) {
    if (!name.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    compressed = true;
    break;
  }
  for (const Format& format : kFormats) {
    if (!name.ends_with(format.ending) || (compressed && !format.may_be_compressed)) continue;
    return format;
  }
  throw Error(
      ErrorCode::kUsage,
      fmt::format("'{}': unknown kind of file; the ending must be .csv, .tsv, .json, .jsonl, "
                  ".ndjson (each also .gz or .zst), .parquet, .arrow, .feather or .ipc",
                  path));
}

bool IsRemote(std::string_view path) { return path.find("://") != path.npos; }

/// Throws unless the file can be opened, so that the message has the system's reason.
void CheckReadable(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read '{}': it is a folder; name its files, such as '{}'", path,
                            (std::filesystem::path(path) / "*.parquet").string()));
  }
  errno = 0;
  const std::ifstream file(path);
  if (file.is_open()) return;
  throw Error(ErrorCode::kIo, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
}

void CheckMatches(Connection& connection, const std::string& pattern) {
  const auto rows =
      QueryText(connection, fmt::format("SELECT count(*) FROM glob({})", QuoteText(pattern)));
  if (rows[0][0] != "0") return;
  throw Error(ErrorCode::kIo, fmt::format("no file matches '{}'", pattern));
}

/// The path as DuckDB's pattern: a file that exists under this very name is meant literally.
std::string PatternOf(const std::string& path) {
  const bool has_wildcard = path.find_first_of("*?[") != std::string::npos;
  std::error_code ignored;
  if (!has_wildcard || !std::filesystem::exists(path, ignored)) return path;
  std::string pattern;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[') {
      pattern += fmt::format("[{}]", c);
    } else {
      pattern += c;
    }
  }
  return pattern;
}

/// An error of DuckDB about a file's content, with the path in front where DuckDB did not name it.
Error NameFile(const Error& error, const std::string& path) {
  if (error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kOutOfMemory) {
    return error;
  }
  if (error.code() == ErrorCode::kUnsupported) return error;
  const bool about_access = error.code() == ErrorCode::kIo;
  const bool named = std::string_view(error.what()).find(path) != std::string_view::npos;
  return Error(about_access ? ErrorCode::kIo : ErrorCode::kCorrupt,
               named ? error.what() : fmt::format("cannot read '{}': {}", path, error.what()));
}

/// The columns that Parquet files declare as TOKENS in their metadata.
std::vector<std::string> TokenColumns(Connection& connection, const std::string& pattern) {
  const auto rows = QueryText(
      connection, fmt::format("SELECT DISTINCT decode(value) FROM parquet_kv_metadata({}) "
                              "WHERE decode(key) = {}",
                              QuoteText(pattern), QuoteText(columnar::kTokensKey)));
  if (rows.empty()) return {};
  if (rows.size() > 1) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("files of '{}' differ in what their metadata ({}) declares as TOKENS",
                            pattern, columnar::kTokensKey));
  }
  std::vector<std::string> names;
  std::istringstream lines(rows[0][0].value_or(""));
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

/// The star of a Parquet file's view, with the columns that its metadata declares as TOKENS of that
/// type.
std::string ParquetColumns(Connection& connection, const std::string& pattern,
                           const std::string& source) {
  std::string replaced;
  for (const std::string& name : TokenColumns(connection, pattern)) {
    const auto type =
        QueryText(connection, fmt::format("SELECT column_type FROM (DESCRIBE SELECT * FROM {}) "
                                          "WHERE column_name = {}",
                                          source, QuoteText(name)));
    if (type.empty() || (type[0][0] != "INTEGER[]" && type[0][0] != "BIGINT[]")) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("'{}' declares {} as TOKENS in its metadata, but {}", pattern, name,
                              type.empty() ? std::string("has no such column")
                                           : "its type is " + type[0][0].value_or("")));
    }
    replaced +=
        fmt::format("{}struct_pack({} := {}::INTEGER[]) AS {}", replaced.empty() ? "" : ", ",
                    columnar::kTokensMember, QuoteName(name), QuoteName(name));
  }
  return replaced.empty() ? "*" : fmt::format("* REPLACE ({})", replaced);
}

/// A table on its way, dropped where it ends.
class PassingTable {
 public:
  PassingTable(Connection& connection, std::string name)
      : connection_(connection), name_(std::move(name)) {}
  ~PassingTable() {
    CallbackGuard().Run(
        [this] { connection_.TidyUp(fmt::format("DROP TABLE IF EXISTS temp.main.{}", quoted())); });
  }
  PassingTable(const PassingTable&) = delete;
  PassingTable& operator=(const PassingTable&) = delete;

  std::string quoted() const { return QuoteName(name_); }
  void Read(const std::string& file) const {
    ArrowArrayStream stream = columnar::OpenIpcFile(file);
    connection_.Register(name_, &stream);
  }

 private:
  Connection& connection_;
  std::string name_;
};

/// Arrow IPC files are copied into a temporary table, one after the other; an earlier table of that
/// name stays where one of them fails.
void CopyIpcFiles(Connection& connection, std::string_view name, const std::string& pattern) {
  const auto files = QueryText(
      connection, fmt::format("SELECT file FROM glob({}) ORDER BY file", QuoteText(pattern)));
  const PassingTable all(connection, fmt::format("{} (files)", name));
  const PassingTable part(connection, fmt::format("{} (file)", name));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string file = files[i][0].value_or("");
    try {
      (i == 0 ? all : part).Read(file);
      if (i == 0) continue;
      connection.Query(fmt::format("INSERT INTO {} BY NAME FROM {}", all.quoted(), part.quoted()));
    } catch (const Error& error) {
      throw NameFile(error, file);
    }
  }
  connection.Query(fmt::format("DROP TABLE IF EXISTS temp.main.{}", QuoteName(name)));
  connection.Query(
      fmt::format("ALTER TABLE temp.main.{} RENAME TO {}", all.quoted(), QuoteName(name)));
}

}  // namespace

bool IsIpcFile(std::string_view path) {
  const std::string name = Lower(path);
  return std::ranges::any_of(kFormats, [&name](const Format& format) {
    return format.call.empty() && name.ends_with(format.ending);
  });
}

void RegisterFile(Connection& connection, std::string_view name, std::string_view path) {
  if (name.empty()) throw Error(ErrorCode::kUsage, "a table needs a name: NAME=PATH");
  const std::string file(path);
  const std::string pattern = PatternOf(file);
  const bool is_glob = pattern == file && file.find_first_of("*?[") != std::string::npos;
  if (!IsRemote(path)) is_glob ? CheckMatches(connection, file) : CheckReadable(file);
  const Format& format = FormatOf(path);
  if (format.call.empty()) return CopyIpcFiles(connection, name, pattern);
  const std::string source = fmt::format(fmt::runtime(format.call), QuoteText(pattern));
  try {
    const std::string columns =
        format.ending == ".parquet" ? ParquetColumns(connection, pattern, source) : "*";
    connection.Query(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS SELECT {} FROM {}",
                                 QuoteName(name), columns, source));
  } catch (const Error& error) {
    throw NameFile(error, file);
  }
}

}  // namespace quail::relational
