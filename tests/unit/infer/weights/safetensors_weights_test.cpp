#include "infer/weights/safetensors_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "infer/weights/safetensors_file.h"
#include "quail/error.h"
#include "safetensors_writer.h"

namespace quail::infer {
namespace {

using Bytes = std::vector<std::byte>;

class SafetensorsFolder : public testing::Test {
 protected:
  SafetensorsFolder()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~SafetensorsFolder() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const Bytes& bytes) {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  std::filesystem::path folder_;
};

std::string ErrorOf(const Bytes& bytes) {
  try {
    SafetensorsFile::Parse("file.safetensors", bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

SafetensorsWriter TwoTensors() {
  SafetensorsWriter writer;
  writer.AddF32("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  writer.AddF32("b", {2}, {7, 8});
  return writer;
}

TEST_F(SafetensorsFolder, ShardsAreOneSource) {
  SafetensorsWriter first, second;
  first.AddF32("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  second.Add("b", "BF16", {2}, {std::byte{0x80}, std::byte{0x3F}, std::byte{0}, std::byte{0x40}});
  Write("one.safetensors", first.Finish());
  Write("two.safetensors", second.Finish());
  Write("model.safetensors.index.json",
        std::string(R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})"));
  const auto weights = OpenSafetensorsWeights(folder_);
  std::vector<float> values(3);
  FindWeight(*weights, "a", 2, 3)->ReadRows(1, 2, values.data());
  EXPECT_EQ(values, (std::vector<float>{4, 5, 6}));
  const auto b = FindWeight(*weights, "b", 1, 2);
  b->ReadRows(0, 1, values.data());
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], 2.0F);
  EXPECT_TRUE(b->bf16_data().has_value());
  EXPECT_EQ(weights->Find("c"), nullptr);
}

TEST_F(SafetensorsFolder, HalvesAreTheirValues) {
  SafetensorsWriter writer;
  const std::vector<std::uint16_t> halves = {0x3C00, 0xC000, 0x3555, 0x0001, 0x7BFF, 0x8000};
  Bytes bytes(2 * halves.size());
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  writer.Add("w", "F16", {3, 2}, bytes);
  Write("model.safetensors", writer.Finish());
  std::vector<float> values(6);
  FindWeight(*OpenSafetensorsWeights(folder_), "w", 3, 2)->ReadRows(0, 3, values.data());
  EXPECT_EQ(values, (std::vector<float>{1.0F, -2.0F, 1365.0F / 4096, 0x1p-24F, 65504.0F, -0.0F}));
}

TEST_F(SafetensorsFolder, AnIndexMayNotLeaveItsFolder) {
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", ""}) {
    Write("model.safetensors.index.json", std::string(R"({"weight_map": {"a": ")") + name + "\"}}");
    EXPECT_THROW(OpenSafetensorsWeights(folder_), Error) << name;
  }
}

TEST_F(SafetensorsFolder, Case62Fp8BlocksKeepTheirExactScales) {
  constexpr int kRows = 130, kColumns = 257;
  SafetensorsWriter writer;
  writer.Add("w.weight", "F8_E4M3", {kRows, kColumns},
             Bytes(static_cast<std::size_t>(kRows * kColumns), std::byte{0x38}));
  writer.AddF32("w.weight_scale_inv", {2, 3}, {0.3F, 0.7F, 1.1F, 1.3F, 1.7F, 1.9F});
  Write("model.safetensors", writer.Finish());
  const auto tensor = OpenSafetensorsWeights(folder_)->Find("w.weight");
  std::vector<float> rows(2 * kColumns);
  tensor->ReadRows(127, 129, rows.data());
  EXPECT_EQ(rows[0], 0.3F);
  EXPECT_EQ(rows[127], 0.3F);
  EXPECT_EQ(rows[128], 0.7F);
  EXPECT_EQ(rows[256], 1.1F);
  EXPECT_EQ(rows[kColumns], 1.3F);
  EXPECT_EQ(rows[kColumns + 256], 1.9F);
}

TEST_F(SafetensorsFolder, Fp8WithoutFittingScalesIsRefused) {
  SafetensorsWriter writer;
  writer.Add("w.weight", "F8_E4M3", {2, 2}, Bytes(4));
  Write("model.safetensors", writer.Finish());
  EXPECT_THROW(OpenSafetensorsWeights(folder_)->Find("w.weight"), Error);
  writer.AddF32("w.weight_scale_inv", {2, 1}, {1, 1});
  Write("model.safetensors", writer.Finish());
  EXPECT_THROW(OpenSafetensorsWeights(folder_)->Find("w.weight"), Error);
}

TEST(SafetensorsFile, Case68EveryCutIsRefused) {
  const Bytes bytes = TwoTensors().Finish();
  ASSERT_NO_THROW(SafetensorsFile::Parse("file.safetensors", bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ErrorOf(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST(SafetensorsFile, Case68AHeadOfOneTerabyteIsRefused) {
  Bytes bytes = TwoTensors().Finish();
  const std::uint64_t length = std::uint64_t{1} << 40;
  std::memcpy(bytes.data(), &length, sizeof(length));
  EXPECT_NE(ErrorOf(bytes).find("head length"), std::string::npos);
}

TEST(SafetensorsFile, Case68WrongEntriesAreRefused) {
  const auto changed = [](const char* key, const nlohmann::json& value) {
    SafetensorsWriter writer = TwoTensors();
    writer.head()["a"][key] = value;
    return ErrorOf(writer.Finish());
  };
  EXPECT_NE(changed("dtype", "Q3").find("dtype Q3"), std::string::npos);
  EXPECT_NE(changed("dtype", 3).find("not an entry"), std::string::npos);
  EXPECT_NE(changed("shape", {2, -3}).find("dimension"), std::string::npos);
  EXPECT_NE(changed("shape", {1ULL << 40, 1ULL << 40}).find("larger"), std::string::npos);
  EXPECT_NE(changed("shape", {2, 2}).find("24 bytes of data for 4"), std::string::npos);
  EXPECT_NE(changed("data_offsets", {24, 0}).find("data [24, 0)"), std::string::npos);
  EXPECT_NE(changed("data_offsets", {0, 1ULL << 62}).find("data [0"), std::string::npos);
  EXPECT_NE(changed("data_offsets", {8, 32}).find("overlaps"), std::string::npos);
}

}  // namespace
}  // namespace quail::infer
