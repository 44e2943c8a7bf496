#include "base/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

namespace quail::base {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kPiece = std::size_t{4} << 20;

/// Every kThreads-th piece, from piece `first` on.
void ReadPieces(const std::filesystem::path& path, std::size_t first, std::vector<std::byte>& piece,
                const std::stop_token& stop) {
  // A descriptor of its own: the system follows one reader's pattern in each.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  for (std::size_t i = first; !stop.stop_requested(); i += kThreads) {
    if (::pread(file, piece.data(), piece.size(), static_cast<off_t>(i * kPiece)) <= 0) break;
  }
  ::close(file);
}

}  // namespace

ReadAhead::ReadAhead(const std::vector<std::filesystem::path>& files) {
  for (std::size_t i = 0; i < kThreads && !files.empty(); ++i) {
    threads_.emplace_back([files, i](const std::stop_token& stop) {
      std::vector<std::byte> piece(kPiece);
      for (const auto& file : files) ReadPieces(file, i, piece, stop);
    });
  }
}

}  // namespace quail::base
