#include "infer/cpu/cpu_memory.h"

#include <cstring>

namespace quail::infer::cpu {

void Buffer::Reserve(std::size_t bytes) {
  if (bytes <= size_) return;
  const auto line = static_cast<std::size_t>(kAlignment);
  const std::size_t rounded = (bytes + line - 1) / line * line;
  data_.reset();
  size_ = 0;
  data_.reset(static_cast<std::byte*>(::operator new(rounded, kAlignment)));
  std::memset(data_.get(), 0, rounded);
  size_ = rounded;
}

}  // namespace quail::infer::cpu
