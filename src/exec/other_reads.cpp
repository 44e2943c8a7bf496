#include "exec/other_reads.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "base/check.h"
#include "exec/domain.h"

namespace quail::exec {
namespace {

/// Below what a step knows of its own rows, above nothing: half of the rows reach a later step.
constexpr double kChance = 0.5;

/// What a step reads as documents.
struct Documents {
  plan::RelationId relation;
  std::vector<std::string> columns;
};

std::optional<Documents> DocumentsOf(const plan::PhysicalPlan& plan, const plan::Step& step) {
  if (const auto* filter = std::get_if<plan::AskFilterStep>(&step)) {
    return Documents{filter->relation, ColumnsOf(plan, filter->relation, filter->predicates)};
  }
  if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) {
    return Documents{join->anchor, ColumnsOf(plan, join->anchor, join->stages)};
  }
  return std::nullopt;
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
  // Of all its steps: a filter's relation is the anchor of the joins behind it.
  const auto own = DocumentsOf(plan, plan.steps[pipeline.asking.front()]);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (std::ranges::find(pipeline.asking, i) != pipeline.asking.end()) continue;
    const auto documents = DocumentsOf(plan, plan.steps[i]);
    if (!documents || (own && documents->relation == own->relation)) continue;
    const bool filters = std::holds_alternative<plan::AskFilterStep>(plan.steps[i]);
    const bool later = i >= pipeline.end;
    if (!later && !filters) continue;
    for (const std::string& column : documents->columns) {
      readers_.push_back({later, filters, TextsOf(plan, documents->relation, column, connection)});
    }
  }
}

bool OtherReads::Reader::Reads(std::span<const TextId> document) const {
  return std::ranges::any_of(
      document, [this](TextId id) { return id.value() < texts.size() && texts[id.value()]; });
}

double OtherReads::ChanceOf(std::span<const TextId> document) const {
  const bool read = std::ranges::any_of(
      readers_, [&](const Reader& reader) { return reader.later && reader.Reads(document); });
  return read ? kChance : 0;
}

bool OtherReads::FiltersToo(std::span<const TextId> document) const {
  return std::ranges::any_of(
      readers_, [&](const Reader& reader) { return reader.filters && reader.Reads(document); });
}

}  // namespace quail::exec
