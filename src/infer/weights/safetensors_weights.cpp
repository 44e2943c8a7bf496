#include "infer/weights/safetensors_weights.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/read_ahead.h"
#include "base/utf8.h"
#include "infer/weights/safetensors_file.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

using FilePtr = std::shared_ptr<const SafetensorsFile>;

constexpr std::int64_t kScaleBlock = 128;

std::int64_t Blocks(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

/// An entry and the file that holds its bytes.
struct Located {
  FilePtr file;
  const SafetensorsEntry* entry = nullptr;
};

class PlainTensor final : public WeightTensor {
 public:
  explicit PlainTensor(Located located) : located_(std::move(located)) {}
  const std::string& name() const override { return located_.entry->name; }
  std::int64_t rows() const override { return located_.entry->rows; }
  std::int64_t columns() const override { return located_.entry->columns; }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    ReadValues(*located_.entry, begin * columns(), end * columns(), out);
  }
  std::optional<std::span<const std::byte>> bf16_data() const override {
    if (located_.entry->type != SafetensorsType::kBf16) return std::nullopt;
    return located_.entry->data;
  }

 private:
  Located located_;
};

class Fp8Tensor final : public WeightTensor {
 public:
  Fp8Tensor(Located values, Located scales)
      : values_(std::move(values)), scales_(std::move(scales)) {}
  const std::string& name() const override { return values_.entry->name; }
  std::int64_t rows() const override { return values_.entry->rows; }
  std::int64_t columns() const override { return values_.entry->columns; }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    const std::int64_t blocks = Blocks(columns());
    std::vector<float> scales(static_cast<std::size_t>(blocks));
    for (std::int64_t row = begin; row < end; ++row, out += columns()) {
      ReadValues(*values_.entry, row * columns(), (row + 1) * columns(), out);
      const std::int64_t first = row / kScaleBlock * blocks;
      ReadValues(*scales_.entry, first, first + blocks, scales.data());
      for (std::int64_t i = 0; i < columns(); ++i) {
        out[i] *= scales[static_cast<std::size_t>(i / kScaleBlock)];
      }
    }
  }
  std::optional<Fp8BlockData> fp8_block_data() const override {
    return Fp8BlockData{values_.entry->data, scales_.entry->data,
                        scales_.entry->type == SafetensorsType::kBf16};
  }

 private:
  Located values_;
  Located scales_;
};

class SafetensorsWeights final : public WeightSource {
 public:
  explicit SafetensorsWeights(std::vector<FilePtr> files)
      : files_(std::move(files)), read_ahead_(PathsOf(files_)) {
    for (const FilePtr& file : files_) {
      for (const auto& [name, entry] : file->entries()) {
        if (!index_.emplace(name, Located{file, &entry}).second) {
          throw Error(ErrorCode::kCorrupt, fmt::format("'{}': {}: another shard has it too",
                                                       file->name(), base::Escaped(name)));
        }
      }
    }
  }

  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    const auto found = index_.find(hf_name);
    if (found == index_.end()) return nullptr;
    const Located& located = found->second;
    if (!located.entry->type) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("'{}': {} is of type {}", located.file->name(), hf_name,
                              base::Escaped(located.entry->type_name)));
    }
    if (located.entry->type != SafetensorsType::kFp8E4m3) {
      return std::make_shared<PlainTensor>(located);
    }
    return std::make_shared<Fp8Tensor>(located, FindScales(located));
  }

  base::Hash128 hash() const override {
    std::call_once(hashed_, [this] {
      for (const FilePtr& file : files_) {
        hash_ = base::Combine(hash_, base::HashBytes(file->bytes()));
      }
    });
    return hash_;
  }

 private:
  Located FindScales(const Located& values) const {
    const std::string name = values.entry->name + "_scale_inv";
    const auto found = index_.find(name);
    if (found == index_.end()) {
      throw Error(ErrorCode::kModel, fmt::format("'{}': fp8 tensor {} without {}",
                                                 values.file->name(), values.entry->name, name));
    }
    const SafetensorsEntry& scales = *found->second.entry;
    const bool fits = scales.rows == Blocks(values.entry->rows) &&
                      scales.columns == Blocks(values.entry->columns);
    const bool typed =
        scales.type == SafetensorsType::kF32 || scales.type == SafetensorsType::kBf16;
    if (!fits || !typed) {
      throw Error(ErrorCode::kModel,
                  fmt::format("'{}': {} is {} [{}, {}], not one scale a 128 x 128 block",
                              found->second.file->name(), name, base::Escaped(scales.type_name),
                              scales.rows, scales.columns));
    }
    return found->second;
  }

  static std::vector<std::filesystem::path> PathsOf(const std::vector<FilePtr>& files) {
    std::vector<std::filesystem::path> paths;
    paths.reserve(files.size());
    for (const FilePtr& file : files) paths.emplace_back(file->name());
    return paths;
  }

  std::vector<FilePtr> files_;
  std::map<std::string, Located, std::less<>> index_;
  mutable std::once_flag hashed_;
  mutable base::Hash128 hash_;
  base::ReadAhead read_ahead_;
};

/// The shards that an index names, each a plain file name beside it.
std::vector<std::string> ShardNames(const std::filesystem::path& index) {
  const base::MappedFile file = base::MappedFile::Open(index);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const auto parsed = nlohmann::json::parse(text, text + file.bytes().size(), nullptr, false);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}': weight_map: {}", index.string(), what));
  };
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object()) {
    fail("not an object of tensor and file names");
  }
  std::map<std::string, bool> names;
  for (const auto& [tensor, shard] : parsed["weight_map"].items()) {
    if (!shard.is_string()) fail("a file name is not a string");
    const auto name = shard.get<std::string>();
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
      fail(fmt::format("'{}' is not a file name", name.substr(0, 80)));
    }
    names[name] = true;
  }
  std::vector<std::string> sorted;
  sorted.reserve(names.size());
  for (const auto& [name, unused] : names) sorted.push_back(name);
  return sorted;
}

}  // namespace

std::shared_ptr<const WeightSource> OpenSafetensorsWeights(const std::filesystem::path& path) {
  std::vector<FilePtr> files;
  const std::filesystem::path index = path / "model.safetensors.index.json";
  if (!std::filesystem::is_directory(path)) {
    files.push_back(SafetensorsFile::Open(path));
  } else if (std::filesystem::exists(index)) {
    for (const std::string& name : ShardNames(index)) {
      files.push_back(SafetensorsFile::Open(path / name));
    }
  } else {
    files.push_back(SafetensorsFile::Open(path / "model.safetensors"));
  }
  return std::make_shared<SafetensorsWeights>(std::move(files));
}

}  // namespace quail::infer
