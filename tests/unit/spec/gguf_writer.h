#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "spec/gguf_file.h"

namespace quail::spec {

/// Writes small GGUF files for tests, right ones and, with raw fields, wrong ones.
class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dimensions;
    std::uint32_t type = 0;
    std::vector<std::byte> data;
  };

  void Uint32(std::string_view key, std::uint32_t value) { Entry(key, 4, value); }
  void Float32(std::string_view key, float value) { Entry(key, 6, value); }
  void Bool(std::string_view key, bool value) {
    Entry(key, 7, static_cast<std::uint8_t>(value ? 1 : 0));
  }
  void String(std::string_view key, std::string_view value) {
    Put(entries_, key);
    Put(entries_, std::uint32_t{8});
    Put(entries_, value);
    ++entry_count_;
  }
  void Strings(std::string_view key, const std::vector<std::string>& values) {
    Put(entries_, key);
    Put(entries_, std::uint32_t{9});
    Put(entries_, std::uint32_t{8});
    Put(entries_, std::uint64_t{values.size()});
    for (const std::string& value : values) Put(entries_, std::string_view(value));
    ++entry_count_;
  }
  void Add(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  void AddF32(std::string name, std::vector<std::uint64_t> dimensions,
              const std::vector<float>& values) {
    std::vector<std::byte> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    Add({std::move(name), std::move(dimensions), 0, std::move(data)});
  }

  std::vector<std::byte> Finish() const {
    std::vector<std::byte> out;
    Put(out, std::uint32_t{0x46554747});
    Put(out, std::uint32_t{3});
    Put(out, std::uint64_t{tensors_.size()});
    Put(out, entry_count_);
    out.insert(out.end(), entries_.begin(), entries_.end());
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      Put(out, std::string_view(tensor.name));
      Put(out, static_cast<std::uint32_t>(tensor.dimensions.size()));
      for (const std::uint64_t extent : tensor.dimensions) Put(out, extent);
      Put(out, tensor.type);
      Put(out, offset);
      offset += (tensor.data.size() + 31) / 32 * 32;
    }
    for (const Tensor& tensor : tensors_) {
      out.resize((out.size() + 31) / 32 * 32);
      out.insert(out.end(), tensor.data.begin(), tensor.data.end());
    }
    return out;
  }

  template <typename T>
  static void Put(std::vector<std::byte>& out, T value) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      Put(out, std::uint64_t{value.size()});
      const auto* data = reinterpret_cast<const std::byte*>(value.data());
      out.insert(out.end(), data, data + value.size());
    } else {
      const auto* data = reinterpret_cast<const std::byte*>(&value);
      out.insert(out.end(), data, data + sizeof(value));
    }
  }

 private:
  template <typename T>
  void Entry(std::string_view key, std::uint32_t type, T value) {
    Put(entries_, key);
    Put(entries_, type);
    Put(entries_, value);
    ++entry_count_;
  }

  std::vector<std::byte> entries_;
  std::uint64_t entry_count_ = 0;
  std::vector<Tensor> tensors_;
};

/// A complete llama of one layer, hidden 8, two heads of 4 over one, feed-forward 16, 32 tokens.
inline GgufWriter TinyLlama() {
  GgufWriter writer;
  writer.String("general.architecture", "llama");
  writer.String("general.name", "tiny");
  writer.Uint32("llama.block_count", 1);
  writer.Uint32("llama.embedding_length", 8);
  writer.Uint32("llama.attention.head_count", 2);
  writer.Uint32("llama.attention.head_count_kv", 1);
  writer.Uint32("llama.feed_forward_length", 16);
  writer.Uint32("llama.context_length", 64);
  writer.Float32("llama.attention.layer_norm_rms_epsilon", 1e-6F);
  writer.Float32("llama.rope.freq_base", 5000.0F);
  const auto values = [](std::size_t count) {
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(i);
    return result;
  };
  writer.AddF32("token_embd.weight", {8, 32}, values(256));
  writer.AddF32("blk.0.attn_q.weight", {8, 8}, values(64));
  writer.AddF32("blk.0.attn_k.weight", {8, 4}, values(32));
  writer.AddF32("blk.0.attn_v.weight", {8, 4}, values(32));
  writer.AddF32("output_norm.weight", {8}, values(8));
  return writer;
}

}  // namespace quail::spec
