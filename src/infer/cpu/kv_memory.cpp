#include "infer/cpu/kv_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cpu {

KvMemory::KvMemory(const KvShape& shape, std::int64_t slots, std::size_t element_bytes)
    : shape_(shape), slots_(slots), element_bytes_(element_bytes) {
  QUAIL_CHECK_GE(slots, 0);
  const std::int64_t per_slot = bytes_per_slot();
  std::int64_t size = 0;
  const bool overflow = __builtin_mul_overflow(per_slot, slots, &size);
  if (size == 0 && !overflow) return;
  void* data = overflow ? MAP_FAILED
                        : ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("no memory for the KV of {} tokens at {} bytes a token", slots, per_slot));
  }
  data_ = static_cast<std::byte*>(data);
  size_ = static_cast<std::size_t>(size);
}

KvMemory::~KvMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

KvMemory::KvMemory(KvMemory&& other) noexcept { *this = std::move(other); }

KvMemory& KvMemory::operator=(KvMemory&& other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(slots_, other.slots_);
  std::swap(element_bytes_, other.element_bytes_);
  std::swap(size_, other.size_);
  std::swap(data_, other.data_);
  return *this;
}

std::int64_t KvMemory::bytes_per_slot() const {
  return std::int64_t{2} * shape_.layers * shape_.kv_heads * shape_.head_dim *
         static_cast<std::int64_t>(element_bytes_);
}

void KvMemory::CopyOut(std::int64_t first_slot, std::int64_t slots,
                       std::span<std::byte> host) const {
  QUAIL_CHECK_EQ(static_cast<std::int64_t>(host.size()), slots * bytes_per_slot());
  QUAIL_CHECK(first_slot >= 0 && first_slot + slots <= slots_);
  std::byte* out = host.data();
  for (std::int64_t slot = first_slot; slot < first_slot + slots; ++slot) {
    for (std::int32_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
        std::memcpy(out, Keys(layer, head, slot), vector_bytes());
        std::memcpy(out + vector_bytes(), Values(layer, head, slot), vector_bytes());
        out += 2 * vector_bytes();
      }
    }
  }
}

void KvMemory::CopyIn(std::int64_t first_slot, std::int64_t slots,
                      std::span<const std::byte> host) {
  QUAIL_CHECK_EQ(static_cast<std::int64_t>(host.size()), slots * bytes_per_slot());
  QUAIL_CHECK(first_slot >= 0 && first_slot + slots <= slots_);
  const std::byte* in = host.data();
  for (std::int64_t slot = first_slot; slot < first_slot + slots; ++slot) {
    for (std::int32_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
        std::memcpy(Keys(layer, head, slot), in, vector_bytes());
        std::memcpy(Values(layer, head, slot), in + vector_bytes(), vector_bytes());
        in += 2 * vector_bytes();
      }
    }
  }
}

}  // namespace quail::infer::cpu
