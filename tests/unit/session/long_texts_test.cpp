#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/arrow_c_data.h"
#include "quail/session.h"
#include "test_paths.h"

namespace quail {
namespace {

/// A column of large_utf8 in three chunks of one text each; all of them lie in one buffer of more
/// than 2^31 bytes, to which the chunks' offsets count from its beginning.
class LongTexts {
 public:
  static constexpr std::int64_t kBytes = (std::int64_t{1} << 31) + (std::int64_t{96} << 20);
  static constexpr std::int64_t kChunks = 3;
  static constexpr std::string_view kMark = "snow at the end";

  LongTexts() : data_(static_cast<std::size_t>(kBytes), 'x') {
    for (std::int64_t chunk = 0; chunk <= kChunks; ++chunk) ends_[chunk] = kBytes / kChunks * chunk;
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
      data_[static_cast<std::size_t>(ends_[chunk])] = static_cast<char>('0' + chunk);
    }
    const auto last = static_cast<std::size_t>(ends_[kChunks]);
    std::memcpy(data_.data() + last - kMark.size(), kMark.data(), kMark.size());
    column_ = {"U", "body", nullptr, 0, 0, nullptr, nullptr, Release<ArrowSchema>, nullptr};
  }

  ArrowArrayStream Stream() {
    ArrowArrayStream stream{};
    stream.private_data = this;
    stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
      auto& texts = *static_cast<LongTexts*>(self->private_data);
      texts.columns_ = {&texts.column_};
      *out = {"+s",   "", nullptr, 0, 1, texts.columns_.data(), nullptr, Release<ArrowSchema>,
              nullptr};
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
      static_cast<LongTexts*>(self->private_data)->Next(*out);
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) { return ""; };
    stream.release = [](ArrowArrayStream* self) { self->release = nullptr; };
    return stream;
  }

 private:
  template <typename T>
  static void Release(T* self) {
    self->release = nullptr;
  }

  void Next(ArrowArray& out) {
    out = {};
    if (next_ == kChunks) return;
    buffers_ = {nullptr, &ends_[next_++], data_.data()};
    text_ = {1, 0, 0, 3, 0, buffers_.data(), nullptr, nullptr, Release<ArrowArray>, nullptr};
    arrays_ = {&text_};
    out = {1, 0, 0, 1, 1, none_.data(), arrays_.data(), nullptr, Release<ArrowArray>, nullptr};
  }

  std::vector<char> data_;
  std::array<std::int64_t, kChunks + 1> ends_{};
  std::int64_t next_ = 0;
  ArrowSchema column_{};
  std::array<ArrowSchema*, 1> columns_{};
  ArrowArray text_{};
  std::array<ArrowArray*, 1> arrays_{};
  std::array<const void*, 3> buffers_{};
  std::array<const void*, 1> none_{};
};

/// A field of /proc in bytes; 0 where there is none.
std::int64_t KilobytesOf(const char* file, std::string_view field) {
  std::ifstream lines(file);
  for (std::string name; lines >> name;) {
    std::int64_t value = 0;
    if (name == field && lines >> value) return value * 1024;
    lines.ignore(1 << 16, '\n');
  }
  return 0;
}

std::string Only(Session& session, const std::string& sql) {
  const auto result = session.Run(sql, {sql, 0}, {});
  std::string row;
  for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
    for (const auto& cell : rows.at(0)) row += cell.value_or("NULL") + "|";
  }
  return row;
}

TEST(LongTexts, TwoGigabytesInThreeChunksAreJudged) {
  if (std::getenv("QUAIL_TEST_LONG_TEXTS") == nullptr) {
    GTEST_SKIP() << "takes half a minute and 12 GB; set QUAIL_TEST_LONG_TEXTS=1 to run it";
  }
  if (KilobytesOf("/proc/meminfo", "MemAvailable:") < std::int64_t{12} << 30) {
    GTEST_SKIP() << "less than 12 GB of memory are available";
  }
  const std::filesystem::path oracle = testing::TempDir() + "long_texts_test.jsonl";
  std::ofstream(oracle) << "{\"contains\": [\"snow at the end\"], \"verdict\": true}\n"
                           "{\"verdict\": false}\n";
  Config config;
  config.oracle = oracle.string();
  config.duckdb_library = QUAIL_DEPS_DIR + std::string("/duckdb/libduckdb.so");
  const auto session = Session::Open(config);
  LongTexts texts;
  ArrowArrayStream stream = texts.Stream();
  session->RegisterStream("t", &stream);
  EXPECT_EQ(Only(*session,
                 "SELECT count(*), sum(strlen(body)), string_agg(body[1], '' ORDER BY "
                 "body[1]) FROM t"),
            "3|" + std::to_string(LongTexts::kBytes / 3 * 3) + "|012|");
  const std::int64_t before = KilobytesOf("/proc/self/status", "VmHWM:");
  EXPECT_EQ(Only(*session, "SELECT string_agg(body[1], ',') FROM t WHERE AI_FILTER(body)"), "2|");
  const std::int64_t beyond = KilobytesOf("/proc/self/status", "VmHWM:") - before;
  // Once in the store of texts and once on the way there; little that does not grow with them.
  EXPECT_LE(beyond, 2 * LongTexts::kBytes + (std::int64_t{64} << 20));
  RecordProperty("bytes_beyond_duckdb", std::to_string(beyond));
  std::filesystem::remove(oracle);
}

}  // namespace
}  // namespace quail
