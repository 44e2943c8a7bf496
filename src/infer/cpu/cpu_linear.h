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

#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/weights/weight_source.h"

namespace quail::infer::cpu {

/// What activations, keys and values are kept in; sums of products are f32 in both.
enum class ElementType : std::uint8_t { kF32, kBf16 };
inline std::size_t SizeOf(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

/// What products multiply: elements as they are, or bytes. Then a weight's row has one scale for
/// its signed bytes (a file's own blocks of 32 are read and rounded again), a row of activations
/// one for its unsigned ones, found as it comes; sums are exact.
enum class ProductType : std::uint8_t { kElements, kInt8 };

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
    // Of int8:
    std::vector<float> scales;       ///< [rows]
    std::vector<std::int32_t> sums;  ///< [rows], of the codes
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
  struct DataTypes {
    dnnl::memory::data_type x, weight, y;
  };

  /// `kernels` outlives it. Throws Error{kDevice}.
  explicit LinearEngine(ElementType type, ProductType products = ProductType::kElements,
                        const CpuKernels& kernels = SelectKernels());

  ElementType type() const { return type_; }
  ProductType products() const { return products_; }
  /// Largest code of an int8 weight: 127, or 63 where the processor adds two products of bytes in
  /// 16 bits (without VNNI).
  std::int32_t weight_limit() const { return weight_limit_; }
  /// The size of the call that computes `rows` rows, 0 < rows <= kMaxProductRows: at least `rows`,
  /// at most kMaxProductRows.
  std::int64_t ProductRows(std::int64_t rows) const;
  /// A panel for each part; very long ones (output heads) are cut. Throws Error{kOutOfMemory}.
  LinearWeight Pack(std::span<const std::shared_ptr<const WeightTensor>> parts);

  /// Rows of X as products take them. Those of int8 lie in a scratch, until the next ones.
  struct Input {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    const std::byte* values = nullptr;
    const RowCode* codes = nullptr;  ///< [rows], of int8
  };
  /// `x`: ElementType [rows, columns] with room for ProductRows(rows), which lives as long as the
  /// result. REQUIRES: 0 < rows <= kMaxProductRows. Throws std::bad_alloc.
  Input Prepare(const std::byte* x, std::int64_t rows, std::int64_t columns,
                ProductScratch& scratch) const;
  /// Of a row of ActivationRows.
  std::size_t RowBytes(std::int64_t columns) const;
  /// Throws std::bad_alloc.
  void Reserve(std::int64_t count, std::int64_t columns, ActivationRows& rows) const;
  /// Puts f32 [columns] in place of a row. `x` is lost.
  void Store(float* x, std::int64_t columns, std::int64_t row, ActivationRows& rows) const;
  /// Of rows [first, first + count). REQUIRES: as for Prepare.
  Input RowsOf(const ActivationRows& rows, std::int64_t first, std::int64_t count,
               std::int64_t columns) const;

  struct Product {
    Input x;
    float* y = nullptr;       ///< f32 [ProductRows(x.rows), panel rows]
    bool accumulate = false;  ///< Y += X W^T
  };
  /// Throws std::bad_alloc, Error{kDevice}.
  void Multiply(const LinearWeight::Panel& panel, const Product& product, ProductScratch& scratch);
  /// A product whose rows are there one by one, as Finish makes them.
  struct Unfinished {
    const LinearWeight::Panel* panel = nullptr;
    Product product;
    const std::int32_t* sums = nullptr;  ///< of int8
  };
  /// As Multiply, but a row is for the caller to finish, while it works on it. With `accumulate`
  /// the scratch is taken until all are.
  Unfinished Begin(const LinearWeight::Panel& panel, const Product& product,
                   ProductScratch& scratch);
  void Finish(const Unfinished& product, std::int64_t row) const {
    if (products_ == ProductType::kInt8) FinishInt8(product, row);
  }
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

  /// A call of oneDNN: y is f32, s32 of int8.
  struct Call {
    std::int64_t rows = 0;  ///< a value of ProductRows
    std::int64_t columns = 0;
    const std::byte* x = nullptr;
    void* y = nullptr;
    bool accumulate = false;
  };
  void Execute(const LinearWeight::Panel& panel, const Call& call, std::vector<std::byte>& scratch);
  void FinishInt8(const Unfinished& begun, std::int64_t row) const;
  dnnl::matmul::primitive_desc Describe(const Key& key, const dnnl::memory::desc& weight) const;
  const Compiled& Find(const Key& key, const dnnl::memory::desc& weight);
  dnnl::memory PackValues(void* values, dnnl::memory::data_type type, std::int64_t rows,
                          std::int64_t columns) const;
  LinearWeight::Panel PackPanel(const WeightTensor& part, std::int64_t begin,
                                std::int64_t end) const;
  void Try(const LinearWeight::Panel& panel, std::int64_t columns);
  void KeepUniformSizes(const LinearWeight::Panel& panel, std::int64_t columns);
  bool SumsAreExact(std::int64_t rows, std::int64_t columns, std::int32_t limit);

  ElementType type_;
  ProductType products_;
  DataTypes data_types_;
  const CpuKernels& kernels_;
  std::int32_t weight_limit_ = 127;
  dnnl::engine engine_;
  std::vector<std::int64_t> row_sizes_;  ///< ascending; the last is kMaxProductRows
  std::set<std::pair<std::int64_t, std::int64_t>> tried_;  ///< rows and columns of panels
  std::mutex trial_mutex_;                                 ///< of row_sizes_ and tried_
  std::mutex mutex_;                                       ///< of compiled_
  std::unordered_map<Key, std::unique_ptr<Compiled>, KeyHash> compiled_;
};

}  // namespace quail::infer::cpu
