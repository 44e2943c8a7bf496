#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quail/config.h"
#include "quail/error.h"
#include "quail/result.h"

struct ArrowArrayStream;

namespace quail {

/// How a statement is to be run, beside what its own text says.
struct RunOptions {
  enum class Explain : std::uint8_t {
    kNo,
    kText,     ///< as if EXPLAIN stood before it
    kJson,     ///< the same plan as JSON
    kAnalyze,  ///< as if EXPLAIN ANALYZE stood before it
  };
  CellForm form = CellForm::kText;
  Explain explain = Explain::kNo;
  /// Other statements of the session may ask about the same texts: what was computed of them stays
  /// where there is room.
  bool more_may_follow = true;
};

/// Answers that stand in for the model's (Session::PlantAnswers).
struct PlantedSet {
  std::string name;                  ///< as the report names it
  std::vector<std::string> prompts;  ///< templates in canonical form: all that will be asked
  /// Rows (prompt, id) or (prompt, id, id): the tuples that are TRUE, all others are FALSE. An id
  /// is what quail_text_id(text) or quail_token_list_id(list) gives for an argument.
  std::string query;
};

/// START HERE. A session: a DuckDB connection, a model, the tables registered. Not thread-safe but
/// for Interrupt.
class Session {
 public:
  /// Opens the database; the model is loaded when a statement first needs it. Throws Error.
  static std::unique_ptr<Session> Open(const Config& config);
  virtual ~Session() = default;

  /// Makes a file (CSV, TSV, JSON, JSONL, Parquet, Arrow IPC; globs) a table.
  virtual void RegisterFile(std::string_view name, std::string_view path) = 0;
  /// Makes the rows of an Arrow stream a table; consumes the stream.
  virtual void RegisterStream(std::string_view name, ArrowArrayStream* stream) = 0;

  /// A statement of a script: its text and where it begins.
  struct Statement {
    std::string text;
    std::size_t offset = 0;  ///< bytes from the beginning of the script
  };
  /// Splits at the `;` between statements, by the dialect's lexer. Throws Error{kSyntax}, or
  /// Error{kUnfinished} for a script that ends inside of a string, comment or name.
  virtual std::vector<Statement> Split(std::string_view script) const = 0;
  /// Whether a statement is a query, or EXPLAIN or DESCRIBE of one. Some others of the relational
  /// engine have rows too (SHOW, RETURNING): Result::has_rows tells. Throws Error{kSyntax ..}.
  virtual bool HasRows(std::string_view script, const Statement& statement) const = 0;

  /// Runs one statement. Positions of errors are in `script`, of which `statement` is a part. The
  /// result must be read or dropped before the next call.
  virtual std::unique_ptr<Result> Run(std::string_view script, const Statement& statement,
                                      const RunOptions& options) = 0;
  /// Writes the rows of one statement to a file, in place: "parquet", "arrow", "csv", "json".
  /// Returns the rows written.
  virtual std::uint64_t RunToFile(std::string_view script, const Statement& statement,
                                  std::string_view format, std::string_view path) = 0;

  /// Any thread, also a signal handler: the running statement throws Error{kInterrupted} in under a
  /// second, and each that follows at once, until Resume.
  virtual void Interrupt() noexcept = 0;
  virtual void Resume() noexcept = 0;
  virtual void SetDialect(Dialect dialect) = 0;
  /// Loads another model, as Config::model names it, with its own adapter. Throws Error: then the
  /// old one is loaded again by the next statement that needs it.
  virtual void SetModel(std::string_view name) = 0;
  /// The model that answers and where it runs; loads it. Throws Error.
  virtual std::string ModelName() = 0;

  /// For benchmarks: from now on the model does all its work, and each answer that it read is
  /// replaced by a planted one before the plan goes on. Runs the set's query at once. Throws Error.
  virtual void PlantAnswers(const PlantedSet& set) = 0;
  /// For benchmarks: loads the model where that is still to be done, and drops the keys and values
  /// that the next statement could reuse.
  virtual void PrepareModel() = 0;

  /// The run report (JSON, cli.md) of the last statement with AI calls; complete once its result
  /// was read or it failed. Empty when there was none.
  virtual std::string ReportJson() const = 0;
  /// Whether a budget (quail_max_tokens, quail_max_seconds) ended that statement early: what was
  /// undecided is NULL in its rows.
  virtual bool StoppedByBudget() const = 0;
};

}  // namespace quail
