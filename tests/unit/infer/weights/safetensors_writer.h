#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quail::infer {

/// Writes small safetensors files for tests.
class SafetensorsWriter {
 public:
  void Add(const std::string& name, const std::string& type, const std::vector<int>& shape,
           const std::vector<std::byte>& data) {
    head_[name] = {{"dtype", type},
                   {"shape", shape},
                   {"data_offsets", {data_.size(), data_.size() + data.size()}}};
    data_.insert(data_.end(), data.begin(), data.end());
  }
  void AddF32(const std::string& name, const std::vector<int>& shape,
              const std::vector<float>& values) {
    std::vector<std::byte> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    Add(name, "F32", shape, data);
  }
  /// The head, to be changed at will.
  nlohmann::json& head() { return head_; }

  std::vector<std::byte> Finish() const {
    const std::string head = head_.dump();
    const std::uint64_t length = head.size();
    std::vector<std::byte> out(sizeof(length) + head.size() + data_.size());
    std::memcpy(out.data(), &length, sizeof(length));
    std::memcpy(out.data() + sizeof(length), head.data(), head.size());
    if (!data_.empty()) {
      std::memcpy(out.data() + sizeof(length) + head.size(), data_.data(), data_.size());
    }
    return out;
  }

 private:
  nlohmann::json head_ = nlohmann::json::object();
  std::vector<std::byte> data_;
};

}  // namespace quail::infer
