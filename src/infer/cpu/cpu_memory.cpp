#include "infer/cpu/cpu_memory.h"

#include <cstring>
#include <new>

namespace quail::infer::cpu {

void Buffer::Reserve(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  if (bytes <= size_) return;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset();
  size_ = 0;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_.get(), 0, rounded);
  size_ = rounded;
}

}  // namespace quail::infer::cpu
