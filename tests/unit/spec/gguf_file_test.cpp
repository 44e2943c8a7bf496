#include "spec/gguf_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/utf8.h"
#include "gguf_writer.h"
#include "quail/error.h"
#include "spec/model_spec.h"
#include "test_paths.h"

namespace quail::spec {
namespace {

using Bytes = std::vector<std::byte>;

/// The error of parsing `bytes`; fails the test when there is none.
std::string ErrorOf(const Bytes& bytes, ErrorCode code = ErrorCode::kCorrupt) {
  try {
    GgufFile::Parse("file.gguf", bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("'file.gguf': ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << "no error";
  return "";
}

template <typename T>
Bytes Patched(Bytes bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

TEST(GgufFile, ReadsMetadataAndTensors) {
  GgufWriter writer = TinyLlama();
  writer.Bool("flag", true);
  writer.Strings("words", {"a", "", "longer"});
  const Bytes bytes = writer.Finish();
  const auto file = GgufFile::Parse("file.gguf", bytes);
  EXPECT_EQ(file->String("general.architecture"), "llama");
  EXPECT_EQ(file->Uint("llama.block_count"), 1U);
  EXPECT_FLOAT_EQ(static_cast<float>(file->Number("llama.rope.freq_base")), 5000.0F);
  EXPECT_EQ(file->FindUint("absent"), std::nullopt);
  EXPECT_EQ(file->Strings("words"), (std::vector<std::string_view>{"a", "", "longer"}));
  const GgufTensor* q = file->FindTensor("blk.0.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->rows, 8);
  EXPECT_EQ(q->columns, 8);
  float value = 0;
  std::memcpy(&value, q->data.data() + 9 * sizeof(float), sizeof(value));
  EXPECT_EQ(value, 9.0F);
  EXPECT_EQ(file->FindTensor("absent"), nullptr);
}

TEST(GgufFile, AMissingOrMistypedKeyIsNamed) {
  const Bytes bytes = TinyLlama().Finish();
  const auto file = GgufFile::Parse("file.gguf", bytes);
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { file->String("llama.block_count"); }, [&] { file->Uint("general.name"); },
           [&] { file->Strings("general.name"); }, [&] { file->Number("absent"); }}) {
    EXPECT_THROW(use(), Error);
  }
}

TEST(GgufFile, Case68EveryCutIsRefused) {
  const Bytes bytes = TinyLlama().Finish();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ErrorOf(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST(GgufFile, Case68TheEmbeddedModelCutAtEvery64th) {
  const std::filesystem::path path =
      std::filesystem::path(QUAIL_DEPS_DIR) / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no embedded model";
  const auto mapped = base::MappedFile::Open(path);
  ASSERT_NO_THROW(GgufFile::Parse("file.gguf", mapped.bytes()));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_THROW(GgufFile::Parse("file.gguf", mapped.bytes().first(mapped.bytes().size() / 64 * i)),
                 Error)
        << i;
  }
}

TEST(GgufFile, Case68CountsLengthsAndOffsetsAreNotTrusted) {
  const Bytes bytes = TinyLlama().Finish();
  EXPECT_NE(ErrorOf(Patched(bytes, 0, std::uint32_t{0})).find("magic"), std::string::npos);
  EXPECT_NE(ErrorOf(Patched(bytes, 4, std::uint32_t{4}), ErrorCode::kUnsupported).find("version"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Patched(bytes, 8, std::uint64_t{1} << 63)).find("tensor count at byte 8"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Patched(bytes, 16, std::uint64_t{1} << 61)).find("metadata count at byte 16"),
            std::string::npos);
  // The first key's length, then its value's length.
  EXPECT_NE(ErrorOf(Patched(bytes, 24, std::uint64_t{1} << 40)).find("metadata key"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf(Patched(bytes, 24 + 8 + 20 + 4, ~std::uint64_t{0})).find("general.architecture"),
      std::string::npos);
}

/// Whatever a byte of the head becomes, the message can be shown, names the file and has a reason.
TEST(GgufFile, AWrongByteAnywhereHasAMessageToShow) {
  const Bytes bytes = TinyLlama().Finish();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < 600; ++at) {
    for (const int value : {0, 1, 10, 27, 127, 200, 255}) {
      const Bytes wrong = Patched(bytes, at, static_cast<std::uint8_t>(value));
      try {
        ReadModelSpec(*GgufFile::Parse("file.gguf", wrong));
      } catch (const Error& error) {
        ++refused;
        const std::string_view message = error.what();
        const std::string_view file = "'file.gguf': ";
        ASSERT_TRUE(message.starts_with(file)) << at << " " << value << ": " << message;
        ASSERT_GT(message.size(), file.size() + 10) << at << " " << value << ": " << message;
        ASSERT_EQ(base::Escaped(message), message) << at << " " << value;
      }
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(GgufFile, Case68WrongTensorsAreRefused) {
  const auto with = [](const GgufWriter::Tensor& tensor) {
    GgufWriter writer;
    writer.Add(tensor);
    return writer.Finish();
  };
  const Bytes data(64);
  EXPECT_NE(ErrorOf(with({"t", {}, 0, data})).find("dimensions"), std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {1, 1, 1, 1, 1}, 0, data})).find("dimensions"), std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {0}, 0, data})).find("does not fit"), std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {1ULL << 33, 1ULL << 33}, 0, data})).find("does not fit"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {17}, 0, data})).find("pass the end"), std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {33}, 2, data})).find("blocks of 32"), std::string::npos);
  EXPECT_NE(ErrorOf(with({"t", {16}, 23, data}), ErrorCode::kUnsupported).find("type 23"),
            std::string::npos);
}

TEST(GgufFile, Case68OverlappingAndRepeatedTensorsAreRefused) {
  GgufWriter writer;
  writer.AddF32("first", {8}, std::vector<float>(8));
  writer.AddF32("second", {8}, std::vector<float>(8));
  const Bytes bytes = writer.Finish();
  ASSERT_NO_THROW(GgufFile::Parse("file.gguf", bytes));
  // Each directory entry: name, count of dimensions, one dimension, type, offset.
  const std::size_t second_offset = 24 + (8 + 5 + 4 + 8 + 4 + 8) + (8 + 6 + 4 + 8 + 4);
  EXPECT_NE(ErrorOf(Patched(bytes, second_offset, std::uint64_t{0})).find("overlaps"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Patched(bytes, second_offset, std::uint64_t{31})).find("not aligned"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Patched(bytes, second_offset, std::uint64_t{1} << 62)).find("pass the end"),
            std::string::npos);
  GgufWriter twice;
  twice.AddF32("same", {8}, std::vector<float>(8));
  twice.AddF32("same", {8}, std::vector<float>(8));
  EXPECT_NE(ErrorOf(twice.Finish()).find("twice"), std::string::npos);
}

TEST(GgufFile, AlignmentMustBeAPowerOfTwo) {
  GgufWriter writer;
  writer.Uint32("general.alignment", 48);
  EXPECT_NE(ErrorOf(writer.Finish()).find("alignment 48"), std::string::npos);
}

TEST(GgufFile, AMissingFileIsAnIoError) {
  try {
    GgufFile::Open("/no/such/file.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace quail::spec
