#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "infer/cpu/cpu_kernels.h"

namespace quail::infer::cpu {

/// Cache-line-aligned memory that only grows; what it held before growing is lost. Zero-filled when
/// it grows.
class Buffer {
 public:
  /// Throws std::bad_alloc.
  void Reserve(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Objects that are lent out and come back for the next user. Thread-safe.
template <typename T>
class ReusePool {
 public:
  class Loan {
   public:
    Loan(ReusePool& pool, std::unique_ptr<T> object) : pool_(&pool), object_(std::move(object)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (object_ != nullptr) pool_->Return(std::move(object_));
    }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    ReusePool* pool_;
    std::unique_ptr<T> object_;
  };

  Loan Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);  // so that giving back never fails
      return Loan(*this, std::make_unique<T>());
    }
    std::unique_ptr<T> object = std::move(free_.back());
    free_.pop_back();
    return Loan(*this, std::move(object));
  }

 private:
  void Return(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
  std::size_t made_ = 0;
};

/// What one thread needs for its products; a block is at most kMaxProductRows rows.
struct ProductScratch {
  std::vector<std::byte> primitive;
  // Of int8:
  Buffer row;                   ///< f32 [columns]
  Buffer codes;                 ///< u8 [block, columns]
  Buffer sums;                  ///< s32 [block, panel rows]
  std::vector<RowCode> scales;  ///< [block]
};

/// Rows of activations as products take them.
struct ActivationRows {
  Buffer values;               ///< E [R, columns], of int8 codes
  std::vector<RowCode> codes;  ///< [R], of int8
};

/// What one thread needs while it works on a block of rows or an attention tile.
struct WorkerScratch {
  Buffer rows;
  Buffer row;
  Buffer queries;
  Buffer scores;
  Buffer keys;
  Buffer values;
  Buffer weights;
  Buffer plain_keys;
  Buffer plain_values;
  Buffer output;
  ActivationRows states;
  ProductScratch product;
};

/// Activations of a chunk; E is the element type of products, R rows with room for the last product
/// block.
struct ChunkMemory {
  Buffer hidden;          ///< f32 [R, C]
  Buffer queries;         ///< f32 [R, H * D]
  Buffer keys;            ///< E [K, R, D], of the present layer
  Buffer values;          ///< E [K, R, D]
  Buffer attention;       ///< E [R, H * D]
  Buffer cosine;          ///< f32 [R, D / 2]
  Buffer sine;            ///< f32 [R, D / 2]
  ActivationRows normed;  ///< [R, C]
  ActivationRows inner;   ///< [R, F]
};

}  // namespace quail::infer::cpu
