#include "exec/other_reads.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "exec/domain.h"

namespace quail::exec {
namespace {

/// Below what a step knows of its own rows, above nothing: half of the rows reach a later step.
constexpr double kChance = 0.5;

/// The relation and the columns that a step reads as documents; no columns where it reads none.
std::pair<plan::RelationId, std::vector<std::string>> DocumentsOf(const plan::PhysicalPlan& plan,
                                                                  const plan::Step& step) {
  if (const auto* filter = std::get_if<plan::AskFilterStep>(&step)) {
    return {filter->relation, ColumnsOf(plan, filter->relation, filter->predicates)};
  }
  if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) {
    return {join->anchor, ColumnsOf(plan, join->anchor, join->stages)};
  }
  return {};
}

std::vector<bool> TextsOf(const plan::PhysicalPlan& plan, plan::RelationId relation,
                          const std::string& column, relational::Connection& connection) {
  const auto found = std::ranges::find(plan.relations, relation, &plan::Relation::id);
  QUAIL_CHECK(found != plan.relations.end());
  std::vector<bool> texts;
  for (const TextId id : ReadTableDomain(connection, found->table, std::span(&column, 1), "").ids) {
    if (id == kNullText) continue;
    if (id.value() >= texts.size()) texts.resize(id.value() + std::size_t{1});
    texts[id.value()] = true;
  }
  return texts;
}

}  // namespace

OtherReads::OtherReads(const plan::PhysicalPlan& plan, const Pipeline& pipeline,
                       relational::Connection& connection) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (std::ranges::find(pipeline.asking, i) != pipeline.asking.end()) continue;
    const auto [relation, columns] = DocumentsOf(plan, plan.steps[i]);
    const bool filters = std::holds_alternative<plan::AskFilterStep>(plan.steps[i]);
    const bool later = i >= pipeline.end;
    if (!later && !filters) continue;
    for (const std::string& column : columns) {
      readers_.push_back({relation, later, filters, TextsOf(plan, relation, column, connection)});
    }
  }
}

bool OtherReads::Reader::Reads(std::optional<plan::RelationId> own,
                               std::span<const TextId> document) const {
  return relation != own && std::ranges::any_of(document, [this](TextId id) {
           return id.value() < texts.size() && texts[id.value()];
         });
}

double OtherReads::ChanceOf(std::optional<plan::RelationId> relation,
                            std::span<const TextId> document) const {
  const bool read = std::ranges::any_of(readers_, [&](const Reader& reader) {
    return reader.later && reader.Reads(relation, document);
  });
  return read ? kChance : 0;
}

bool OtherReads::FiltersToo(std::optional<plan::RelationId> relation,
                            std::span<const TextId> document) const {
  return std::ranges::any_of(readers_, [&](const Reader& reader) {
    return reader.filters && reader.Reads(relation, document);
  });
}

}  // namespace quail::exec
