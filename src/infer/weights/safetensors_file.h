#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace quail::infer {

enum class SafetensorsType : std::uint8_t { kF32, kF16, kBf16, kFp8E4m3 };
std::int64_t SizeOf(SafetensorsType type);

/// A matrix [rows, columns]; a vector has one row.
struct SafetensorsEntry {
  std::string name;
  std::optional<SafetensorsType> type;  ///< nullopt: a type that weights do not have
  std::string type_name;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::span<const std::byte> data;
};

/// A safetensors container (8-byte length, JSON head, data) over mapped memory. Lengths, shapes and
/// offsets are checked against the file; what contradicts is one Error{kCorrupt} line with file and
/// field. Immutable, thread-safe.
class SafetensorsFile {
 public:
  /// Throws Error{kIo | kCorrupt}.
  static std::shared_ptr<const SafetensorsFile> Open(const std::filesystem::path& path);
  /// `name` stands for the file in messages; `bytes` must outlive the result.
  static std::shared_ptr<const SafetensorsFile> Parse(std::string name,
                                                      std::span<const std::byte> bytes);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::map<std::string, SafetensorsEntry, std::less<>>& entries() const { return entries_; }
  const SafetensorsEntry* Find(std::string_view tensor) const;
  /// The strings under "__metadata__".
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 private:
  SafetensorsFile(std::string name, std::span<const std::byte> bytes);
  [[noreturn]] void Corrupt(std::string_view field, const std::string& what) const;
  void ReadAll();
  void CheckOverlaps() const;

  std::string name_;
  base::MappedFile file_;
  std::span<const std::byte> bytes_;
  std::map<std::string, SafetensorsEntry, std::less<>> entries_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

/// Values [begin, end) of an entry as f32. REQUIRES: a known type.
void ReadValues(const SafetensorsEntry& entry, std::int64_t begin, std::int64_t end, float* out);

}  // namespace quail::infer
