#include "infer/cpu/bf16_kernels.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace quail::infer::cpu {
namespace {

bool HasAmxBf16() {
  constexpr unsigned kAmxBf16 = 1U << 22;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0;
}

/// Linux keeps a process's tile registers only after it asked for them.
bool MayUseTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<Bf16Unit> DetectUnits() {
  std::vector<Bf16Unit> units;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw")) return units;
  units.push_back(Bf16Unit::kAvx512);
  if (HasAmxBf16() && MayUseTiles()) units.push_back(Bf16Unit::kAmx);
  return units;
}

}  // namespace

std::span<const Bf16Unit> SupportedBf16Units() {
  static const std::vector<Bf16Unit> kUnits = DetectUnits();
  return kUnits;
}

bool Bf16IsFast() {
  const auto units = SupportedBf16Units();
  if (units.empty()) return false;
  return units.back() == Bf16Unit::kAmx || __builtin_cpu_is("amd") != 0;
}

const Bf16Kernels& SelectBf16Kernels(std::optional<Bf16Unit> wanted) {
  const auto supported = SupportedBf16Units();
  QUAIL_CHECK(!supported.empty());
  const Bf16Unit unit = wanted.value_or(supported.back());
  QUAIL_CHECK(std::ranges::find(supported, unit) != supported.end());
  return unit == Bf16Unit::kAmx ? AmxKernels() : Avx512Bf16Kernels();
}

}  // namespace quail::infer::cpu
