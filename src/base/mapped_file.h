#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace quail::base {

/// A whole file, mapped read-only. Movable; unmapped at destruction.
class MappedFile {
 public:
  /// Throws Error{kIo} when the file is missing, a folder or unreadable. An empty file gives an
  /// empty span.
  static MappedFile Open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace quail::base
