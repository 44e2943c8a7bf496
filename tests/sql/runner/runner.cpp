#include "runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace quail::test {
namespace {

const std::vector<std::pair<std::string, ErrorCode>> kCodes = {
    {"usage", ErrorCode::kUsage},
    {"syntax", ErrorCode::kSyntax},
    {"unfinished", ErrorCode::kUnfinished},
    {"bind", ErrorCode::kBind},
    {"unsupported", ErrorCode::kUnsupported},
    {"query", ErrorCode::kQuery},
    {"io", ErrorCode::kIo},
    {"corrupt", ErrorCode::kCorrupt},
    {"model", ErrorCode::kModel},
    {"device", ErrorCode::kDevice},
    {"memory", ErrorCode::kOutOfMemory},
    {"budget", ErrorCode::kBudget},
    {"interrupted", ErrorCode::kInterrupted}};

std::string NameOf(ErrorCode code) {
  for (const auto& [name, value] : kCodes) {
    if (value == code) return name;
  }
  return "?";
}

std::string Trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// "I" integer, "R" real, "B" Boolean, "T" all others.
char LetterOf(const std::string& type) {
  if (type == "BOOLEAN") return 'B';
  if (type == "DOUBLE" || type == "FLOAT" || type.starts_with("DECIMAL")) return 'R';
  return type.ends_with("INT") || type.ends_with("INTEGER") ? 'I' : 'T';
}

/// `a | b` as literals: NULL is NULL, '..' is a literal already, anything else a text or number.
std::string ValuesOf(const std::string& row) {
  std::string values;
  std::istringstream cells(row + " |");
  for (std::string cell; std::getline(cells, cell, '|');) {
    cell = Trim(cell);
    const bool number =
        !cell.empty() && cell.find_first_not_of("-.0123456789") == std::string::npos;
    std::string literal = cell;
    if (cell != "NULL" && !number && !cell.starts_with('\'')) {
      literal = "'";
      for (const char c : cell) literal += c == '\'' ? "''" : std::string(1, c);
      literal += "'";
    }
    values += (values.empty() ? "" : ", ") + literal;
  }
  return "(" + values + ")";
}

std::string At(const Error& error) {
  if (!error.position()) return "";
  return fmt::format("{}:{}", error.position()->line, error.position()->column);
}

Config Counting(std::uint64_t kv_tokens, std::int32_t chunk_tokens, const char* radix) {
  Config config;
  config.model = QUAIL_TEST_MODEL;
  config.adapter = "none";
  config.backend = "counting";
  config.check_kv = true;
  config.kv_tokens = kv_tokens;
  config.chunk_tokens = chunk_tokens;
  config.radix = radix;
  return config;
}

}  // namespace

Setup SetupOf(const std::string& name) {
  if (name == "oracle") return {};
  if (!std::filesystem::exists(QUAIL_TEST_MODEL)) {
    throw std::runtime_error(std::string("skipped: no ") + QUAIL_TEST_MODEL);
  }
  Setup setup{name, Counting(1 << 16, 4096, "pays"), ""};
  if (name == "tiny_kv") {
    setup.config = Counting(512, 256, "pays");
  } else if (name == "one_at_a_time") {
    setup.config = Counting(1 << 12, 1, "pays");
  } else if (name == "radix_always") {
    setup.config = Counting(1 << 16, 4096, "always");
  } else if (name == "radix_never") {
    setup.config = Counting(1024, 512, "never");
  } else if (name == "as_written") {
    setup.setting = "SET quail_anchor = 'as_written'";
  } else if (name == "deterministic") {
    setup.config = Counting(1 << 13, 512, "pays");
    setup.config.deterministic = true;
  } else if (name == "control") {
    setup.config.baseline = true;
  } else {
    throw std::runtime_error("unknown configuration " + name);
  }
  return setup;
}

Runner::Runner(std::filesystem::path scratch, Setup setup)
    : scratch_(std::move(scratch)), setup_(std::move(setup)) {
  std::filesystem::create_directories(scratch_);
}

Runner::~Runner() { std::filesystem::remove_all(scratch_); }

void Runner::AddTable(const Record& record) {
  const std::size_t open = record.head.find('(');
  if (open == std::string::npos) throw std::runtime_error("table needs NAME (COLUMN TYPE, ..)");
  std::string sql = "CREATE TABLE " + record.head;
  tables_.push_back(sql);
  std::string values;
  std::istringstream rows(record.body);
  for (std::string row; std::getline(rows, row);) {
    values += (values.empty() ? "" : ", ") + ValuesOf(row);
  }
  if (!values.empty()) {
    tables_.push_back("INSERT INTO " + record.head.substr(0, open) + " VALUES " + values);
  }
  session_.reset();
}

Session& Runner::Open() {
  if (session_) return *session_;
  Config config = setup_.config;
  config.duckdb_library = QUAIL_TEST_DUCKDB;
  config.oracle = (scratch_ / "oracle.jsonl").string();
  std::ofstream(config.oracle) << oracle_;
  config.on_notice = [this](const std::string& notice) { notices_.push_back(notice); };
  session_ = Session::Open(config);
  if (!setup_.setting.empty()) session_->Run(setup_.setting, {setup_.setting, 0}, {});
  for (const std::string& sql : tables_) session_->Run(sql, {sql, 0}, {});
  session_->SetDialect(dialect_);
  return *session_;
}

