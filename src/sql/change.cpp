#include "sql/change.h"

#include <utility>
#include <vector>

#include "base/text_position.h"
#include "fmt/format.h"
#include "sql/statement_cut.h"
#include "sql/translation.h"

namespace quail::sql {

namespace {

constexpr std::string_view kKept = "quail_changed";
constexpr std::string_view kRow = "quail_changed_row";

/// Half-open range of tokens.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin >= end; }
};

/// Reads one UPDATE or DELETE.
class ChangeReader {
 public:
  ChangeReader(const TokenView& view, const DialectRules& rules) : view_(view), rules_(rules) {}

  Statement Read() {
    ctes_end_ = PastCtes(view_);
    const bool update = view_.WordAt(ctes_end_, "UPDATE");
    next_ = ctes_end_ + (update ? 1 : 2);
    ReadTarget();
    Range set;
    if (update) set = Clause("SET", {"FROM", "WHERE", "RETURNING"});
    const Range others = Clause(update ? "FROM" : "USING", {"WHERE", "RETURNING"});
    const Range where = Clause("WHERE", {"RETURNING"});
    const Range returning = Clause("RETURNING", {});
    if (next_ < view_.tokens.size()) {
      Fail(next_, fmt::format("{} in {} with AI calls is not supported yet",
                              UpperCase(Spelling(view_.text, view_.tokens[next_])),
                              update ? "UPDATE" : "DELETE"));
    }
    WriteQuery(SplitAtCommas(set), others, where);
    WriteThen(update);
    WriteCheck(update);
    if (!returning.empty()) WriteReturning(returning);
    Translation whole = Translate(view_.text, view_.tokens, rules_);
    statement_.whole = std::move(whole.sql);
    statement_.whole_map = std::move(whole.map);
    statement_.kind = StatementKind::kQuery;
    statement_.before = fmt::format("CREATE OR REPLACE TEMP TABLE {} AS ", kKept);
    statement_.kept = kKept;
    return std::move(statement_);
  }

 private:
  [[noreturn]] void Fail(std::size_t token, const std::string& message) const {
    throw Error(ErrorCode::kUnsupported, message,
                base::Locate(view_.text, view_.tokens[token].offset));
  }

  /// The table, with schema if it has one, and its alias.
  void ReadTarget() {
    const std::size_t begin = next_;
    if (!view_.NameAt(next_)) Fail(std::min(next_, view_.tokens.size() - 1), "a table is missing");
    while (view_.SymbolAt(next_ + 1, ".") && view_.NameAt(next_ + 2)) next_ += 2;
    target_offset_ = view_.tokens[begin].offset;
    RefuseNameOfCte(begin);
    alias_ = view_.Name(next_++);
    target_ = Translate(view_.text, view_.tokens.subspan(begin, next_ - begin), rules_).sql;
    from_ = target_;
    if (view_.WordAt(next_, "AS")) ++next_;
    const bool clause = view_.WordAt(next_, "SET") || view_.WordAt(next_, "USING") ||
                        view_.WordAt(next_, "WHERE") || view_.WordAt(next_, "RETURNING");
    if (!view_.NameAt(next_) || clause) return;
    alias_ = view_.Name(next_++);
    from_ = fmt::format("{} AS {}", target_, QuoteIdentifier(alias_));
  }

  /// A query would read the WITH in the place of the table.
  void RefuseNameOfCte(std::size_t target) const {
    if (next_ != target) return;
    for (const std::size_t cte : ReadCtes(view_).names) {
      if (!SameWord(view_.Name(cte), view_.Name(target))) continue;
      throw Error(
          ErrorCode::kBind,
          fmt::format("{} is a query of the WITH: only a table can be changed", view_.Name(target)),
          base::Locate(view_.text, target_offset_));
    }
  }

  /// The tokens behind a word, up to the next clause; empty where the word does not stand here.
  Range Clause(std::string_view word, const std::vector<std::string_view>& next_words) {
    if (!view_.WordAt(next_, word)) return {};
    const std::size_t begin = next_ + 1;
    next_ = view_
                .FindAtTop(begin,
                           [&](std::size_t i) {
                             // IS DISTINCT FROM
                             return !view_.WordAt(i - 1, "DISTINCT") &&
                                    std::any_of(next_words.begin(), next_words.end(),
                                                [&](std::string_view next) {
                                                  return view_.WordAt(i, next);
                                                });
                           })
                .value_or(view_.tokens.size());
    return {begin, next_};
  }

  std::vector<Range> SplitAtCommas(Range range) const {
    std::vector<Range> parts;
    while (!range.empty()) {
      const std::size_t comma =
          view_
              .FindAtTop(range.begin,
                         [&](std::size_t i) { return i >= range.end || view_.SymbolAt(i, ","); })
              .value_or(range.end);
      parts.push_back({range.begin, std::min(comma, range.end)});
      range.begin = parts.back().end + 1;
    }
    return parts;
  }

  void Emit(std::string_view sql) {
    statement_.map.Stay(statement_.query.size(), view_.tokens[0].offset);
    statement_.query += sql;
  }
  void Emit(Range range) {
    const Translation part =
        Translate(view_.text, view_.tokens.subspan(range.begin, range.end - range.begin), rules_);
    statement_.map.Append(statement_.query.size(), part.map);
    statement_.query += part.sql;
  }

