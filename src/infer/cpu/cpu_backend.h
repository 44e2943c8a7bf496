#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "infer/backend.h"
#include "infer/cpu/bf16_kernels.h"
#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_linear.h"
#include "infer/cpu/int8_attention.h"

namespace quail::infer::cpu {

/// Of activations, keys and values, the fastest here: bf16 where Bf16IsFast() or attention is of
/// bytes, else f32.
ElementType BestType(ProductType products);

struct CpuOptions {
  std::size_t threads = 0;          ///< 0: one per core that this process may use
  std::optional<ElementType> type;  ///< default: BestType(products)
  std::optional<Isa> isa;  ///< of our own loops; default: the best here. oneDNN chooses for itself.
  const CpuKernels* kernels = nullptr;  ///< instead of those of `isa`, for tests that plant faults
  const Bf16Kernels* bf16 = nullptr;    ///< of attention where `type` is bf16; default: the best
  ProductType products = ProductType::kElements;
  /// Of attention where `products` are kInt8 and `type` is bf16 without AMX; default: if there are
  /// any here.
  const Int8Attention* int8 = nullptr;
};

/// The backend for processors: oneDNN products, own loops for the rest. Verbs are done when they
/// return. A row's results are the same bits for any packing and any number of threads. Throws
/// Error{kDevice} for options that this processor cannot run.
std::unique_ptr<Backend> CreateCpuBackend(const CpuOptions& options = {});

}  // namespace quail::infer::cpu
