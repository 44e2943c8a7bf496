#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "infer/backend.h"
#include "infer/weights/weight_source.h"
#include "spec/model_spec.h"

namespace quail::infer {

/// A model loaded into a backend: which verbs in which order. Immutable after loading.
class Model {
 public:
  virtual ~Model() = default;
  virtual const spec::ModelSpec& spec() const = 0;
  /// Enqueues the whole forward pass of `chunk` (Begin done, Finish done here). Returns false when
  /// `cancel` was seen set between two layers: the chunk then has no result, and KV it should have
  /// written is not written.
  virtual bool Forward(Backend& backend, Chunk& chunk, const PrefillBatch& batch,
                       const base::CancelFlag* cancel) const = 0;
};

/// Loads the family's model (model_list.cpp has one line for each). `answer_tokens`: rows of the
/// output head that are kept as the answer head, in this order. `with_full_head` also loads the
/// whole head, for label likelihood. Throws Error{kModel} on a missing or misshapen tensor.
struct ModelRequest {
  spec::ModelSpec spec;
  std::vector<std::int32_t> answer_tokens;
  bool with_full_head = false;
};
std::unique_ptr<Model> LoadModel(const ModelRequest& request, const WeightSource& weights,
                                 Backend& backend);

}  // namespace quail::infer
