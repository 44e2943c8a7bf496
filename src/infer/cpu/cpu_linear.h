#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "infer/weights/weight_source.h"

namespace quail::infer::cpu {

/// What matrices are multiplied in; sums are f32 in both.
enum class ElementType : std::uint8_t { kF32, kBf16 };
inline std::size_t SizeOf(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

/// Keeps oneDNN's OpenMP to the calling thread as long as it lives: the backend's own pool is what
/// runs in parallel, and no team of spinning threads is left behind.
class OneThreadScope {
 public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  int previous_;
};

/// The most rows of one product: a multiple of the row blocks that vector kernels have (6 with
/// AVX2, 16 and 32 with AVX-512 and AMX), so that no row falls to a kernel for left-over rows.
inline constexpr std::int64_t kMaxProductRows = 96;

class LinearEngine;

/// A matrix [rows, columns] in panels of rows, each packed as oneDNN wants it. A panel's product is
/// dense.
class LinearWeight {
 public:
  struct Panel {
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    dnnl::memory packed;
  };

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::span<const Panel> panels() const { return panels_; }

 private:
  friend class LinearEngine;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<Panel> panels_;
};

/// Y = X W^T on oneDNN, one thread a call. A row's result does not depend on how many rows the call
/// has, nor on its place among them, so packing never changes an answer: oneDNN does not promise
/// that, so each new shape is tried, and sizes of calls that break it are not used. Thread-safe
/// once all is packed.
class LinearEngine {
 public:
  explicit LinearEngine(ElementType type);

  ElementType type() const { return type_; }
  /// The size of the call that computes `rows` rows, 0 < rows <= kMaxProductRows: at least `rows`,
  /// at most kMaxProductRows.
  std::int64_t ProductRows(std::int64_t rows) const;
  /// A panel for each part; very long ones (output heads) are cut. Throws Error{kOutOfMemory}.
  LinearWeight Pack(std::span<const std::shared_ptr<const WeightTensor>> parts);

  struct Product {
    std::int64_t rows = 0;         ///< a value of ProductRows; `x` and `y` have that many
    const std::byte* x = nullptr;  ///< ElementType [rows, columns]
    float* y = nullptr;            ///< f32 [rows, panel rows]
    bool accumulate = false;       ///< Y += X W^T
  };
  /// Throws std::bad_alloc, Error{kDevice}.
  void Multiply(const LinearWeight::Panel& panel, std::int64_t columns, const Product& product,
                std::vector<std::byte>& scratch);
  /// Which of oneDNN's implementations runs a product of that shape ("brg:avx512_core", "ref:any"
  /// ..).
  std::string ImplementationOf(const LinearWeight::Panel& panel, std::int64_t columns,
                               std::int64_t rows, bool accumulate) const;

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>;
  struct Compiled {
    dnnl::memory::desc x;
    dnnl::memory::desc y;
    dnnl::memory::desc scratch;
    dnnl::matmul primitive;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  void Execute(const LinearWeight::Panel& panel, std::int64_t columns, const Product& product,
               std::vector<std::byte>& scratch);
  dnnl::matmul::primitive_desc Describe(const Key& key, const dnnl::memory::desc& weight) const;
  const Compiled& Find(const Key& key, const dnnl::memory::desc& weight);
  LinearWeight::Panel PackPanel(const WeightTensor& part, std::int64_t begin, std::int64_t end);
  void KeepUniformSizes(const LinearWeight::Panel& panel, std::int64_t columns);

  ElementType type_;
  dnnl::memory::data_type data_type_;
  dnnl::engine engine_;
  std::vector<std::int64_t> row_sizes_;  ///< ascending; the last is kMaxProductRows
  std::set<std::pair<std::int64_t, std::int64_t>> tried_;  ///< rows and columns of panels
  std::mutex trial_mutex_;                                 ///< of row_sizes_ and tried_
  std::mutex mutex_;                                       ///< of compiled_
  std::unordered_map<Key, std::unique_ptr<Compiled>, KeyHash> compiled_;
};

}  // namespace quail::infer::cpu
