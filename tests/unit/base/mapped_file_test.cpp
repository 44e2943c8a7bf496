#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "quail/error.h"

namespace quail::base {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() { std::filesystem::create_directories(folder_); }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const char* name, std::string_view content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  static std::string_view Text(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  static std::string FailureOf(const std::filesystem::path& path) {
    try {
      MappedFile::Open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.what();
    }
    return "no error";
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("mapped_file_" + std::to_string(::getpid()));
};

TEST_F(MappedFileTest, GivesTheWholeContent) {
  std::string content(10'000, 'a');
  content[5'000] = '\0';
  const MappedFile file = MappedFile::Open(Write("content", content));
  EXPECT_EQ(Text(file), content);
}

TEST_F(MappedFileTest, EmptyFileGivesAnEmptySpan) {
  EXPECT_TRUE(MappedFile::Open(Write("empty", "")).bytes().empty());
}

TEST_F(MappedFileTest, ContentOutlivesTheDeletedFile) {
  const auto path = Write("deleted", "still here");
  const MappedFile file = MappedFile::Open(path);
  std::filesystem::remove(path);
  EXPECT_EQ(Text(file), "still here");
}

TEST_F(MappedFileTest, MovesHandOverTheMapping) {
  MappedFile first = MappedFile::Open(Write("first", "first"));
  MappedFile moved = std::move(first);
  EXPECT_EQ(Text(moved), "first");
  moved = MappedFile::Open(Write("second", "second"));
  EXPECT_EQ(Text(moved), "second");
}

TEST_F(MappedFileTest, ErrorsNameTheFileAndTheReason) {
  const std::string missing = (folder_ / "missing").string();
  EXPECT_EQ(FailureOf(missing), "cannot read '" + missing + "': No such file or directory");
  EXPECT_EQ(FailureOf(folder_), "cannot read '" + folder_.string() + "': not a regular file");
}

}  // namespace
}  // namespace quail::base
