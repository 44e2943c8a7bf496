#include "sql/statement_cut.h"

#include <algorithm>
#include <array>

namespace quail::sql {

using View = TokenView;

std::size_t DataWords(const View& view) {
  const std::size_t end = view.tokens.size();
  if (end < 3 || !view.WordAt(end - 1, "DATA")) return 0;
  if (view.WordAt(end - 2, "WITH")) return 2;
  return view.WordAt(end - 2, "NO") && view.WordAt(end - 3, "WITH") ? 3 : 0;
}

std::size_t PastParentheses(const View& view, std::size_t i) {
  if (!view.SymbolAt(i, "(")) return i;
  return view.FindAtTop(i + 1, [&](std::size_t at) { return view.SymbolAt(at, ")"); })
             .value_or(view.tokens.size() - 1) +
         1;
}

Ctes ReadCtes(const View& view) {
  Ctes ctes;
  if (!view.WordAt(0, "WITH")) return {};
  std::size_t i = view.WordAt(1, "RECURSIVE") && view.NameAt(2) && !view.WordAt(2, "AS") ? 2 : 1;
  for (;; ++i) {
    if (!view.NameAt(i)) return {};
    ctes.names.push_back(i);
    i = PastParentheses(view, i + 1);
    if (view.WordAt(i, "USING") && view.WordAt(i + 1, "KEY")) i = PastParentheses(view, i + 2);
    if (!view.WordAt(i, "AS")) return {};
    ++i;
    if (view.WordAt(i, "NOT")) ++i;
    if (view.WordAt(i, "MATERIALIZED")) ++i;
    const std::size_t query = i;
    i = PastParentheses(view, query);
    if (i == query) return {};
    if (view.SymbolAt(i, ",")) continue;
    ctes.end = i;
    return ctes;
  }
}

std::size_t PastCtes(const View& view) { return ReadCtes(view).end; }

namespace {

std::optional<Cut> CutCreate(const View& view) {
  if (!view.WordAt(0, "CREATE")) return std::nullopt;
  if (!view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TABLE"); }))
    return std::nullopt;
  const auto as = view.FindAtTop(
      1, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (!as) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, *as + 1, view.tokens.size() - DataWords(view)};
}

/// CREATE VIEW .. AS query.
std::optional<Cut> CutView(const View& view) {
  const auto word = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "VIEW"); });
  if (!word || *word > 4 || !view.WordAt(0, "CREATE")) return std::nullopt;
  const auto as = view.FindAtTop(
      *word, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (!as) return std::nullopt;
  return Cut{StatementKind::kCreateView, 0, *as + 1, view.tokens.size()};
}

std::optional<Cut> CutInsert(const View& view) {
  if (!view.WordAt(0, "INSERT")) return std::nullopt;
  // Parentheses hold the columns, or the query.
  const auto query = view.FindAtTop(1, [&](std::size_t i) {
    std::size_t inside = i;
    while (view.SymbolAt(inside, "(")) ++inside;
    const bool column =
        inside > i && view.WordAt(inside, "VALUES") && !view.SymbolAt(inside + 1, "(");
    return view.QueryBeginsAt(inside) && !column;
  });
  if (!query) return std::nullopt;
  const auto more = view.FindAtTop(*query, [&](std::size_t i) {
    return view.WordAt(i, "RETURNING") || (view.WordAt(i, "ON") && view.WordAt(i + 1, "CONFLICT"));
  });
  return Cut{StatementKind::kQuery, 0, *query, more.value_or(view.tokens.size())};
}

/// MERGE INTO table USING (query) ..
std::optional<Cut> CutMerge(const View& view) {
  if (!view.WordAt(0, "MERGE")) return std::nullopt;
  const auto word = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "USING"); });
  if (!word || !view.SymbolAt(*word + 1, "(") || !view.QueryBeginsAt(*word + 2)) {
    return std::nullopt;
  }
  return Cut{StatementKind::kQuery, 0, *word + 2, PastParentheses(view, *word + 1) - 1};
}

std::optional<Cut> CutCopy(const View& view) {
  if (!view.WordAt(0, "COPY") || !view.SymbolAt(1, "(")) return std::nullopt;
  const auto to = view.FindAtTop(1, [&](std::size_t i) { return view.WordAt(i, "TO"); });
  if (!to || *to < 3) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, 2, *to - 1};
}

std::optional<Cut> CutSummarize(const View& view) {
  if (!view.WordAt(0, "SUMMARIZE") || !view.QueryBeginsAt(1)) return std::nullopt;
  return Cut{StatementKind::kQuery, 0, 1, view.tokens.size()};
}

}  // namespace

std::optional<Cut> CutBehindCtes(const View& view) {
  const std::size_t word = PastCtes(view);
  const View change{view.text, view.tokens.subspan(word)};
  constexpr std::array kWords = {"INSERT", "UPDATE", "DELETE", "MERGE"};
  if (word == 0 ||
      std::ranges::none_of(kWords, [&](const char* first) { return change.WordAt(0, first); })) {
    return std::nullopt;
  }
  const auto cut = change.WordAt(0, "MERGE") ? CutMerge(change) : CutInsert(change);
  if (!cut || view.WordAt(word + cut->begin, "WITH")) {
    return Cut{StatementKind::kOther, 0, 0, view.tokens.size()};
  }
  return Cut{StatementKind::kQuery, 0, word + cut->begin, word + cut->end, word};
}

Cut CutStatement(const View& view) {
  const std::size_t end = view.tokens.size();
  std::size_t dropped = 0;
  StatementKind kind = StatementKind::kQuery;
  if (view.WordAt(0, "EXPLAIN")) {
    kind = view.WordAt(1, "ANALYZE") ? StatementKind::kExplainAnalyze : StatementKind::kExplain;
    dropped = kind == StatementKind::kExplainAnalyze ? 2 : 1;
  } else if ((view.WordAt(0, "DESCRIBE") || view.WordAt(0, "DESC")) && view.QueryBeginsAt(1)) {
    kind = StatementKind::kDescribe;
    dropped = 1;
  }
  if (const auto cut = CutBehindCtes(view)) return *cut;
  if (view.QueryBeginsAt(dropped)) return {kind, dropped, dropped, end};
  for (const auto& cut : {CutCreate(view), CutView(view), CutInsert(view), CutMerge(view),
                          CutCopy(view), CutSummarize(view)}) {
    if (cut) return *cut;
  }
  return {StatementKind::kOther, 0, 0, end};
}

}  // namespace quail::sql
