#include "spec/device_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "fmt/format.h"
#include "quail/error.h"

namespace quail::spec {

namespace {

constexpr const char* kFields[] = {"memory_bytes", "bandwidth", "f32_rate",
                                   "bf16_rate",    "fp8_rate",  "int8_rate"};

double& FieldOf(DeviceSpec& device, std::size_t index) {
  double* fields[] = {&device.memory_bytes, &device.bandwidth, &device.f32_rate,
                      &device.bf16_rate,    &device.fp8_rate,  &device.int8_rate};
  return *fields[index];
}

/// Data sheets give rates with structured sparsity; the dense ones are half of them.
const std::array<DeviceSpec, 6>& Table() {
  static const std::array<DeviceSpec, 6> table = {
      DeviceSpec{"H100", 80e9, 3.35e12, 66.9e12, 0.9895e15, 1.979e15, 1.979e15,
                 "NVIDIA H100 Tensor Core GPU data sheet, SXM5",
                 MeasuredRates{0.467, 0.62, 37e-6,
                               "published calibration on one H100: 7.867 us a token against 3.672, "
                               "attention at 56-69 % of peak, 37 us a join suffix"}},
      DeviceSpec{"H200", 141e9, 4.8e12, 66.9e12, 0.9895e15, 1.979e15, 1.979e15,
                 "NVIDIA H200 Tensor Core GPU data sheet, SXM", std::nullopt},
      DeviceSpec{"A100", 80e9, 2.039e12, 19.5e12, 312e12, 0, 624e12,
                 "NVIDIA A100 80GB Tensor Core GPU data sheet, SXM4", std::nullopt},
      DeviceSpec{"L40S", 48e9, 864e9, 91.6e12, 362.05e12, 733e12, 733e12, "NVIDIA L40S data sheet",
                 std::nullopt},
      DeviceSpec{"RTX 4090", 24e9, 1.008e12, 82.6e12, 165.2e12, 330.3e12, 660.6e12,
                 "NVIDIA Ada GPU architecture white paper, appendix A (FP32 accumulation)",
                 std::nullopt},
      DeviceSpec{"B200", 180e9, 7.7e12, 75e12, 2.25e15, 4.5e15, 4.5e15,
                 "NVIDIA HGX B200 data sheet, one of eight GPUs", std::nullopt},
  };
  return table;
}

[[noreturn]] void Corrupt(const std::filesystem::path& path) {
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{} is no calibration: delete it or run quail calibrate", path.string()));
}

}  // namespace

double DeviceSpec::GemmRate(WeightType type) const {
  const double wide = bf16_rate > 0 ? bf16_rate : f32_rate;
  switch (type) {
    case WeightType::kF32:
      return f32_rate;
    case WeightType::kF16:
    case WeightType::kBf16:
      return wide;
    case WeightType::kFp8Block:
    case WeightType::kFp8Row:
      return fp8_rate > 0 ? fp8_rate : wide;
    case WeightType::kInt8:
      return int8_rate > 0 ? int8_rate : wide;
  }
  return wide;
}

std::span<const DeviceSpec> KnownDevices() { return Table(); }

const DeviceSpec* FindDevice(std::string_view name) {
  for (const DeviceSpec& device : Table()) {
    if (name.find(device.name) != std::string_view::npos) return &device;
  }
  return nullptr;
}

std::filesystem::path CalibrationPath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] != '\0') {
    return std::filesystem::path(cache) / "quail" / "device.json";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/") / ".cache" / "quail" / "device.json";
}

std::optional<DeviceSpec> ReadCalibration(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) Corrupt(path);
  DeviceSpec device;
  device.name = json["name"].get<std::string>();
  device.source = "measured by quail calibrate";
  for (std::size_t i = 0; i < std::size(kFields); ++i) {
    if (!json.contains(kFields[i]) || !json[kFields[i]].is_number()) Corrupt(path);
    FieldOf(device, i) = json[kFields[i]].get<double>();
    if (!(FieldOf(device, i) >= 0) || !std::isfinite(FieldOf(device, i))) Corrupt(path);
  }
  if (device.bandwidth <= 0 || device.AttentionRate() <= 0) Corrupt(path);
  device.measured = MeasuredRates{1, 1, 0, device.source};
  return device;
}

void WriteCalibration(const std::filesystem::path& path, const DeviceSpec& device) {
  nlohmann::json json;
  json["name"] = device.name;
  DeviceSpec copy = device;
  for (std::size_t i = 0; i < std::size(kFields); ++i) json[kFields[i]] = FieldOf(copy, i);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path draft = path.string() + ".part";
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << json.dump(2) << "\n";
    file.flush();
    if (!file) throw Error(ErrorCode::kIo, fmt::format("cannot write {}", draft.string()));
  }
  std::filesystem::rename(draft, path, error);
  if (error) {
    throw Error(ErrorCode::kIo, fmt::format("cannot write {}: {}", path.string(), error.message()));
  }
}

DeviceSpec UncalibratedCpu(unsigned threads) {
  const double cores = std::max(1U, threads);
  DeviceSpec device;
  device.name = "CPU (not calibrated)";
  device.bandwidth = 10e9;
  device.f32_rate = 40e9 * cores;
  device.source = "assumed: 40 GFLOP/s a core, 10 GB/s; run quail calibrate";
  return device;
}

}  // namespace quail::spec
