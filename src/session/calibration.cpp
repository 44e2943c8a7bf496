#include "session/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/cpu/cpu_linear.h"
#include "quail/error.h"

namespace quail::session {
namespace {

using infer::cpu::ElementType;
using infer::cpu::ProductType;

/// The best of some windows is kept: what else the computer does makes any of them slower, none
/// faster.
constexpr int kWindows = 8;
constexpr double kSeconds = 0.05;
constexpr std::int64_t kSize = 1024;
constexpr std::size_t kBytes = std::size_t{256} << 20;

/// A square matrix without a file.
class SquareTensor : public infer::WeightTensor {
 public:
  const std::string& name() const override { return name_; }
  std::int64_t rows() const override { return kSize; }
  std::int64_t columns() const override { return kSize; }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    std::fill_n(out, (end - begin) * kSize, 0.5F);
  }

 private:
  std::string name_ = "calibration";
};

/// Products of kMaxProductRows rows with a 1024 x 1024 matrix, a matrix a thread, as the model's
/// passes make them.
double MeasureProducts(ElementType type, ProductType products, base::ThreadPool& pool) {
  infer::cpu::LinearEngine engine(type, products);
  const std::shared_ptr<const infer::WeightTensor> part = std::make_shared<SquareTensor>();
  const infer::cpu::LinearWeight weight = engine.Pack(std::span(&part, 1));
  const std::int64_t rows = infer::cpu::kMaxProductRows;
  std::atomic<std::int64_t> done = 0;
  const auto work = [&](double seconds) {
    pool.ForEach(pool.size(), [&](std::size_t) {
      const infer::cpu::OneThreadScope one_thread;
      std::vector<std::byte> x(static_cast<std::size_t>(rows * kSize) * SizeOf(type), std::byte{0});
      std::vector<float> y(static_cast<std::size_t>(rows * kSize));
      infer::cpu::ProductScratch scratch;
      const base::Stopwatch watch;
      while (watch.seconds() < seconds) {
        for (const auto& panel : weight.panels()) {
          engine.Multiply(panel, {engine.Prepare(x.data(), rows, kSize, scratch), y.data(), false},
                          scratch);
        }
        done += 1;
      }
    });
  };
  work(kSeconds);
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    done = 0;
    const base::Stopwatch watch;
    work(kSeconds);
    const double operations = 2.0 * static_cast<double>(rows * kSize * kSize * done);
    best = std::max(best, operations / watch.seconds());
  }
  return best;
}

/// Bytes a second read from a buffer that no cache holds, by all threads.
double MeasureReading(base::ThreadPool& pool) {
  const std::vector<std::uint64_t> buffer(kBytes / sizeof(std::uint64_t), 1);
  std::atomic<std::uint64_t> sum = 0;
  const std::size_t part = buffer.size() / pool.size();
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const base::Stopwatch watch;
    pool.ForEach(pool.size(), [&](std::size_t i) {
      const auto* begin = buffer.data() + i * part;
      sum += std::accumulate(begin, begin + part, std::uint64_t{0});
    });
    best = std::max(
        best, static_cast<double>(part * pool.size() * sizeof(std::uint64_t)) / watch.seconds());
  }
  return sum > 0 ? best : 0;
}

void Write(const spec::DeviceSpec& device) {
  const nlohmann::ordered_json json{{"name", device.name},
                                    {"source", device.source},
                                    {"memory_bytes", device.memory_bytes},
                                    {"f32_rate", device.f32_rate},
                                    {"bf16_rate", device.bf16_rate},
                                    {"int8_rate", device.int8_rate},
                                    {"bandwidth", device.bandwidth}};
  const std::filesystem::path path = CalibrationPath();
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush()) {
    throw Error(ErrorCode::kIo, fmt::format("cannot write '{}'", path.string()));
  }
}

}  // namespace

std::filesystem::path CalibrationPath() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "quail" / "device.json";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".cache" / "quail" / "device.json";
}

spec::DeviceSpec MeasureComputer(unsigned threads) {
  base::ThreadPool pool(threads);
  infer::cpu::CpuOptions options;
  options.threads = threads;
  const auto backend = infer::cpu::CreateCpuBackend(options);
  spec::DeviceSpec device;
  device.name = backend->info().device;
  device.memory_bytes = static_cast<double>(backend->info().memory_bytes);
  const bool bf16 = backend->info().compute_type == spec::WeightType::kBf16;
  const ElementType best = bf16 ? ElementType::kBf16 : ElementType::kF32;
  device.f32_rate = MeasureProducts(ElementType::kF32, ProductType::kElements, pool);
  if (bf16) device.bf16_rate = MeasureProducts(best, ProductType::kElements, pool);
  device.int8_rate = MeasureProducts(best, ProductType::kInt8, pool);
  device.bandwidth = MeasureReading(pool);
  device.source = fmt::format("quail calibrate, {} threads", pool.size());
  Write(device);
  return device;
}

std::optional<spec::DeviceSpec> ReadCalibration() {
  const std::filesystem::path path = CalibrationPath();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const auto json = nlohmann::json::parse(text.str(), nullptr, false);
  const auto unreadable = [&](std::string_view what) {
    return Error(ErrorCode::kCorrupt, fmt::format("the calibration '{}' is unreadable ({}): run "
                                                  "quail calibrate",
                                                  path.string(), what));
  };
  if (!json.is_object()) throw unreadable("no JSON object");
  spec::DeviceSpec device;
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const auto word = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  device.name = word("name");
  device.source = word("source");
  device.memory_bytes = number("memory_bytes");
  device.f32_rate = number("f32_rate");
  device.bf16_rate = number("bf16_rate");
  device.int8_rate = number("int8_rate");
  device.bandwidth = number("bandwidth");
  if (device.f32_rate <= 0 || device.bandwidth <= 0) {
    throw unreadable("f32_rate and bandwidth must be above 0");
  }
  return device;
}

}  // namespace quail::session
