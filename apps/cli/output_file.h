#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>

namespace quail::cli {

/// The file of -o. What is written goes into a file beside it, which takes its place when all is
/// there: until then, and after a failure, the old file is as it was, and a statement may read it.
/// What is no regular file, or stands for an open one (a pipe, /dev/stdout), is written at once.
class OutputFile {
 public:
  /// Throws Error{kIo} where nothing can be written.
  static std::unique_ptr<OutputFile> Open(const std::string& path);
  /// Removes what was written, unless Finish came before.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// What to write by name, instead of the stream.
  std::string path() const { return (partial_.empty() ? target_ : partial_).string(); }
  /// Whether Finish would put it in the place of a file that is there.
  bool replaces() const;
  /// Puts the file in its place. Throws Error{kIo}.
  void Finish();

 private:
  explicit OutputFile(std::string name) : name_(std::move(name)) {}
  [[noreturn]] void Fail(const std::string& reason) const;

  std::string name_;  ///< as the user wrote it
  std::filesystem::path target_;
  std::filesystem::path partial_;  ///< empty: the target itself is written
  std::ofstream stream_;
};

/// Whether the path is of no regular file (a device, a pipe), or of one that is open already
/// (/dev/stdout): nothing can take its place.
bool IsWrittenInPlace(const std::string& path);

}  // namespace quail::cli
