#include "base/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/mapped_file.h"

namespace quail::base {
namespace {

/// Pages of a mapped file that are in memory.
std::size_t ResidentPages(std::span<const std::byte> file) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((file.size() + page - 1) / page);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(file.data()), file.size(), resident.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(resident, [](unsigned char byte) { return (byte & 1) != 0; }));
}

TEST(ReadAhead, BringsAFileIntoMemoryThatNobodyTouches) {
  const auto path = std::filesystem::path(testing::TempDir()) / "read_ahead_test.bin";
  constexpr std::size_t kBytes = (std::size_t{40} << 20) + 123;
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'x');
  const int file = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  {
    const MappedFile mapped = MappedFile::Open(path);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t pages = (kBytes + page - 1) / page;
    const bool dropped = ResidentPages(mapped.bytes()) < pages / 2;
    const ReadAhead read_ahead({path});
    for (int i = 0; i < 500 && ResidentPages(mapped.bytes()) < pages; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(ResidentPages(mapped.bytes()), pages);
    if (!dropped) GTEST_SKIP() << "this file system keeps a file's pages";
  }
  std::filesystem::remove(path);
}

TEST(ReadAhead, EndsAtOnceWhenNobodyWaits) {
  const ReadAhead nothing({});
  const ReadAhead missing({"/nowhere/at/all"});
}

}  // namespace
}  // namespace quail::base