std::optional<std::string> Runner::ChooseDialect(std::string_view name) {
  const auto dialect = FindDialect(name);
  if (!dialect) return "unknown dialect";
  dialect_ = *dialect;
  if (session_) session_->SetDialect(dialect_);
  return std::nullopt;
}

std::optional<std::string> Runner::Run(const Record& record, std::vector<std::string>* actual) {
  switch (record.kind) {
    case RecordKind::kTable:
      AddTable(record);
      return std::nullopt;
    case RecordKind::kOracle:
      oracle_ = record.body;
      session_.reset();
      return std::nullopt;
    case RecordKind::kDialect:
      return ChooseDialect(record.head);
    case RecordKind::kStatement:
      return RunStatement(record);
    case RecordKind::kQuery:
      return RunQuery(record, actual);
    case RecordKind::kCounters:
      return CheckCounters(record);
    case RecordKind::kNotice:
      return CheckNotice(record);
  }
  return "unknown record";
}

std::vector<std::string> Runner::Rows(const std::string& sql, std::string* types) {
  Session& session = Open();
  notices_.clear();
  std::vector<std::string> lines;
  for (const Session::Statement& statement : session.Split(sql)) {
    const auto result = session.Run(sql, statement, {});
    lines.clear();
    types->clear();
    for (const ColumnInfo& column : result->columns()) *types += LetterOf(column.type);
    for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
      for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
          std::string cell = row[i].value_or("NULL");
          if (row[i] && row[i]->empty()) cell = "(empty)";
          line += (i == 0 ? "" : " | ") + cell;
        }
        // A plan is one text of many lines.
        std::istringstream text(line);
        for (std::string part; std::getline(text, part);) lines.push_back(part);
      }
    }
  }
  return lines;
}

std::optional<std::string> Runner::RunStatement(const Record& record) {
  std::istringstream head(record.head);
  std::string wanted;
  std::string code;
  head >> wanted >> code;
  std::string text;
  std::getline(head, text);
  text = Trim(text);
  std::string place;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
    place = text.substr(0, text.find(' '));
    text = place.size() < text.size() ? Trim(text.substr(place.size())) : "";
  }
  if (wanted != "ok" && wanted != "error") return "a statement is ok or error";
  try {
    std::string types;
    Rows(record.body, &types);
  } catch (const Error& error) {
    const std::string found =
        fmt::format("{} {} {}", NameOf(error.code()), At(error), error.what());
    if (wanted == "ok") return "failed: " + found;
    if (NameOf(error.code()) != code) return "another code: " + found;
    if (!place.empty() && At(error) != place) return "another place: " + found;
    if (std::string_view(error.what()).find(text) == std::string_view::npos) {
      return "another message: " + found;
    }
    return std::nullopt;
  }
  return wanted == "ok" ? std::nullopt : std::optional<std::string>("did not fail");
}

std::optional<std::string> Runner::RunQuery(const Record& record,
                                            std::vector<std::string>* actual) {
  std::vector<std::string> rows;
  std::string types;
  try {
    rows = Rows(record.body, &types);
  } catch (const Error& error) {
    return fmt::format("failed: {} {} {}", NameOf(error.code()), At(error), error.what());
  }
  if (record.sorted) std::ranges::sort(rows);
  if (types != record.head) return fmt::format("types are {}, not {}", types, record.head);
  if (actual != nullptr) {
    *actual = rows;
    return std::nullopt;
  }
  if (rows == record.expected) return std::nullopt;
  return fmt::format("rows are\n  {}\nnot\n  {}", fmt::join(rows, "\n  "),
                     fmt::join(record.expected, "\n  "));
}

std::optional<std::string> Runner::CheckCounters(const Record& record) const {
  const std::string report = session_ ? session_->ReportJson() : "";
  if (report.empty()) return "no statement with AI calls has run";
  const auto json = nlohmann::json::parse(report);
  std::istringstream wanted(record.head);
  for (std::string item; wanted >> item;) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) return "counters need NAME=VALUE";
    const std::string name = item.substr(0, equals);
    const auto& holder = name == "pairs" || name == "rows" ? json : json.at("calls");
    if (!holder.contains(name)) return "no counter " + name;
    const std::string found = holder.at(name).dump();
    if (found != item.substr(equals + 1)) return fmt::format("{} is {}, not {}", name, found, item);
  }
  return std::nullopt;
}

std::optional<std::string> Runner::CheckNotice(const Record& record) const {
  if (record.head == "none") {
    if (notices_.empty()) return std::nullopt;
    return "there is a notice: " + notices_.front();
  }
  const auto has = [&](const std::string& notice) {
    return notice.find(record.head) != std::string::npos;
  };
  if (std::ranges::count_if(notices_, has) == 1) return std::nullopt;
  return fmt::format("not one notice with that text, but [{}]", fmt::join(notices_, "; "));
}

}  // namespace quail::test
