#include "exec/checkpoint_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "quail/error.h"

namespace quail::exec {
namespace {

class CheckpointFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "checkpoint_file_test.bin";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<CheckpointFile> Open() const { return CheckpointFile::Open(path_); }
  /// A file of `count` verdicts, closed.
  void Keep(std::uint64_t count) const {
    const auto file = Open();
    for (std::uint64_t i = 0; i < count; ++i) {
      file->Keep({i, i * 7},
                 {i % 2 == 0 ? Verdict::kTrue : Verdict::kFalse, static_cast<float>(i)});
    }
    file->Flush();
  }
  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string path_;
};

TEST_F(CheckpointFileTest, WhatIsKeptIsFoundAfterwards) {
  Keep(5);
  const auto file = Open();
  EXPECT_EQ(file->size(), 5U);
  const auto found = file->Find({3, 21});
  ASSERT_TRUE(found);
  EXPECT_EQ(static_cast<int>(found->verdict), static_cast<int>(Verdict::kFalse));
  EXPECT_EQ(found->margin, 3.0F);
  EXPECT_FALSE(file->Find({3, 22}));
}

TEST_F(CheckpointFileTest, ACutAtAnyByteLosesTheUnfinishedRecordAlone) {
  Keep(3);
  const std::string whole = Bytes();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    Write(whole.substr(0, size));
    const std::size_t records = size < 8 ? 0 : (size - 8) / 32;
    EXPECT_EQ(Open()->size(), records) << size;
    EXPECT_EQ(Open()->dropped_bytes(), 0U) << size;  // the first opening repaired it
    EXPECT_EQ(Bytes().size(), 8 + 32 * records) << size;
  }
}

TEST_F(CheckpointFileTest, ChangedBytesAreNoVerdicts) {
  Keep(3);
  const std::string whole = Bytes();
  for (std::size_t i = 8 + 32; i < 8 + 64; ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    Write(changed);
    const auto checkpoint = Open();
    EXPECT_EQ(checkpoint->size(), 2U) << i;
    EXPECT_EQ(checkpoint->damaged_records(), 1U) << i;
    EXPECT_EQ(checkpoint->dropped_bytes(), 0U) << i;
  }
}

TEST_F(CheckpointFileTest, DamageIsMendedOnce) {
  Keep(6);
  const std::string whole = Bytes();
  for (unsigned damaged = 0; damaged < 64; ++damaged) {  // every set of the six records
    std::string changed = whole;
    std::uint64_t left = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      const bool is_damaged = ((damaged >> i) & 1U) != 0;
      if (is_damaged) changed[8 + 32 * i + 5] ^= 1;
      if (!is_damaged) ++left;
    }
    Write(changed + "cut");
    EXPECT_EQ(Open()->damaged_records(), 6 - left) << damaged;
    EXPECT_EQ(Bytes().size(), 8 + 32 * left) << damaged;
    const auto mended = Open();
    EXPECT_EQ(mended->damaged_records() + mended->dropped_bytes(), 0U) << damaged;
    for (std::uint64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(mended->Find({i, i * 7}).has_value(), ((damaged >> i) & 1U) == 0) << damaged;
    }
  }
}

TEST_F(CheckpointFileTest, OtherFilesAreRefusedAndLeftAlone) {
  for (const std::string& bytes : {std::string("notes"), std::string("QUAILCP9 and more")}) {
    Write(bytes);
    EXPECT_THROW(Open(), Error);
    EXPECT_EQ(Bytes(), bytes);
  }
  EXPECT_THROW(CheckpointFile::Open(path_ + "/in_no_folder"), Error);
}

}  // namespace
}  // namespace quail::exec
