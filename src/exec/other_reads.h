#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/pipeline.h"
#include "exec/verdicts.h"
#include "plan/physical.h"
#include "relational/connection.h"

namespace quail::exec {

/// Texts by id. Whether a document has one of them.
class TextSet {
 public:
  void Add(TextId id);
  void Add(const TextSet& other);
  /// REQUIRES: no kNullText.
  bool HasAnyOf(std::span<const TextId> document) const;

 private:
  std::vector<std::uint64_t> bits_;  ///< bit TextId mod 64 of word TextId / 64
};

/// The texts of relations' columns, each read once while the relations stay as they are: every
/// pipeline looks at those of all other steps.
class ColumnTexts {
 public:
  explicit ColumnTexts(relational::Connection& connection) : connection_(connection) {}

  const TextSet& Of(const plan::Relation& relation, const std::string& column);
  /// To be called where rows of relations may have been deleted.
  void Forget() { known_.clear(); }

 private:
  relational::Connection& connection_;
  std::map<std::pair<std::string, std::string>, TextSet> known_;  ///< by table and column
};

/// Texts that other steps than those of a pipeline read as documents, under another name: a chain
/// that scans one table twice, a text that two tables have. Their KV is worth keeping where there
/// is room for it. What becomes of a step's own rows is known better by the step itself.
class OtherReads {
 public:
  /// Reads the relations of `plan` as they are now.
  OtherReads(const plan::PhysicalPlan& plan, const Pipeline& pipeline, ColumnTexts& texts);

  /// How likely a document that the pipeline reads is read again by a later step of another
  /// relation. REQUIRES: no kNullText.
  double ChanceOf(std::span<const TextId> document) const;
  /// Whether a filter of another relation, earlier or later, may be asked about the document.
  bool FiltersToo(std::span<const TextId> document) const;

 private:
  TextSet later_;    ///< of steps behind the pipeline
  TextSet filters_;  ///< of filters
};

}  // namespace quail::exec
