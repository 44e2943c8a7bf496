#include "session/plain_statement.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "session/copy_to_file.h"
#include "session/describe.h"
#include "session/error_place.h"
#include "session/rows_result.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {
namespace {

/// In capitals.
std::string FirstWord(const sql::Statement& read) {
  const std::string_view text = read.before.empty() ? read.query : read.before;
  return sql::UpperCase(text.substr(0, text.find_first_of(" ;\n\t")));
}

/// Whether tables, views and macros are certainly the same after a statement.
bool KeepsNames(const sql::Statement& read) {
  constexpr std::array kWords = {"INSERT", "UPDATE", "DELETE", "TRUNCATE", "MERGE", "BEGIN",
                                 "START",  "COMMIT", "END",    "SELECT",   "FROM",  "VALUES"};
  const std::string word = FirstWord(read);
  return std::ranges::find(kWords, word) != kWords.end();
}

/// Whether functions and macros are: what makes or drops tables and views does not touch them.
bool KeepsFunctions(const sql::Statement& read) {
  const std::string word = FirstWord(read);
  if (KeepsNames(read)) return true;
  if (word != "CREATE" && word != "DROP" && word != "ALTER") return false;
  const std::string text = sql::UpperCase(read.before + read.query);
  constexpr std::array kOwners = {"MACRO", "FUNCTION", "SCHEMA", "DATABASE"};
  return std::ranges::none_of(
      kOwners, [&](const char* owner) { return text.find(owner) != std::string::npos; });
}

/// What stands before the statement where it is explained or described.
std::string_view WordsBefore(sql::StatementKind kind, RunOptions::Explain explain) {
  using Kind = sql::StatementKind;
  using Explain = RunOptions::Explain;
  if (kind == Kind::kDescribe) return "DESCRIBE ";
  if (kind == Kind::kExplain) return "EXPLAIN ";
  if (kind == Kind::kExplainAnalyze || explain == Explain::kAnalyze) return "EXPLAIN ANALYZE ";
  if (explain == Explain::kJson) return "EXPLAIN (FORMAT json) ";
  return explain == Explain::kNo ? "" : "EXPLAIN ";
}

std::unique_ptr<Result> PlanOf(relational::ResultStream& stream) {
  std::string text;
  while (const auto batch = stream.Next()) {
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      text += batch->Text(batch->columns() - 1, row);
    }
  }
  return std::make_unique<KnownResult>(std::vector<ColumnInfo>{{"plan", "VARCHAR"}},
                                       KnownResult::Rows{{std::move(text)}}, true);
}

}  // namespace

std::unique_ptr<Result> PlainStatement::Run(const RunOptions& options) {
  auto result = RunWords(options);
  FollowTransaction();
  return result;
}

std::unique_ptr<Result> PlainStatement::RunWords(const RunOptions& options) {
  const std::string_view words = WordsBefore(read_.kind, options.explain);
  const bool rows_only = words.empty() && read_.before.empty() && read_.after.empty();
  if (read_.kind == sql::StatementKind::kQuery && rows_only) return Rows(options.form);
  ForgetNames();
  return RunWhole(words, options.form);
}

std::unique_ptr<Result> PlainStatement::Rows(CellForm form) const {
  relational::Connection& connection = *state_.connection;
  const columnar::Schema schema = InScript(script_, read_, 0, [&] {
    connection.CheckSyntax(read_.query);  // where it stands alone
    return DescribeQuery(connection, read_.query);
  });
  auto rows = std::make_unique<RowsResult>(connection, read_.query, schema, form);
  RowsObserver observer;
  const auto text = std::make_shared<const std::string>(script_);
  observer.locate = [text, read = read_](const TextPosition& position) {
    return read.Locate(*text, std::min(position.offset, read.query.size()));
  };
  observer.reword = [&views = views_, text, whole = whole_,
                     dialect = state_.config.dialect](const Error& error) {
    return WithPlace(views.Reword(error, *text, whole), *text, whole, dialect);
  };
  rows->Observe(std::move(observer));
  return rows;
}

std::unique_ptr<Result> PlainStatement::RunWhole(std::string_view words, CellForm form) {
  relational::Connection& connection = *state_.connection;
  const std::string sql = std::string(words) + read_.before + read_.query + read_.after;
  auto stream = InScript(script_, read_, words.size() + read_.before.size(),
                         [&] { return connection.Query(sql); });
  if (!stream->has_rows()) {
    while (stream->Next()) {
    }
    return std::make_unique<EffectResult>();
  }
  if (words.starts_with("EXPLAIN")) return PlanOf(*stream);
  return KeptRows::Read(std::make_unique<KeptRows>(connection, std::move(stream)), form);
}

void PlainStatement::ForgetNames() {
  if (!KeepsNames(read_)) state_.views.reset();
  if (KeepsFunctions(read_)) return;
  state_.functions.macros.reset();
  state_.functions.scalars.reset();
}

void PlainStatement::FollowTransaction() {
  const std::string word = FirstWord(read_);
  if (word == "BEGIN" || word == "START") state_.in_transaction = true;
  for (const char* end : {"ROLLBACK", "ABORT", "COMMIT", "END"}) {
    if (word == end) state_.in_transaction = false;
  }
}

std::uint64_t PlainStatement::RunToFile(std::string_view path, std::string_view copy_options) {
  relational::Connection& connection = *state_.connection;
  if (read_.kind == sql::StatementKind::kQuery && read_.before.empty()) {
    InScript(script_, read_, 0, [&] { connection.CheckSyntax(read_.query); });
    return InScript(script_, read_, kCopyBefore.size(), [&] {
      return CopyToFile(connection, read_.query, path, copy_options,
                        relational::ErrorPlaces::kInSql);
    });
  }
  auto stream = InScript(script_, read_, read_.before.size(), [&] {
    return connection.Query(read_.before + read_.query + read_.after);
  });
  if (!stream->has_rows()) throw Error(ErrorCode::kUsage, "the statement gives no rows to write");
  const KeptRows kept(connection, std::move(stream));
  return CopyToFile(connection, kept.Query(), path, copy_options, relational::ErrorPlaces::kNone);
}

}  // namespace quail::session
