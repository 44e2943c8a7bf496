#include "session/rows_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text_position.h"
#include "columnar/arrow_ipc.h"
#include "quail/error.h"
#include "relational/quote.h"
#include "session/arrow_type.h"
#include "session/time_into.h"
#include "session/user_position.h"

namespace quail::session {
namespace {

using Rows = std::vector<std::vector<std::optional<std::string>>>;

std::vector<ColumnInfo> InfoOf(const columnar::Schema& schema) {
  std::vector<ColumnInfo> columns;
  for (const columnar::Field& field : schema) columns.push_back({field.name, field.type});
  return columns;
}

/// DuckDB writes NaN, Infinity and -Infinity bare, which no JSON parser must take: in quotes then.
std::string QuoteNonFinite(std::string json) {
  constexpr std::array<std::string_view, 3> kWords = {"NaN", "Infinity", "-Infinity"};
  if (json.find("NaN") == json.npos && json.find("Infinity") == json.npos) return json;
  std::string quoted;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size();) {
    const std::string_view rest = std::string_view(json).substr(i);
    const auto word = std::ranges::find_if(
        kWords, [&](std::string_view candidate) { return rest.starts_with(candidate); });
    std::size_t size = 1;
    if (!in_text && word != kWords.end()) {
      size = word->size();
      quoted += fmt::format("\"{}\"", *word);
    } else {
      if (rest[0] == '"') in_text = !in_text;
      if (in_text && rest[0] == '\\') size = 2;
      quoted += rest.substr(0, size);
    }
    i += size;
  }
  return quoted;
}

constexpr std::string_view kKeptTable = "quail returned rows";

[[noreturn]] void RefuseExport() {
  throw Error(ErrorCode::kUnsupported, "results as Arrow streams are not supported yet");
}

}  // namespace

RowsResult::RowsResult(relational::Connection& connection, std::string sql,
                       const columnar::Schema& schema, CellForm form)
    : connection_(&connection), sql_(std::move(sql)), form_(form), columns_(InfoOf(schema)) {}

void RowsResult::Begin(const std::string& sql, std::size_t prefix) {
  prefix_ = prefix;
  stream_ = connection_->Query(
      sql, observer_.locate ? relational::ErrorPlaces::kInSql : relational::ErrorPlaces::kNone);
}

template <typename Call>
auto RowsResult::Placed(Call call) {
  const auto locate = [this](const TextPosition& position) -> std::optional<TextPosition> {
    if (!observer_.locate || position.offset < prefix_) return std::nullopt;
    const std::size_t offset = std::min(position.offset - prefix_, sql_.size());
    return observer_.locate(base::Locate(sql_, offset));
  };
  return Reworded(
      [&] { return Located(call, locate); },
      [this](const Error& error) { return observer_.reword ? observer_.reword(error) : error; });
}

std::string RowsResult::CastQuery() const {
  std::string names;
  std::string casts;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string_view comma = i == 0 ? "" : ", ";
    names += fmt::format("{}q{}", comma, i);
    // to_json does not evaluate what has the type of NULL: error(..) would be one.
    casts +=
        form_ == CellForm::kText
            ? fmt::format("{}CAST(q{} AS VARCHAR)", comma, i)
            : fmt::format("{0}CASE WHEN q{1} IS NOT NULL THEN CAST(to_json(q{1}) AS VARCHAR) END",
                          comma, i);
  }
  return fmt::format("SELECT {} FROM ({}\n) AS q({})", casts, sql_, names);
}

std::string RowsResult::ArrowQuery() const {
  std::string names;
  std::string columns;
  bool casts = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string type = TypeInArrow(columns_[i].type);
    const bool cast = type != columns_[i].type;
    const std::string_view comma = i == 0 ? "" : ", ";
    names += fmt::format("{}q{}", comma, i);
    columns += fmt::format("{}{} AS {}", comma,
                           cast ? fmt::format("CAST(q{} AS {})", i, type) : fmt::format("q{}", i),
                           relational::QuoteName(columns_[i].name));
    casts = casts || cast;
  }
  if (!casts) return sql_;
  return fmt::format("SELECT {} FROM ({}\n) AS q({})", columns, sql_, names);
}

