#include "infer/cuda/gpu_usage.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <optional>

#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {
namespace {

constexpr double kSampleSeconds = 0.1;

// The few parts of NVML's C interface that are used (docs.nvidia.com/deploy/nvml-api); the toolkit
// may come without its header.
using NvmlDevice = struct NvmlDeviceTag*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;

struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus_id)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;  ///< milliwatts
  int (*energy)(NvmlDevice,
                unsigned long long*) = nullptr;  ///< millijoules since the driver loaded
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, Functions& functions) {
  return Find(library, "nvmlInit_v2", functions.init) &&
         Find(library, "nvmlShutdown", functions.shutdown) &&
         Find(library, "nvmlDeviceGetHandleByPciBusId_v2", functions.by_bus_id) &&
         Find(library, "nvmlDeviceGetClockInfo", functions.clock) &&
         Find(library, "nvmlDeviceGetPowerUsage", functions.power) &&
         Find(library, "nvmlDeviceGetTotalEnergyConsumption", functions.energy);
}

}  // namespace

class GpuUsage::Nvml {
 public:
  static std::unique_ptr<Nvml> Open(int cuda_device) {
    char bus_id[32] = {};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), cuda_device) != cudaSuccess) return nullptr;
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    Functions functions;
    if (!FindAll(library, functions) || functions.init() != kSuccess) {
      ::dlclose(library);
      return nullptr;
    }
    NvmlDevice device = nullptr;
    const bool found = functions.by_bus_id(bus_id, &device) == kSuccess;
    auto nvml = std::make_unique<Nvml>(library, functions, device);
    if (!found || !nvml->Joules()) return nullptr;
    return nvml;
  }

  Nvml(void* library, const Functions& functions, NvmlDevice device)
      : library_(library), functions_(functions), device_(device) {}
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    functions_.shutdown();
    ::dlclose(library_);
  }

  void Sample(DeviceUsage& usage) const {
    unsigned megahertz = 0;
    unsigned milliwatts = 0;
    if (functions_.clock(device_, kClockSm, &megahertz) != kSuccess) return;
    if (functions_.power(device_, &milliwatts) != kSuccess) return;
    usage.samples.push_back({static_cast<double>(megahertz), milliwatts * 1e-3});
  }

  std::optional<double> Joules() const {
    unsigned long long millijoules = 0;
    if (functions_.energy(device_, &millijoules) != kSuccess) return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  void* library_;
  Functions functions_;
  NvmlDevice device_;
};

GpuUsage::GpuUsage(int cuda_device) : nvml_(Nvml::Open(cuda_device)) {}

GpuUsage::~GpuUsage() = default;

void GpuUsage::SampleSometimes() {
  if (!nvml_ || since_sample_.seconds() < kSampleSeconds) return;
  nvml_->Sample(usage_);
  since_sample_.Restart();
}

DeviceUsage GpuUsage::Read() {
  usage_.peak_memory_bytes = static_cast<std::int64_t>(PeakDeviceBytes());
  if (nvml_) usage_.joules = nvml_->Joules();
  return usage_;
}

}  // namespace quail::infer::cuda
