#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "quail/error.h"

namespace quail::base {
namespace {

[[noreturn]] void ThrowIo(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::kIo, fmt::format("cannot read '{}': {}", path.string(), what));
}

/// Closes a file descriptor at the end of its scope.
struct FileDescriptor {
  int fd;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile MappedFile::Open(const std::filesystem::path& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) ThrowIo(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) ThrowIo(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) ThrowIo(path, "not a regular file");
  MappedFile mapped;
  mapped.size_ = static_cast<std::size_t>(status.st_size);
  if (mapped.size_ == 0) return mapped;
  void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    mapped.size_ = 0;
    ThrowIo(path, std::strerror(errno));
  }
  mapped.data_ = static_cast<const std::byte*>(data);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace quail::base
