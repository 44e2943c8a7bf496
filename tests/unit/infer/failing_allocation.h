#pragma once

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

/// Replaces operator new of a test program: an allocation can be told to fail, and what is
/// allocated is counted. For one source file of a program.
namespace quail::infer {

/// While there is one, the allocation that is the `at`th of all threads fails, counted from 1.
class FailingAllocation {
 public:
  explicit FailingAllocation(long at) {
    left = at;
    armed = true;
  }
  ~FailingAllocation() { armed = false; }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  /// Whether the last one has failed an allocation. What asks for memory that it can do without
  /// (std::stable_sort) goes on.
  static bool happened() { return left <= 0; }
  static bool Fails() { return armed.load(std::memory_order_relaxed) && left.fetch_sub(1) == 1; }

 private:
  static inline std::atomic<bool> armed{false};
  static inline std::atomic<long> left{0};
};

/// Bytes that operator new has given and operator delete has not taken back.
inline std::atomic<std::size_t> allocated_bytes{0};

inline void* AllocateOrFail(std::size_t bytes, std::size_t alignment) {
  if (FailingAllocation::Fails()) throw std::bad_alloc();
  const std::size_t wanted = bytes == 0 ? 1 : bytes;
  const std::size_t rounded = (wanted + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  allocated_bytes.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

inline void Free(void* memory) {
  allocated_bytes.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace quail::infer

void* operator new(std::size_t bytes) {
  return quail::infer::AllocateOrFail(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return quail::infer::AllocateOrFail(bytes, static_cast<std::size_t>(alignment));
}
// The library's own would do; a sanitizer's does not come here.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return quail::infer::AllocateOrFail(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { quail::infer::Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { quail::infer::Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { quail::infer::Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  quail::infer::Free(memory);
}
