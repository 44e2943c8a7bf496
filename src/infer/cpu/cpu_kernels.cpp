#include "infer/cpu/cpu_kernels.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cpu {
namespace {

std::vector<Isa> DetectIsas() {
  std::vector<Isa> isas = {Isa::kBaseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    isas.push_back(Isa::kAvx512);
  }
  return isas;
}

std::string ReadProcessorName() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* part = words.data() + 4 * i;
    if (__get_cpuid(0x80000002U + i, part, part + 1, part + 2, part + 3) == 0) return "x86-64";
  }
  const std::string name(reinterpret_cast<const char*>(words.data()), sizeof(words));
  return name.substr(0, name.find('\0'));
}

const CpuKernels& KernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return BaselineKernels();
    case Isa::kAvx2:
      return Avx2Kernels();
    case Isa::kAvx512:
      return Avx512Kernels();
  }
  QUAIL_CHECK(false);
}

}  // namespace

std::span<const Isa> SupportedIsas() {
  static const std::vector<Isa> kIsas = DetectIsas();
  return kIsas;
}

const CpuKernels& SelectKernels(std::optional<Isa> wanted) {
  const std::span<const Isa> supported = SupportedIsas();
  if (!wanted) return KernelsOf(supported.back());
  for (const Isa isa : supported) {
    if (isa == *wanted) return KernelsOf(isa);
  }
  throw Error(ErrorCode::kDevice,
              fmt::format("this processor does not run {} code", KernelsOf(*wanted).name));
}

std::string_view ProcessorName() {
  static const std::string kName = ReadProcessorName();
  return kName;
}

}  // namespace quail::infer::cpu
