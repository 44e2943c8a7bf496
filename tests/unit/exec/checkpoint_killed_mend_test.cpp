#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "exec/checkpoint_file.h"

namespace {

/// Writes and cuts of files that this process does before it is killed in the next one; none:
/// never.
int left_before_kill = -1;

bool KillsNow() { return left_before_kill >= 0 && left_before_kill-- == 0; }
[[noreturn]] void Die() {
  ::raise(SIGKILL);
  ::_exit(1);
}

}  // namespace

/// In the place of the C library's: the one that kills writes half of its bytes.
extern "C" ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t offset) {
  const bool kills = KillsNow();
  const ssize_t written = ::syscall(SYS_pwrite64, file, bytes, kills ? size / 2 : size, offset);
  if (kills) Die();
  return written;
}
extern "C" int ftruncate(int file, off_t size) noexcept {
  if (KillsNow()) Die();
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}

namespace quail::exec {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kRecordBytes = 32;
constexpr std::uint64_t kRecords = 5;

class CheckpointKilledMend : public testing::Test {
 protected:
  CheckpointKilledMend() {
    std::filesystem::remove(path_);
    const auto file = CheckpointFile::Open(path_);
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      file->Keep({i, i}, {Verdict::kTrue, static_cast<float>(i)});
    }
    file->Flush();
    std::ifstream bytes(path_, std::ios::binary);
    whole_ = {std::istreambuf_iterator<char>(bytes), {}};
  }
  ~CheckpointKilledMend() override { std::filesystem::remove(path_); }

  static bool Has(unsigned set, std::uint64_t i) { return ((set >> i) & 1U) != 0; }

  void WriteDamaged(unsigned damaged) const {
    std::string bytes = whole_;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      if (Has(damaged, i)) bytes[kHeaderBytes + kRecordBytes * i + 5] ^= 1;
    }
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes << "cut";
  }

  /// Opens the file in a process that is killed in its write or cut number `place`. Returns whether
  /// there was one.
  bool OpenAndKill(int place) const {
    const pid_t child = ::fork();
    if (child == 0) {
      left_before_kill = place;
      CheckpointFile::Open(path_);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  std::string path_ = testing::TempDir() + "checkpoint_killed_mend_test.bin";
  std::string whole_;
};

TEST_F(CheckpointKilledMend, EveryRecordIsWholeSomewhere) {
  int kills = 0;
  for (unsigned damaged = 0; damaged < 1U << kRecords; ++damaged) {
    WriteDamaged(damaged);
    for (int place = 0; OpenAndKill(place); ++place) {
      ++kills;
      const auto file = CheckpointFile::Open(path_);
      for (std::uint64_t i = 0; i < kRecords; ++i) {
        EXPECT_EQ(file->Find({i, i}).has_value(), !Has(damaged, i)) << damaged << " " << place;
      }
      WriteDamaged(damaged);
    }
  }
  EXPECT_GT(kills, 32);
}

}  // namespace
}  // namespace quail::exec
