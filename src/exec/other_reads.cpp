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

constexpr std::size_t kBits = 64;  // of a TextSet's word

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

const plan::Relation& RelationOf(const plan::PhysicalPlan& plan, plan::RelationId id) {
  const auto found = std::ranges::find(plan.relations, id, &plan::Relation::id);
  QUAIL_CHECK(found != plan.relations.end());
  return *found;
}

}  // namespace

void TextSet::Add(TextId id) {
  const std::size_t word = id.value() / kBits;
  if (word >= bits_.size()) bits_.resize(word + 1);
  bits_[word] |= std::uint64_t{1} << (id.value() % kBits);
}

void TextSet::Add(const TextSet& other) {
  if (other.bits_.size() > bits_.size()) bits_.resize(other.bits_.size());
  for (std::size_t word = 0; word < other.bits_.size(); ++word) bits_[word] |= other.bits_[word];
}

bool TextSet::HasAnyOf(std::span<const TextId> document) const {
  return std::ranges::any_of(document, [this](TextId id) {
    const std::size_t word = id.value() / kBits;
    return word < bits_.size() && (bits_[word] >> (id.value() % kBits) & 1U) != 0;
  });
}

const TextSet& ColumnTexts::Of(const plan::Relation& relation, const std::string& column) {
  const auto [found, added] = known_.try_emplace({relation.table, column});
  if (added) {
    for (const TextId id :
         ReadTableDomain(connection_, relation.table, std::span(&column, 1), "").ids) {
      if (id != kNullText) found->second.Add(id);
    }
  }
  return found->second;
}

OtherReads::OtherReads(const plan::PhysicalPlan& plan, const Pipeline& pipeline,
                       ColumnTexts& texts) {
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
      const TextSet& read = texts.Of(RelationOf(plan, documents->relation), column);
      if (later) later_.Add(read);
      if (filters) filters_.Add(read);
    }
  }
}

double OtherReads::ChanceOf(std::span<const TextId> document) const {
  return later_.HasAnyOf(document) ? kChance : 0;
}

bool OtherReads::FiltersToo(std::span<const TextId> document) const {
  return filters_.HasAnyOf(document);
}

}  // namespace quail::exec
