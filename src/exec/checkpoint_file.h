#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash128.h"
#include "exec/verdicts.h"

namespace quail::exec {

/// A verdict that an earlier run reached.
struct KeptVerdict {
  Verdict verdict = Verdict::kUndecided;  ///< kTrue, kFalse or kNull
  float margin = 0;
};

/// Finished verdicts on disk, so that a statement that was ended from outside continues where it
/// was. Append-only: a header, then records of fixed size, each with its checksum; what a kill left
/// of the last one is cut off, and damaged ones are taken out, when the file is opened. Failures
/// are never kept.
class CheckpointFile {
 public:
  /// Opens or makes the file and reads what it holds. Throws Error{kIo}, Error{kCorrupt} for a file
  /// that is no checkpoint. One session at a time: Error{kIo} for a file that is open already.
  static std::unique_ptr<CheckpointFile> Open(const std::string& path);
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  /// Verdicts that it holds.
  std::size_t size() const { return kept_.size(); }
  /// Bytes at the end of the file that were too few for a record when it was opened.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }
  /// Records whose checksum was wrong when it was opened, and which are out of the file since. All
  /// have one size, so those behind are found.
  std::uint64_t damaged_records() const { return damaged_records_; }
  std::optional<KeptVerdict> Find(const base::Hash128& key) const;
  /// REQUIRES: a verdict of KeptVerdict's.
  void Keep(const base::Hash128& key, const KeptVerdict& verdict);
  /// Hands what was kept to the operating system: it survives the end of this process. Throws
  /// Error{kIo}.
  void Flush();

 private:
  CheckpointFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void Load();
  /// Takes the records at `damaged` (ascending) out of those before `end`; the new end.
  std::uint64_t Mend(std::vector<std::uint64_t> damaged, std::uint64_t end) const;
  [[noreturn]] void Fail(const char* what) const;

  std::string path_;
  std::FILE* file_;
  std::uint64_t dropped_bytes_ = 0;
  std::uint64_t damaged_records_ = 0;
  std::unordered_map<base::Hash128, KeptVerdict> kept_;
};

}  // namespace quail::exec
