#include "optimizer/domain_query.h"

#include <algorithm>

#include "fmt/format.h"

namespace quail::optimizer {

using plan::RelationId;

namespace {

using Relations = std::vector<RelationId>;

bool Contains(const Relations& set, RelationId id) {
  return std::find(set.begin(), set.end(), id) != set.end();
}
bool Within(const Relations& part, const Relations& whole) {
  return std::all_of(part.begin(), part.end(), [&](RelationId id) { return Contains(whole, id); });
}
bool Touches(const Relations& a, const Relations& b) {
  return std::any_of(a.begin(), a.end(), [&](RelationId id) { return Contains(b, id); });
}

std::string Quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

}  // namespace

Relations DomainQuery::LinkedOthers(const Relations& relations) const {
  Relations linked = relations;
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& conjunct : plan_.relational_conjuncts) {
      if (!Touches(conjunct.relations, linked)) continue;
      for (const RelationId id : conjunct.relations) {
        if (Contains(linked, id)) continue;
        linked.push_back(id);
        grew = true;
      }
    }
  }
  linked.erase(linked.begin(), linked.begin() + static_cast<std::ptrdiff_t>(relations.size()));
  std::sort(linked.begin(), linked.end());
  return linked;
}

bool DomainQuery::Linked(RelationId a, RelationId b) const {
  return Contains(LinkedOthers({a}), b);
}

std::vector<std::string> DomainQuery::Terms(const Relations& relations) const {
  std::vector<std::string> terms;
  for (const auto& conjunct : plan_.relational_conjuncts) {
    if (Within(conjunct.relations, relations)) terms.push_back(fmt::format("({})", conjunct.sql));
  }
  for (const std::size_t index : decided_) {
    const auto& conjunct = plan_.ai_conjuncts[index];
    if (!Within(conjunct.relations, relations)) continue;
    if (!conjunct.pairs) {
      terms.push_back(fmt::format("({})", conjunct.sql));
      continue;
    }
    const plan::Call& call = plan_.calls[conjunct.calls[0].call.value()];
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      terms.push_back(fmt::format("{}.{} = {}", conjunct.pairs->name, conjunct.pairs->columns[i],
                                  ColumnOf(call.arguments[i])));
    }
  }
  return terms;
}

