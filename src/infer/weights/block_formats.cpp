#include "infer/weights/block_formats.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace quail::infer {
namespace {

using spec::GgufType;

std::uint16_t LoadU16(const std::uint8_t* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

std::uint32_t LoadU32(const std::uint8_t* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

float LoadHalf(const std::uint8_t* bytes) { return HalfToFloat(LoadU16(bytes)); }

float SignedByte(std::uint8_t byte) { return static_cast<float>(static_cast<std::int8_t>(byte)); }

void ReadQ4_0(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block);
  for (int i = 0; i < 16; ++i) {
    const int byte = block[2 + i];
    out[i] = static_cast<float>((byte & 15) - 8) * scale;
    out[i + 16] = static_cast<float>((byte >> 4) - 8) * scale;
  }
}

void ReadQ4_1(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block);
  const float least = LoadHalf(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int byte = block[4 + i];
    out[i] = static_cast<float>(byte & 15) * scale + least;
    out[i + 16] = static_cast<float>(byte >> 4) * scale + least;
  }
}

void ReadQ5_0(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block);
  const std::uint32_t high = LoadU32(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int byte = block[6 + i];
    const int high_low = static_cast<int>((high >> i) & 1U) << 4;
    const int high_high = static_cast<int>((high >> (i + 16)) & 1U) << 4;
    out[i] = static_cast<float>(((byte & 15) | high_low) - 16) * scale;
    out[i + 16] = static_cast<float>(((byte >> 4) | high_high) - 16) * scale;
  }
}

void ReadQ8_0(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block);
  for (int i = 0; i < 32; ++i) out[i] = SignedByte(block[2 + i]) * scale;
}

/// Eight 6-bit scales and eight 6-bit minima in 12 bytes.
struct PackedScales {
  const std::uint8_t* bytes;

  float scale(int i) const {
    const int value = i < 4 ? bytes[i] & 63 : (bytes[i + 4] & 15) | ((bytes[i - 4] >> 6) << 4);
    return static_cast<float>(value);
  }
  float least(int i) const {
    const int value = i < 4 ? bytes[i + 4] & 63 : (bytes[i + 4] >> 4) | ((bytes[i] >> 6) << 4);
    return static_cast<float>(value);
  }
};

void ReadQ4_K(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block);
  const float least = LoadHalf(block + 2);
  const PackedScales packed{block + 4};
  const std::uint8_t* quants = block + 16;
  for (int pair = 0; pair < 4; ++pair, quants += 32, out += 64) {
    const float scale_low = scale * packed.scale(2 * pair);
    const float least_low = least * packed.least(2 * pair);
    const float scale_high = scale * packed.scale(2 * pair + 1);
    const float least_high = least * packed.least(2 * pair + 1);
    for (int i = 0; i < 32; ++i) {
      out[i] = scale_low * static_cast<float>(quants[i] & 15) - least_low;
      out[i + 32] = scale_high * static_cast<float>(quants[i] >> 4) - least_high;
    }
  }
}

void ReadQ6_K(const std::uint8_t* block, float* out) {
  const float scale = LoadHalf(block + 208);
  for (int half = 0; half < 2; ++half, out += 128) {
    const std::uint8_t* low = block + 64 * half;
    const std::uint8_t* high = block + 128 + 32 * half;
    const std::uint8_t* scales = block + 192 + 8 * half;
    for (int quarter = 0; quarter < 4; ++quarter) {
      const std::uint8_t* nibbles = low + 32 * (quarter % 2);
      for (int i = 0; i < 32; ++i) {
        const int nibble = quarter < 2 ? nibbles[i] & 15 : nibbles[i] >> 4;
        const int value = (nibble | (((high[i] >> (2 * quarter)) & 3) << 4)) - 32;
        out[32 * quarter + i] =
            scale * SignedByte(scales[2 * quarter + i / 16]) * static_cast<float>(value);
      }
    }
  }
}

template <void (*ReadBlock)(const std::uint8_t*, float*)>
void ReadBlocks(GgufType type, const std::uint8_t* data, std::int64_t values, float* out) {
  const spec::GgufBlock block = spec::BlockOf(type);
  for (std::int64_t i = 0; i < values; i += block.values, data += block.bytes) {
    ReadBlock(data, out + i);
  }
}

}  // namespace

float Fp8ToFloat(std::uint8_t value) {
  const int exponent = (value >> 3) & 15;
  const int mantissa = value & 7;
  const float sign = (value & 0x80) != 0 ? -1.0F : 1.0F;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9F;
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

void Dequantise(GgufType type, const std::byte* data, std::int64_t values, float* out) {
  QUAIL_CHECK_EQ(values % spec::BlockOf(type).values, 0);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data);
  switch (type) {
    case GgufType::kF32:
      std::memcpy(out, bytes, static_cast<std::size_t>(values) * sizeof(float));
      return;
    case GgufType::kF16:
      for (std::int64_t i = 0; i < values; ++i) out[i] = LoadHalf(bytes + 2 * i);
      return;
    case GgufType::kBf16:
      for (std::int64_t i = 0; i < values; ++i) out[i] = Bf16ToFloat(LoadU16(bytes + 2 * i));
      return;
    case GgufType::kQ4_0:
      return ReadBlocks<ReadQ4_0>(type, bytes, values, out);
    case GgufType::kQ4_1:
      return ReadBlocks<ReadQ4_1>(type, bytes, values, out);
    case GgufType::kQ5_0:
      return ReadBlocks<ReadQ5_0>(type, bytes, values, out);
    case GgufType::kQ8_0:
      return ReadBlocks<ReadQ8_0>(type, bytes, values, out);
    case GgufType::kQ4_K:
      return ReadBlocks<ReadQ4_K>(type, bytes, values, out);
    case GgufType::kQ6_K:
      return ReadBlocks<ReadQ6_K>(type, bytes, values, out);
  }
  QUAIL_CHECK(false);
}

}  // namespace quail::infer