  void WriteQuery(const std::vector<Range>& assignments, Range others, Range where) {
    if (ctes_end_ > 0) {
      Emit(Range{0, ctes_end_});
      Emit(" ");
    }
    Emit(fmt::format("SELECT {}.rowid AS {}", QuoteIdentifier(alias_), kRow));
    for (const Range& assignment : assignments) {
      const bool plain =
          view_.NameAt(assignment.begin) && view_.SymbolAt(assignment.begin + 1, "=");
      const Range value{assignment.begin + 2, assignment.end};
      if (!plain || value.empty() || view_.WordAt(value.begin, "DEFAULT")) {
        Fail(assignment.begin,
             "write SET column = expression; other forms are not supported yet "
             "beside AI calls");
      }
      Emit(", (");
      Emit(value);
      Emit(fmt::format(") AS quail_value_{}", columns_.size()));
      columns_.push_back(
          {view_.Name(assignment.begin), view_.tokens[assignment.begin].offset, LiteralAt(value)});
    }
    Emit(fmt::format(" FROM {}", from_));
    if (!others.empty()) {
      Emit(", ");
      Emit(others);
    }
    if (!where.empty()) {
      Emit(" WHERE ");
      Emit(where);
    }
  }

  /// SQL of a value that is one literal, else empty. It has the column's type where it is assigned,
  /// in a table it has its own.
  std::string LiteralAt(Range value) const {
    const Token& token = view_.tokens[value.begin];
    const bool literal = token.kind == TokenKind::kString || token.kind == TokenKind::kNumber ||
                         view_.WordAt(value.begin, "NULL");
    if (!literal || value.end - value.begin != 1) return "";
    return Translate(view_.text, view_.tokens.subspan(value.begin, 1), rules_).sql;
  }

  void WriteThen(bool update) {
    if (!update) {
      statement_.then =
          fmt::format("DELETE FROM {} WHERE rowid IN (SELECT {} FROM {})", from_, kRow, kKept);
      return;
    }
    std::string assignments;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string value = columns_[i].literal.empty()
                                    ? fmt::format("{}.quail_value_{}", kKept, i)
                                    : columns_[i].literal;
      assignments +=
          fmt::format("{}{} = {}", i == 0 ? "" : ", ", QuoteIdentifier(columns_[i].name), value);
    }
    statement_.then = fmt::format("UPDATE {0} SET {1} FROM {2} WHERE {4}.rowid = {2}.{3}", from_,
                                  assignments, kKept, kRow, QuoteIdentifier(alias_));
  }

  void WriteCheck(bool update) {
    const auto emit = [this](std::string_view sql, std::size_t offset) {
      statement_.check_map.Stay(statement_.check.size(), offset);
      statement_.check += sql;
    };
    emit(update ? "UPDATE " : "DELETE FROM ", view_.tokens[0].offset);
    emit(from_, target_offset_);
    for (const Column& column : columns_) {
      emit(&column == columns_.data() ? " SET " : ", ", column.offset);
      emit(QuoteIdentifier(column.name), column.offset);
      emit(" = NULL", column.offset);
    }
    statement_.target = target_;
  }

  /// Both `then` and `check` have it, so that its faults are told of before anything is asked.
  void WriteReturning(Range returning) {
    const Translation list = Translate(
        view_.text, view_.tokens.subspan(returning.begin, returning.end - returning.begin), rules_);
    if (list.has_ai) {
      throw Error(ErrorCode::kUnsupported, "an AI call cannot stand in RETURNING",
                  base::Locate(view_.text, list.first_ai));
    }
    constexpr std::string_view kWord = " RETURNING ";
    statement_.gives_rows = true;
    statement_.then += fmt::format("{}{}", kWord, list.sql);
    statement_.check_map.Stay(statement_.check.size(), view_.tokens[returning.begin - 1].offset);
    statement_.check += kWord;
    statement_.check_map.Append(statement_.check.size(), list.map);
    statement_.check += list.sql;
  }

  struct Column {
    std::string name;
    std::size_t offset = 0;
    std::string literal;  ///< SQL of its value, see LiteralAt
  };

  const TokenView& view_;
  const DialectRules& rules_;
  std::size_t ctes_end_ = 0;  ///< tokens of the WITH before the change
  std::size_t next_ = 0;
  std::string target_;  ///< SQL of the table's name
  std::size_t target_offset_ = 0;
  std::string from_;  ///< the table in FROM: as it is named, so that each of its names is known
  std::string alias_;
  std::vector<Column> columns_;  ///< that are assigned
  Statement statement_;
};

}  // namespace

std::optional<Statement> ReadChange(const TokenView& view, const DialectRules& rules) {
  const std::size_t word = PastCtes(view);
  const bool change =
      view.WordAt(word, "UPDATE") || (view.WordAt(word, "DELETE") && view.WordAt(word + 1, "FROM"));
  if (!change) return std::nullopt;
  return ChangeReader(view, rules).Read();
}

}  // namespace quail::sql