std::string DomainQuery::FromList(const Relations& relations) const {
  std::vector<std::string> items;
  for (const RelationId id : relations) {
    const plan::Relation& relation = plan_.relations[id.value()];
    items.push_back(fmt::format("{} AS {}", Quoted(relation.table), Quoted(relation.alias)));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string DomainQuery::FromDecided(const Relations& relations) const {
  std::string list = FromList(relations);
  for (const std::size_t index : decided_) {
    const auto& conjunct = plan_.ai_conjuncts[index];
    if (conjunct.pairs && Within(conjunct.relations, relations)) {
      list += fmt::format(", {}", conjunct.pairs->name);
    }
  }
  return list;
}

std::string DomainQuery::DistinctSide(RelationId relation, const plan::Call& call) const {
  std::vector<std::string> columns;
  for (const plan::Argument& argument : call.arguments) {
    if (argument.relation == relation) columns.push_back(ColumnOf(argument));
  }
  const std::vector<std::string> terms = Terms({relation});
  return fmt::format("(SELECT DISTINCT {} FROM {}{}{}) AS {}", fmt::join(columns, ", "),
                     FromList({relation}), terms.empty() ? "" : " WHERE ",
                     fmt::join(terms, " AND "), Quoted(plan_.relations[relation.value()].alias));
}

std::string DomainQuery::KeepPairs(std::size_t index) const {
  const auto& conjunct = plan_.ai_conjuncts[index];
  const plan::Call& call = plan_.calls[conjunct.calls[0].call.value()];
  std::vector<std::string> columns;
  columns.reserve(call.arguments.size());
  for (const plan::Argument& argument : call.arguments) columns.push_back(ColumnOf(argument));
  const RelationId a = conjunct.relations[0];
  const RelationId b = conjunct.relations[1];
  const bool linked = Linked(a, b);
  const std::string from =
      linked ? FromDecided(conjunct.relations)
             : fmt::format("{}, {}", DistinctSide(a, call), DistinctSide(b, call));
  std::vector<std::string> terms = linked ? Terms(conjunct.relations) : std::vector<std::string>{};
  terms.push_back(fmt::format("({})", conjunct.sql));
  return fmt::format("INSERT INTO {} SELECT DISTINCT {} FROM {} WHERE {}", conjunct.pairs->name,
                     fmt::join(columns, ", "), from, fmt::join(terms, " AND "));
}

std::string DomainQuery::ColumnOf(const plan::Argument& argument) const {
  if (argument.id_column.empty()) {
    return fmt::format("quail_text_id(CAST({} AS VARCHAR))", argument.sql);
  }
  return fmt::format("{}.{}", Quoted(plan_.relations[argument.relation.value()].alias),
                     Quoted(argument.id_column));
}

std::string DomainQuery::RowNumber(RelationId relation) const {
  return fmt::format("{}.quail_row", Quoted(plan_.relations[relation.value()].alias));
}

std::vector<std::string> DomainQuery::RowNumbers(const Relations& relations) const {
  std::vector<std::string> columns;
  for (const RelationId relation : relations) {
    columns.push_back(fmt::format("{} AS q{}", RowNumber(relation), columns.size()));
  }
  return columns;
}

std::string DomainQuery::Rows(const std::vector<std::string>& columns, const OpenRows& open,
                              const std::string& guard) const {
  std::vector<std::string> terms;
  terms.reserve(open.relations.size() + 1);
  for (const RelationId relation : open.relations) {
    terms.push_back(fmt::format("{} = {}.q{}", RowNumber(relation), open.table, terms.size()));
  }
  if (!guard.empty()) terms.push_back(fmt::format("({})", guard));
  return fmt::format("SELECT {} FROM {}, {} WHERE {}", fmt::join(columns, ", "),
                     FromList(open.relations), open.table, fmt::join(terms, " AND "));
}

std::string DomainQuery::Rows(const std::vector<std::string>& columns, const Relations& relations,
                              const std::string& guard) const {
  std::vector<std::string> terms = Terms(relations);
  const Relations others = LinkedOthers(relations);
  if (!others.empty()) {
    Relations all = relations;
    all.insert(all.end(), others.begin(), others.end());
    std::vector<std::string> linking;
    for (const auto& conjunct : plan_.relational_conjuncts) {
      if (Within(conjunct.relations, all) && !Within(conjunct.relations, relations)) {
        linking.push_back(fmt::format("({})", conjunct.sql));
      }
    }
    terms.push_back(fmt::format("EXISTS (SELECT 1 FROM {} WHERE {})", FromList(others),
                                fmt::join(linking, " AND ")));
  }
  if (!guard.empty()) terms.push_back(fmt::format("({})", guard));
  std::string sql = fmt::format("SELECT {}", fmt::join(columns, ", "));
  if (!relations.empty()) sql += fmt::format(" FROM {}", FromDecided(relations));
  if (!terms.empty()) sql += fmt::format(" WHERE {}", fmt::join(terms, " AND "));
  return sql;
}

std::string DomainQuery::DeleteUnmatched(RelationId relation, RelationId other) const {
  Relations both = {relation, other};
  std::sort(both.begin(), both.end());
  const plan::Relation& kept = plan_.relations[relation.value()];
  return fmt::format("DELETE FROM {} WHERE quail_row NOT IN (SELECT {}.quail_row FROM {} WHERE {})",
                     Quoted(kept.table), Quoted(kept.alias), FromDecided(both),
                     fmt::join(Terms(both), " AND "));
}

}  // namespace quail::optimizer
