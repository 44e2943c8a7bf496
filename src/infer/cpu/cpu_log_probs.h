#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_linear.h"
#include "infer/cpu/cpu_memory.h"

namespace quail::infer::cpu {

/// What log-probabilities are computed with.
struct LogProbTools {
  base::ThreadPool& pool;
  ReusePool<WorkerScratch>& scratch;
  const CpuKernels& kernels;
  LinearEngine& engine;
  const ActivationRows& normed;
};

/// A token and the row of the normed hidden state before it.
struct ScoredState {
  std::int64_t row = 0;
  std::int32_t token = 0;
};

/// log softmax(head x)[token] over the head's first `vocabulary` rows, f32 [states].
std::vector<float> ComputeLogProbs(const LogProbTools& tools, const LinearWeight& head,
                                   std::int32_t vocabulary, std::span<const ScoredState> states);

}  // namespace quail::infer::cpu
