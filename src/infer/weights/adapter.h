#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "infer/weights/safetensors_file.h"
#include "infer/weights/weight_source.h"
#include "spec/model_spec.h"

namespace quail::infer {

/// What an adapter's metadata says; layout of the file: models/smollm2-135m-judge/MODEL_CARD.md.
struct AdapterInfo {
  std::int32_t rank = 0;
  double alpha = 0;
  double margin_scale = 1;  ///< margins are multiplied by it to be calibrated
  std::string base_model;
  std::string base_hash;  ///< of the weights that it was trained for, WeightSource::hash in hex
  std::string words;      ///< spellings of the answers, "True,False"
  std::string layout;     ///< of the prompt
  bool gguf_row_order = false;
};

/// A low-rank adapter (LoRA, Hu et al. 2021) for linear layers: W + alpha / rank * B A. Immutable,
/// thread-safe.
class Adapter {
 public:
  /// Throws Error{kIo | kCorrupt | kModel}: every tensor is checked against the rank.
  static std::shared_ptr<const Adapter> Open(const std::filesystem::path& path);
  explicit Adapter(std::shared_ptr<const SafetensorsFile> file);

  const AdapterInfo& info() const { return info_; }
  const SafetensorsFile& file() const { return *file_; }

 private:
  std::shared_ptr<const SafetensorsFile> file_;
  AdapterInfo info_;
};

/// `base` with the adapter merged in f32 as rows are read; tensors that it does not touch pass
/// through. Throws Error{kModel} when `base` has not the weights that the adapter was trained for,
/// or no counterpart of the shape of one of its tensors.
std::shared_ptr<const WeightSource> ApplyAdapter(std::shared_ptr<const WeightSource> base,
                                                 std::shared_ptr<const Adapter> adapter,
                                                 const spec::ModelSpec& spec);

}  // namespace quail::infer
