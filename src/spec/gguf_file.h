#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"

namespace quail::spec {

/// Storage types of tensors, numbered as in the file format.
enum class GgufType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
  kBf16 = 30,
};

/// Values are stored in blocks along a row: `values` of them in `bytes` bytes.
struct GgufBlock {
  std::int64_t values = 1;
  std::int64_t bytes = 4;
};
GgufBlock BlockOf(GgufType type);
std::string_view NameOf(GgufType type);

/// A matrix [rows, columns]; a vector has one row. Further dimensions are folded into rows.
struct GgufTensor {
  std::string_view name;
  GgufType type = GgufType::kF32;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::span<const std::byte> data;  ///< rows * columns / block values blocks, row-major
};

/// A GGUF container, version 2 or 3, little-endian: metadata and tensor directory over mapped
/// memory. Every count, length and offset is checked against the file before it is used; what
/// contradicts is one Error{kCorrupt} line with file, field and byte offset. Format: ggml's
/// docs/gguf.md. Immutable, thread-safe.
class GgufFile {
 public:
  /// Throws Error{kIo | kCorrupt | kUnsupported}.
  static std::shared_ptr<const GgufFile> Open(const std::filesystem::path& path);
  /// `name` stands for the file in messages; `bytes` must outlive the result.
  static std::shared_ptr<const GgufFile> Parse(std::string name, std::span<const std::byte> bytes);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Metadata. The getters throw Error{kCorrupt} naming file and key when the value has another
  // type; those without "Find" also when the key is missing.
  bool Has(std::string_view key) const { return entries_.contains(key); }
  std::optional<std::string_view> FindString(std::string_view key) const;
  /// Any unsigned or non-negative signed integer type.
  std::optional<std::uint64_t> FindUint(std::string_view key) const;
  /// f32, f64 or any integer type.
  std::optional<double> FindNumber(std::string_view key) const;
  std::string_view String(std::string_view key) const;
  std::uint64_t Uint(std::string_view key) const;
  double Number(std::string_view key) const;
  /// An array of strings; the views lie in the file.
  std::vector<std::string_view> Strings(std::string_view key) const;
  /// An array of any integer type of at most 32 bits.
  std::vector<std::int32_t> Ints(std::string_view key) const;

  std::span<const GgufTensor> tensors() const { return tensors_; }
  /// nullptr when there is none.
  const GgufTensor* FindTensor(std::string_view tensor_name) const;

 private:
  class Reader;
  enum class ValueType : std::uint32_t;
  struct Entry {
    ValueType type{};
    ValueType element{};      ///< of an array
    std::uint64_t count = 1;  ///< elements of an array
    std::size_t offset = 0;   ///< of the value, in bytes from the beginning of the file
  };

  GgufFile(std::string name, std::span<const std::byte> bytes);
  [[noreturn]] void Corrupt(std::string_view field, std::size_t offset,
                            const std::string& what) const;
  void ReadAll();
  void ReadEntry(Reader& reader);
  void ReadTensor(Reader& reader);
  std::size_t ReadAlignment() const;
  void PlaceTensors(std::size_t directory_end);
  void CheckOverlaps() const;
  const Entry& Require(std::string_view key) const;
  const Entry& RequireArray(std::string_view key) const;
  [[noreturn]] void WrongType(std::string_view key, const Entry& entry,
                              std::string_view wanted) const;
  std::optional<std::int64_t> IntegerAt(ValueType type, std::size_t offset) const;

  std::string name_;
  base::MappedFile file_;
  std::span<const std::byte> bytes_;
  std::unordered_map<std::string_view, Entry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::uint64_t>
      tensor_offsets_;  ///< relative to the data section, parallel to tensors_
  std::unordered_map<std::string_view, std::size_t> tensor_index_;
};

}  // namespace quail::spec
