#include <fmt/format.h>

#include <array>

#include "infer/model.h"
#include "infer/models/dense_decoder.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

using Load = std::unique_ptr<Model> (*)(const ModelRequest&, const WeightSource&, Backend&);

struct FamilyLoader {
  spec::ModelFamily family;
  Load load;
};

constexpr std::array kFamilies = {
    FamilyLoader{spec::ModelFamily::kLlama, LoadDenseDecoder},
    FamilyLoader{spec::ModelFamily::kQwen2, LoadDenseDecoder},
    FamilyLoader{spec::ModelFamily::kQwen3, LoadDenseDecoder},
};

}  // namespace

std::unique_ptr<Model> LoadModel(const ModelRequest& request, const WeightSource& weights,
                                 Backend& backend) {
  for (const std::int32_t token : request.answer_tokens) {
    if (token < 0 || token >= request.spec.vocabulary) {
      throw Error(ErrorCode::kModel,
                  fmt::format("answer token {} is not below the model's vocabulary of {}", token,
                              request.spec.vocabulary));
    }
  }
  for (const FamilyLoader& entry : kFamilies) {
    if (entry.family == request.spec.family) return entry.load(request, weights, backend);
  }
  throw Error(ErrorCode::kUnsupported, fmt::format("model family '{}' is not supported",
                                                   spec::TraitsOf(request.spec.family).name));
}

}  // namespace quail::infer
