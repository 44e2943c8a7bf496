#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quail/dialect.h"
#include "quail/error.h"
#include "sql/source_map.h"

namespace quail::sql {

/// A statement's place in a script.
struct ScriptPart {
  std::size_t offset = 0;  ///< bytes from the beginning, at its first token
  std::size_t size = 0;    ///< up to its last token, without the `;`
};

/// Splits at the `;` between statements; empty ones are left out. Throws Error{kSyntax ..}.
std::vector<ScriptPart> SplitScript(std::string_view script, Dialect dialect);

enum class StatementKind : std::uint8_t {
  kQuery,    ///< SELECT, WITH, FROM, VALUES, also inside CREATE TABLE AS, INSERT, COPY
  kExplain,  ///< EXPLAIN of such a statement
  kExplainAnalyze,
  kDescribe,    ///< DESCRIBE of a query: only its types
  kSet,         ///< SET of a setting of ours
  kCreateView,  ///< `query` is what it shows
  kOther,       ///< for the relational engine alone; with AI calls it is to be refused
};

/// A statement, translated and cut: `before` + `query` + `after` is what the relational engine may
/// run. For EXPLAIN and DESCRIBE those words are in none of the three.
struct Statement {
  StatementKind kind = StatementKind::kOther;
  bool has_ai = false;
  std::size_t first_ai = 0;  ///< of kOther with AI calls: offset in the script
  std::string refusal;       ///< of kOther with AI calls: what to say where the syntax is right
  std::string before;        ///< "CREATE TABLE x AS ", "COPY ("; empty for a plain query
  bool gives_rows = false;   ///< no query, but of a kind that returns rows: SHOW, .. RETURNING
  bool summarizes = false;   ///< SUMMARIZE: `before` changes nothing
  std::string query;
  std::string after;
  SourceMap map;         ///< from offsets of `query` to offsets of the script
  SourceMap before_map;  ///< the same of `before`, where it is the user's
  SourceMap after_map;   ///< the same of `after`
  std::string then;      ///< runs after those three: it writes what `kept` holds. Of UPDATE, DELETE
  std::string kept;      ///< the temp table that `before` makes for `then`; empty without it
  std::string target;    ///< of UPDATE, DELETE with `then`: SQL of the changed table's name
  std::string check;     ///< with `target`: the change without its expressions, only to be bound
  SourceMap check_map;   ///< from offsets of `check` to offsets of the script
  std::string whole;    ///< of UPDATE, DELETE with `then`: all of it, whose syntax is to be checked
  SourceMap whole_map;  ///< from offsets of `whole` to offsets of the script
  std::string view;     ///< kCreateView: its name
  std::vector<std::string> view_columns;  ///< kCreateView: names given to its columns
  std::string table;                      ///< of CREATE TABLE: its name
  std::vector<std::string> table_path;    ///< of CREATE TABLE: what qualifies the name
  std::size_t table_offset = 0;           ///< of CREATE TABLE: of the name, in the script
  bool temporary = false;                 ///< CREATE TEMP TABLE
  bool no_data = false;                   ///< CREATE TABLE .. AS .. WITH NO DATA
  bool or_replace = false;                ///< CREATE OR REPLACE
  bool if_not_exists = false;             ///< CREATE .. IF NOT EXISTS
  std::string file;                       ///< of COPY .. TO: its file or folder, where it is known
  bool many_files = false;                ///< of COPY .. TO: `file` is a folder of files
  std::size_t file_offset = 0;            ///< of `file`, in the script
  /// Quoted names behind FROM, JOIN and commas of a query: some may be files.
  std::vector<std::string> quoted_names;
  std::string setting;             ///< kSet: lower case, "quail_on_error"
  std::string value;               ///< kSet: decoded
  std::size_t setting_offset = 0;  ///< in the script, as `value_offset`
  std::size_t value_offset = 0;
  bool resets = false;  ///< kSet: to what it was without any SET

  /// Whether running it changes a table or a file, rather than only giving rows.
  bool changes_data() const {
    return !summarizes && (!before.empty() || !after.empty() || !then.empty());
  }
  /// Where an offset of `query` lies in the user's script.
  TextPosition Locate(std::string_view script, std::size_t query_offset) const;
};

/// What stands in the place of a parameter.
struct ParameterValue {
  std::string parameter;  ///< lower case; the n-th ? is "n"
  std::string literal;    ///< as the relational engine reads it
};

/// Reads one part of a script, with `values`, if there are any, for all its parameters. Throws
/// Error{kSyntax | kBind | kUnsupported} with positions in the script.
Statement ReadStatement(std::string_view script, const ScriptPart& part, Dialect dialect,
                        std::span<const ParameterValue> values = {});

/// UPDATE, DELETE, COPY name TO, SUMMARIZE name, WITH .. INSERT and EXPLAIN of these as they are
/// read where a query asks, though no AI call is in their text: for names that stand for one.
/// nullopt for other statements. Throws as ReadStatement.
std::optional<Statement> ReadAsAsking(std::string_view script, const ScriptPart& part,
                                      Dialect dialect);

/// The offset in the script at which a part first has a name, or else a text that is that name;
/// nullopt: nowhere, or the part cannot be read.
std::optional<std::size_t> FindName(std::string_view script, const ScriptPart& part,
                                    Dialect dialect, std::string_view name);
/// The same of the first parameter (?, $1, $name).
std::optional<std::size_t> FindParameter(std::string_view script, const ScriptPart& part,
                                         Dialect dialect);

}  // namespace quail::sql
