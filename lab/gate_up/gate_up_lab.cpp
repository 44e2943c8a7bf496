// Gate, up and silu of a block-fp8 layer: one kernel beside DeepGEMM's product and silu after it,
// at Qwen3-4B's shape. First both must give the same (their parts are tested against double
// precision in tests/parity), over ragged rows and over more tiles than there are multiprocessors;
// then each runs for some seconds on filled buffers. README.md has what came of it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fp8_swiglu.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/weights/block_formats.h"

namespace {

using namespace quail::infer::cuda;  // NOLINT(google-build-using-namespace)

constexpr std::int32_t kColumns = 9728, kDepth = 2560;
constexpr double kSeconds = 3;

DeviceBuffer Upload(const void* data, std::size_t bytes) {
  DeviceBuffer buffer(bytes, "lab");
  CheckCuda(cudaMemcpy(buffer.data(), data, bytes, cudaMemcpyHostToDevice), "lab");
  return buffer;
}

/// Normally distributed values as quantised activations and weights have them.
DeviceBuffer RandomFp8(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 100);
  std::vector<__nv_fp8_e4m3> pool(std::min(count, (std::size_t{1} << 22) + 77));
  for (auto& value : pool) value = __nv_fp8_e4m3(normal(random));
  std::vector<__nv_fp8_e4m3> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = pool[i % pool.size()];
  return Upload(values.data(), count);
}

DeviceBuffer RandomScales(std::size_t count, float around, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> factor(0.5F, 1.5F);
  std::vector<float> scales(count);
  for (float& scale : scales) scale = around * factor(random);
  return Upload(scales.data(), count * sizeof(float));
}

/// Operands for `rows` rows, and room for what either way gives.
struct GateUp {
  explicit GateUp(std::int32_t row_count)
      : rows(row_count),
        pitch((std::int64_t{row_count} + 3) / 4 * 4),
        x(RandomFp8(Elements(kDepth), 1)),
        x_scales(RandomScales(static_cast<std::size_t>(pitch) * kDepth / 128, 0.01F, 2)),
        weight(RandomFp8(std::size_t{2} * kColumns * kDepth, 3)),
        weight_scales(RandomScales(std::size_t{2} * kColumns / 128 * kDepth / 128, 4e-4F, 4)),
        gate_up(Elements(2 * kColumns) * 2, "lab"),
        inner(Elements(kColumns), "lab"),
        inner_scales(static_cast<std::size_t>(pitch) * kColumns / 128 * sizeof(float), "lab") {}

  std::size_t Elements(std::size_t columns) const {
    return static_cast<std::size_t>(rows) * columns;
  }
  Activation out() const {
    return {nullptr, inner.as<__nv_fp8_e4m3>(), inner_scales.as<float>(), pitch};
  }
  void Apart() const {
    LaunchFp8Gemm({x.as<__nv_fp8_e4m3>(),
                   x_scales.as<float>(),
                   pitch,
                   weight.as<__nv_fp8_e4m3>(),
                   weight_scales.as<float>(),
                   gate_up.as<__nv_bfloat16>(),
                   2 * kColumns,
                   {rows, 2 * kColumns, kDepth}},
                  nullptr);
    LaunchSwiGlu(
        {gate_up.as<__nv_bfloat16>(), out(), rows, kColumns, quail::infer::BlockScale::kExact},
        nullptr);
  }
  void Together() const {
    LaunchFp8SwiGlu({x.as<__nv_fp8_e4m3>(), x_scales.as<float>(), pitch, weight.as<__nv_fp8_e4m3>(),
                     weight_scales.as<float>(), out(), rows, kColumns, kDepth,
                     quail::infer::BlockScale::kExact},
                    nullptr);
  }
  /// What is in `inner`, dequantised, after it had been full of NaN.
  std::vector<float> Read(const std::function<void()>& launch) const {
    CheckCuda(cudaMemset(inner.data(), 0xFF, inner.size()), "lab");
    launch();
    ThrowOnFault(cudaDeviceSynchronize(), "the kernel");
    std::vector<std::uint8_t> codes(inner.size());
    std::vector<float> scales(inner_scales.size() / sizeof(float));
    CheckCuda(cudaMemcpy(codes.data(), inner.data(), inner.size(), cudaMemcpyDeviceToHost), "lab");
    CheckCuda(
        cudaMemcpy(scales.data(), inner_scales.data(), inner_scales.size(), cudaMemcpyDeviceToHost),
        "lab");
    std::vector<float> values(codes.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / kColumns, block = i % kColumns / 128;
      values[i] = quail::infer::Fp8ToFloat(codes[i]) *
                  scales[block * static_cast<std::size_t>(pitch) + row];
    }
    return values;
  }

  std::int32_t rows;
  std::int64_t pitch;
  DeviceBuffer x, x_scales, weight, weight_scales, gate_up, inner, inner_scales;
};

/// Both round to e4m3, one of them gate and up to bf16 before: a value may fall to the next step.
bool Validate(std::int32_t rows) {
  const GateUp layer(rows);
  const std::vector<float> wanted = layer.Read([&] { layer.Apart(); });
  double worst = 0;
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> got = layer.Read([&] { layer.Together(); });
    for (std::size_t block = 0; block < got.size(); block += 128) {
      float largest = 0;
      for (std::size_t i = block; i < block + 128; ++i) {
        largest = std::max(largest, std::fabs(wanted[i]));
      }
      for (std::size_t i = block; i < block + 128; ++i) {
        const double error = std::fabs(static_cast<double>(got[i]) - wanted[i]) /
                             (0.14 * std::fabs(wanted[i]) + 0.004 * largest);
        if (!(error <= worst)) worst = error;
      }
    }
  }
  fmt::print("{:6} rows: largest error {:.2f} of what is allowed\n", rows, worst);
  return worst <= 1;
}

std::string ReadGpu() {
  char line[128] = "?\n";
  FILE* pipe =
      popen("nvidia-smi --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits", "r");
  if (pipe != nullptr && std::fgets(line, sizeof(line), pipe) == nullptr) line[0] = '?';
  if (pipe != nullptr) pclose(pipe);
  const std::string text = line;
  return text.substr(0, text.find('\n'));
}

void Measure(const char* name, const std::function<void()>& launch) {
  constexpr double kOperations = 2.0 * 32768 * 2 * kColumns * kDepth;
  launch();
  ThrowOnFault(cudaDeviceSynchronize(), "the kernel");
  const quail::base::Stopwatch watch;
  int launches = 0;
  std::string gpu;
  while (watch.seconds() < kSeconds) {
    for (int i = 0; i < 20; ++i) launch();
    launches += 20;
    if (gpu.empty() && watch.seconds() > kSeconds / 2) gpu = ReadGpu();
    CheckCuda(cudaDeviceSynchronize(), "lab");
  }
  const double seconds = watch.seconds() / launches;
  fmt::print("{:24} {:8.1f} us {:8.1f} TFLOP/s {:6.3f} us/token over 36 layers [{} MHz, W]\n", name,
             seconds * 1e6, kOperations / seconds * 1e-12, seconds * 36e6 / 32768, gpu);
}

}  // namespace

int main() {
  bool right = true;
  for (const std::int32_t rows : {1, 63, 65, 129, 495, 1500}) right &= Validate(rows);
  const GateUp layer(32768);
  Measure("product, then silu", [&] { layer.Apart(); });
  Measure("in one kernel", [&] { layer.Together(); });
  Measure("product, then silu", [&] { layer.Apart(); });
  Measure("in one kernel", [&] { layer.Together(); });
  return right ? 0 : 1;
}
