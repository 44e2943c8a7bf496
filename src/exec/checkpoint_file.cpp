#include "exec/checkpoint_file.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

constexpr std::string_view kHeader = "QUAILCP1";

/// key low, key high, verdict, margin bits, checksum of the bytes before it; little-endian.
constexpr std::size_t kRecordBytes = 8 + 8 + 4 + 4 + 8;
constexpr std::uint64_t kChecksumSeed = 0x51554149;

using Record = std::array<std::byte, kRecordBytes>;

template <typename T>
void Put(Record& record, std::size_t at, T value) {
  std::memcpy(record.data() + at, &value, sizeof value);
}
template <typename T>
T Get(const Record& record, std::size_t at) {
  T value;
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

std::uint64_t ChecksumOf(const Record& record) {
  return base::HashBytes(std::span(record).first(kRecordBytes - 8), kChecksumSeed).low;
}

bool IsWhole(const Record& record) {
  const auto verdict = Get<std::uint32_t>(record, 16);
  const bool known = verdict == static_cast<std::uint32_t>(Verdict::kTrue) ||
                     verdict == static_cast<std::uint32_t>(Verdict::kFalse) ||
                     verdict == static_cast<std::uint32_t>(Verdict::kNull);
  return known && Get<std::uint64_t>(record, 24) == ChecksumOf(record);
}

}  // namespace

std::unique_ptr<CheckpointFile> CheckpointFile::Open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  if (file == nullptr && errno == ENOENT) file = std::fopen(path.c_str(), "w+b");
  if (file == nullptr) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot open the checkpoint '{}': {}", path, std::strerror(errno)));
  }
  std::unique_ptr<CheckpointFile> checkpoint(new CheckpointFile(path, file));
  // Two writers would overwrite each other's records. The lock goes with the process.
  if (::flock(::fileno(file), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(ErrorCode::kIo,
                fmt::format("the checkpoint '{}' is in use: another session keeps its verdicts in "
                            "it; wait for that, or name another file",
                            path));
  }
  checkpoint->Load();
  return checkpoint;
}

CheckpointFile::~CheckpointFile() { std::fclose(file_); }

void CheckpointFile::Fail(const char* what) const {
  throw Error(ErrorCode::kIo,
              fmt::format("cannot {} the checkpoint '{}': {}", what, path_, std::strerror(errno)));
}

void CheckpointFile::Load() {
  std::array<char, kHeader.size()> header{};
  const std::size_t read = std::fread(header.data(), 1, header.size(), file_);
  const std::string_view found(header.data(), read);
  if (found != kHeader.substr(0, read)) {
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}' is no checkpoint of this version", path_));
  }
  if (read < header.size()) {  // new, or killed while the header was written
    std::rewind(file_);
    if (std::fwrite(kHeader.data(), 1, kHeader.size(), file_) != kHeader.size()) Fail("write");
    return Flush();
  }
  std::uint64_t end = kHeader.size();
  std::vector<std::uint64_t> damaged;
  for (Record record; std::fread(record.data(), 1, kRecordBytes, file_) == kRecordBytes;) {
    if (IsWhole(record)) {
      const base::Hash128 key{Get<std::uint64_t>(record, 0), Get<std::uint64_t>(record, 8)};
      kept_[key] = {static_cast<Verdict>(Get<std::uint32_t>(record, 16)), Get<float>(record, 20)};
    } else {
      damaged.push_back(end);
    }
    end += kRecordBytes;
  }
  damaged_records_ = damaged.size();
  if (std::fseek(file_, 0, SEEK_END) != 0) Fail("read");
  const auto size = static_cast<std::uint64_t>(std::ftell(file_));
  dropped_bytes_ = size - end;
  const std::uint64_t good = Mend(damaged, end);
  if (size > good && ::ftruncate(::fileno(file_), static_cast<off_t>(good)) != 0) {
    Fail("repair");
  }
  if (std::fseek(file_, static_cast<long>(good), SEEK_SET) != 0) Fail("read");
}

/// The last records take the places of damaged ones, and are cut off behind: whenever this is
/// killed, each is whole somewhere.
std::uint64_t CheckpointFile::Mend(std::vector<std::uint64_t> damaged, std::uint64_t end) const {
  const int file = ::fileno(file_);
  for (auto place = damaged.begin(); place != damaged.end();) {
    end -= kRecordBytes;
    if (damaged.back() == end) {
      damaged.pop_back();
      if (place == damaged.end()) break;
      continue;
    }
    Record last{};
    const auto from = static_cast<off_t>(end);
    if (::pread(file, last.data(), kRecordBytes, from) != ssize_t{kRecordBytes}) Fail("read");
    const auto to = static_cast<off_t>(*place++);
    if (::pwrite(file, last.data(), kRecordBytes, to) != ssize_t{kRecordBytes}) Fail("repair");
  }
  return end;
}

std::optional<KeptVerdict> CheckpointFile::Find(const base::Hash128& key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

void CheckpointFile::Keep(const base::Hash128& key, const KeptVerdict& verdict) {
  QUAIL_CHECK(verdict.verdict != Verdict::kUndecided && verdict.verdict != Verdict::kError);
  if (!kept_.try_emplace(key, verdict).second) return;
  Record record{};
  Put(record, 0, key.low);
  Put(record, 8, key.high);
  Put(record, 16, static_cast<std::uint32_t>(verdict.verdict));
  Put(record, 20, verdict.margin);
  Put(record, 24, ChecksumOf(record));
  if (std::fwrite(record.data(), 1, kRecordBytes, file_) != kRecordBytes) Fail("write");
}

void CheckpointFile::Flush() {
  if (std::fflush(file_) != 0) Fail("write");
}

}  // namespace quail::exec
