#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quail/error.h"
#include "sql/duckdb_ast.h"
#include "sql/statement.h"

namespace quail::plan {

/// The user's text behind a syntax tree: turns nodes into places for errors.
class SourceText {
 public:
  SourceText(std::string_view script, const sql::Statement& statement)
      : script_(script), statement_(statement) {}

  /// The place of a node, or of the first thing below it that has one; nullopt for nodes of ours.
  std::optional<TextPosition> PlaceOf(const sql::Json& node) const;
  /// An error at a node.
  Error At(const sql::Json& node, ErrorCode code, const std::string& message) const {
    return {code, message, PlaceOf(node)};
  }
  /// An error of the relational engine about the statement's translated query, moved into the
  /// user's text.
  Error Moved(const Error& error) const;

  const sql::Statement& statement() const { return statement_; }

 private:
  std::string_view script_;
  const sql::Statement& statement_;
};

}  // namespace quail::plan
