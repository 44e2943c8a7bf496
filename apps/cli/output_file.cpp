#include "output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "quail/error.h"

namespace quail::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;

/// Whether the name or a link behind it is one of the system's for open files.
bool NamesOpenFile(fs::path path) {
  std::error_code fault;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(path).parent_path(), fault);
    if (folder == "/dev" || folder.string().starts_with("/proc/")) return true;
    if (!fs::is_symlink(fs::symlink_status(path, fault))) return false;
    path = folder / fs::read_symlink(path, fault);
  }
  return false;
}

}  // namespace

bool IsWrittenInPlace(const std::string& path) {
  std::error_code ignored;
  return fs::is_other(fs::status(path, ignored)) || NamesOpenFile(path);
}

void OutputFile::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kIo, fmt::format("cannot write '{}': {}", name_, reason));
}

std::unique_ptr<OutputFile> OutputFile::Open(const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile(path));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) file->Fail("it is a folder");
  file->target_ = path;
  if (!IsWrittenInPlace(path)) {
    if (fs::is_symlink(fs::symlink_status(path, ignored))) {
      std::error_code fault;
      file->target_ = fs::canonical(path, fault);
      if (fault) file->Fail("it is a link that leads to no file");
    }
    file->partial_ = file->target_;
    file->partial_ += fmt::format(".partial-{}", ::getpid());
  }
  errno = 0;
  file->stream_.open(file->path(), std::ios::binary);
  if (!file->stream_) file->Fail(std::strerror(errno));
  return file;
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!partial_.empty()) fs::remove(partial_, ignored);
}

bool OutputFile::replaces() const {
  std::error_code ignored;
  return !partial_.empty() && fs::exists(target_, ignored);
}

void OutputFile::Finish() {
  errno = 0;
  stream_.close();
  if (!stream_) Fail(errno == 0 ? "not all could be written" : std::strerror(errno));
  if (partial_.empty()) return;
  std::error_code fault;
  const fs::file_status old = fs::status(target_, fault);
  if (fs::exists(old)) fs::permissions(partial_, old.permissions(), fault);
  fs::rename(partial_, target_, fault);
  if (fault) Fail(fault.message());
  partial_.clear();
}

}  // namespace quail::cli
