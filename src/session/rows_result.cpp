#include "session/rows_result.h"

#include <fmt/format.h>

#include <utility>

#include "quail/error.h"
#include "session/user_position.h"

namespace quail::session {
namespace {

using Rows = std::vector<std::vector<std::optional<std::string>>>;

std::vector<ColumnInfo> InfoOf(const columnar::Schema& schema) {
  std::vector<ColumnInfo> columns;
  for (const columnar::Field& field : schema) columns.push_back({field.name, field.type});
  return columns;
}

[[noreturn]] void RefuseExport() {
  throw Error(ErrorCode::kUnsupported, "results as Arrow streams are not supported yet");
}

}  // namespace

RowsResult::RowsResult(relational::Connection& connection, std::string sql,
                       const columnar::Schema& schema, CellForm form)
    : connection_(&connection), sql_(std::move(sql)), form_(form), columns_(InfoOf(schema)) {}

RowsResult::RowsResult(std::unique_ptr<relational::ResultStream> stream)
    : columns_(InfoOf(stream->schema())), stream_(std::move(stream)) {}

std::string RowsResult::CastQuery() const {
  std::string names;
  std::string casts;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string_view comma = i == 0 ? "" : ", ";
    names += fmt::format("{}q{}", comma, i);
    casts += form_ == CellForm::kText ? fmt::format("{}CAST(q{} AS VARCHAR)", comma, i)
                                      : fmt::format("{}CAST(to_json(q{}) AS VARCHAR)", comma, i);
  }
  return fmt::format("SELECT {} FROM ({}\n) AS q({})", casts, sql_, names);
}

Rows RowsResult::Pull() {
  if (!stream_) stream_ = connection_->Query(CastQuery());
  const auto batch = stream_->Next();
  Rows rows;
  if (!batch) return rows;
  rows.resize(batch->rows());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      auto& cell = rows[row].emplace_back();
      if (batch->IsNull(column, row)) continue;
      cell = relational::CellText(*batch, column, row, stream_->schema()[column]);
    }
  }
  return rows;
}

Rows RowsResult::Next() {
  if (ended_) return {};
  Rows rows = Observed([this] { return Pull(); }, observer_.on_error);
  rows_ += rows.size();
  if (rows.empty()) {
    ended_ = true;
    stream_.reset();
    if (observer_.on_end) observer_.on_end(rows_);
  }
  return rows;
}

std::uint64_t RowsResult::Drain() {
  if (ended_) return rows_;
  Observed(
      [this] {
        if (!stream_) stream_ = connection_->Query(sql_);
        while (const auto batch = stream_->Next()) rows_ += batch->rows();
      },
      observer_.on_error);
  ended_ = true;
  stream_.reset();
  if (observer_.on_end) observer_.on_end(rows_);
  return rows_;
}

void RowsResult::Export(ArrowArrayStream*) { RefuseExport(); }
void EffectResult::Export(ArrowArrayStream*) { RefuseExport(); }
void KnownResult::Export(ArrowArrayStream*) { RefuseExport(); }

}  // namespace quail::session
