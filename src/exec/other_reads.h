#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/pipeline.h"
#include "exec/verdicts.h"
#include "plan/physical.h"
#include "relational/connection.h"

namespace quail::exec {

/// Texts that other steps than those of a pipeline read as documents, under another name: a chain
/// that scans one table twice, a text that two tables have. Their KV is worth keeping where there
/// is room for it. What becomes of a step's own rows is known better by the step itself.
class OtherReads {
 public:
  /// Reads the relations of `plan` as they are now.
  OtherReads(const plan::PhysicalPlan& plan, const Pipeline& pipeline,
             relational::Connection& connection);

  /// How likely a document that the pipeline reads is read again by a later step of another
  /// relation. REQUIRES: no kNullText.
  double ChanceOf(std::span<const TextId> document) const;
  /// Whether a filter of another relation, earlier or later, may be asked about the document.
  bool FiltersToo(std::span<const TextId> document) const;

 private:
  struct Reader {
    bool later = false;
    bool filters = false;
    std::vector<bool> texts;  ///< index = TextId

    bool Reads(std::span<const TextId> document) const;
  };

  std::vector<Reader> readers_;
};

}  // namespace quail::exec
