#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/tensor_map.h"

/// Block-scaled fp8 products by DeepGEMM's sm90 kernel (github.com/deepseek-ai/DeepGEMM, 1x128
/// activation and 128x128 weight scales, promotion in fp32): persistent, TMA-fed, n and k at run
/// time. FLOPs: 2mnk; bytes: mk + nk + 2mn.
namespace quail::infer::cuda {
namespace {

constexpr unsigned kSms = 132;
constexpr unsigned kBlockK = 128;
constexpr unsigned kTmaThreads = 128;
constexpr unsigned kMathThreads = 256;

constexpr std::size_t Align(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

template <unsigned kBlockM, unsigned kBlockN, unsigned kStages, unsigned kCluster>
struct Variant {
  static constexpr auto kernel = deep_gemm::sm90_fp8_gemm_1d2d_impl<
      cute::UMMA::Major::K, 0, 0, 0, 1, kBlockM, kBlockN, kBlockK, 128, 128, 128, kStages,
      kTmaThreads, kMathThreads, kCluster, true, kSms, deep_gemm::GemmType::Normal,
      cutlass::bfloat16_t, deep_gemm::epilogue::transform::EpilogueIdentity>;

  /// Bytes as the kernel lays them out: D tile, stages of A, B and A's scales, B's scales,
  /// barriers.
  static std::size_t SharedBytes(std::int64_t k) {
    const std::size_t output = Align(kBlockM * kBlockN * 2, 1024);
    const std::size_t stage = (kBlockM + kBlockN) * kBlockK + Align(kBlockM * 4, 128);
    const std::size_t b_scales =
        Align(static_cast<std::size_t>(k / kBlockK) * (kBlockK % kBlockN == 0 ? 1 : 2) * 4, 8);
    return output + kStages * stage + b_scales + 2 * kStages * 8;
  }

  static void Launch(const Fp8GemmArguments& a, cudaStream_t stream) {
    constexpr std::size_t kLimit = 232448;
    static const cudaError_t configured =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kLimit);
    CheckCuda(configured, "fp8 GEMM's shared memory");
    const auto m = static_cast<std::uint64_t>(a.shape.m);
    const auto n = static_cast<std::uint64_t>(a.shape.n);
    const auto k = static_cast<std::uint64_t>(a.shape.k);
    const std::size_t shared = SharedBytes(a.shape.k);
    QUAIL_CHECK_LE(shared, kLimit);
    CUtensorMap map_a = ByteMatrixMap(a.a, m, k, kBlockM);
    CUtensorMap map_b = ByteMatrixMap(a.b, n, k, kBlockN);
    CUtensorMap map_d = EncodeTensorMap({a.out,
                                         CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                         2,
                                         {n, m, 1},
                                         {static_cast<std::uint64_t>(a.out_stride) * 2, 0},
                                         {64, kBlockM, 1},
                                         CU_TENSOR_MAP_SWIZZLE_128B});
    CUtensorMap map_scales = ScalesMap(a.a_scales, m, k / kBlockK, a.a_scale_pitch, kBlockM);
    auto* b_scales = const_cast<float*>(a.b_scales);
    int* grouped_layout = nullptr;
    auto shape_m = static_cast<std::uint32_t>(m);
    auto shape_n = static_cast<std::uint32_t>(n);
    auto shape_k = static_cast<std::uint32_t>(k);
    void* arguments[] = {&b_scales, &grouped_layout, &shape_m, &shape_n,   &shape_k,
                         &map_a,    &map_b,          &map_d,   &map_scales};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kSms);
    config.blockDim = dim3(kTmaThreads + kMathThreads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = kCluster;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
    CheckCuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments),
              "sm90_fp8_gemm_1d2d");
  }
};

}  // namespace

void LaunchFp8Gemm(const Fp8GemmArguments& arguments, cudaStream_t stream) {
  if (arguments.shape.m == 0) return;
  const std::optional<Fp8Gemm> variant = SelectFp8Gemm(arguments.shape);
  QUAIL_CHECK(variant.has_value());
  switch (*variant) {
    case Fp8Gemm::k256x128:
      Variant<256, 128, 3, 2>::Launch(arguments, stream);
      return;
    case Fp8Gemm::k128x128:
      Variant<128, 128, 5, 1>::Launch(arguments, stream);
      return;
  }
}

}  // namespace quail::infer::cuda