Rows RowsResult::Pull() {
  if (!stream_) {
    const std::string cast = CastQuery();
    Begin(cast, cast.find(sql_));
  }
  const auto batch = stream_->Next();
  Rows rows;
  if (!batch) return rows;
  rows.resize(batch->rows());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      auto& cell = rows[row].emplace_back();
      if (batch->IsNull(column, row)) continue;
      cell = relational::CellText(*batch, column, row, stream_->schema()[column]);
      if (form_ == CellForm::kJson) cell = QuoteNonFinite(*std::move(cell));
    }
  }
  return rows;
}

Rows RowsResult::Next() {
  if (ended_) return {};
  Rows rows = Observed(
      [this] {
        const TimeInto timed(seconds_);
        return Placed([this] { return Pull(); });
      },
      observer_.on_error);
  rows_ += rows.size();
  if (rows.empty()) {
    ended_ = true;
    stream_.reset();
    if (observer_.on_end) observer_.on_end(rows_, seconds_);
  }
  return rows;
}

std::uint64_t RowsResult::ReadAll(const std::string& sql,
                                  const std::function<void(const ArrowSchema&)>& begin,
                                  const std::function<void(columnar::Batch)>& take,
                                  const std::function<void()>& end) {
  if (ended_) return rows_;
  const auto read = [&] {
    const TimeInto timed(seconds_);
    if (!stream_) Begin(sql, sql.find(sql_));
    begin(*stream_->arrow_schema());
    while (auto batch = stream_->Next()) {
      rows_ += batch->rows();
      take(*std::move(batch));
    }
    end();
  };
  Observed([&] { Placed(read); }, observer_.on_error);
  ended_ = true;
  stream_.reset();
  if (observer_.on_end) observer_.on_end(rows_, seconds_);
  return rows_;
}

std::uint64_t RowsResult::Drain() {
  return ReadAll(
      sql_, [](const ArrowSchema&) {}, [](const columnar::Batch&) {}, [] {});
}

std::uint64_t RowsResult::WriteIpcFile(const std::string& path) {
  std::unique_ptr<columnar::IpcFileWriter> writer;
  return ReadAll(
      ArrowQuery(),
      [&](const ArrowSchema& schema) {
        writer = std::make_unique<columnar::IpcFileWriter>(path, schema);
      },
      [&](columnar::Batch batch) { writer->Write(*batch.Release()); }, [&] { writer->Finish(); });
}

KeptRows::KeptRows(relational::Connection& connection,
                   std::unique_ptr<relational::ResultStream> rows)
    : connection_(connection), schema_(rows->schema()) {
  rows_ = connection_.Keep(std::move(rows), kKeptTable);
}

KeptRows::~KeptRows() {
  Quietly([this] {
    connection_.TidyUp(
        fmt::format("DROP TABLE IF EXISTS temp.main.{}", relational::QuoteName(kKeptTable)));
  });
}

std::string KeptRows::Query() const {
  std::string columns;
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    columns +=
        fmt::format("{}q{} AS {}", i == 0 ? "" : ", ", i, relational::QuoteName(schema_[i].name));
  }
  return fmt::format("SELECT {} FROM temp.main.{}", columns, relational::QuoteName(kKeptTable));
}

std::unique_ptr<Result> KeptRows::Read(std::unique_ptr<KeptRows> kept, CellForm form) {
  auto result =
      std::make_unique<RowsResult>(kept->connection_, kept->Query(), kept->schema(), form);
  RowsObserver observer;
  observer.on_end = [owner = std::shared_ptr(std::move(kept))](std::uint64_t, double) mutable {
    owner.reset();
  };
  result->Observe(std::move(observer));
  return result;
}

void RowsResult::Export(ArrowArrayStream*) { RefuseExport(); }
void EffectResult::Export(ArrowArrayStream*) { RefuseExport(); }
void KnownResult::Export(ArrowArrayStream*) { RefuseExport(); }

}  // namespace quail::session
