#include "infer/cpu/kv_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "quail/error.h"

namespace quail::infer::cpu {
namespace {

TEST(KvMemory, VectorsOfDifferentPlacesAreApart) {
  const KvMemory memory({2, 3, 4}, 5, sizeof(float));
  EXPECT_EQ(memory.bytes_per_slot(), 2 * 2 * 3 * 4 * 4);
  float next = 0;
  const auto each = [&](auto&& use) {
    for (std::int32_t layer = 0; layer < 2; ++layer) {
      for (std::int32_t head = 0; head < 3; ++head) {
        for (std::int64_t slot = 0; slot < 5; ++slot) {
          use(memory.Keys(layer, head, slot));
          use(memory.Values(layer, head, slot));
        }
      }
    }
  };
  each([&](std::byte* vector) {
    const float values[4] = {next, next, next, next};
    std::memcpy(vector, values, sizeof(values));
    ++next;
  });
  next = 0;
  each([&](const std::byte* vector) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(reinterpret_cast<const float*>(vector)[i], next);
    ++next;
  });
}

TEST(KvMemory, Case55TheLastElementOfMoreThanTwoToThe31) {
  constexpr std::int64_t kSlots = (std::int64_t{1} << 31) / 128 + 10;
  try {
    const KvMemory memory({1, 1, 128}, kSlots, 2);
    std::byte* last = memory.Values(0, 0, kSlots - 1) + memory.vector_bytes() - 1;
    *last = std::byte{42};
    EXPECT_EQ(last - memory.Keys(0, 0, 0), 2 * kSlots * 128 * 2 - 1);
    EXPECT_EQ(*last, std::byte{42});
  } catch (const Error& error) {
    GTEST_SKIP() << "skipped: " << error.what();
  }
}

TEST(KvMemory, TooMuchIsAnErrorWithTheSizes) {
  for (const std::int64_t slots : {std::int64_t{1} << 45, std::int64_t{1} << 62}) {
    try {
      const KvMemory memory({30, 3, 64}, slots, 4);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      EXPECT_NE(std::string(error.what()).find("46080 bytes a token"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace quail::infer::cpu
