#include "infer/weights/weight_source.h"

#include <fmt/format.h>

#include "quail/error.h"

namespace quail::infer {

std::shared_ptr<const WeightTensor> FindWeight(const WeightSource& source, std::string_view hf_name,
                                               std::int64_t rows, std::int64_t columns) {
  std::shared_ptr<const WeightTensor> tensor = source.Find(hf_name);
  if (tensor == nullptr) {
    throw Error(ErrorCode::kModel,
                fmt::format("the model has no tensor {} [{}, {}]", hf_name, rows, columns));
  }
  if (tensor->rows() != rows || tensor->columns() != columns) {
    throw Error(ErrorCode::kModel,
                fmt::format("tensor {} is [{}, {}], the model's shape asks for [{}, {}]", hf_name,
                            tensor->rows(), tensor->columns(), rows, columns));
  }
  return tensor;
}

}  // namespace quail::infer
