// A safetensors file from anywhere is refused with quail::Error or gives tensors that lie in the
// file.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "infer/weights/safetensors_file.h"
#include "quail/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using quail::infer::SafetensorsFile;
  try {
    const auto file = SafetensorsFile::Parse("fuzz", std::as_bytes(std::span(data, size)));
    for (const auto& [name, entry] : file->entries()) {
      QUAIL_CHECK(entry.data.data() >= file->bytes().data());
      QUAIL_CHECK(entry.data.data() + entry.data.size() <=
                  file->bytes().data() + file->bytes().size());
      if (!entry.type) continue;
      QUAIL_CHECK_EQ(static_cast<std::int64_t>(entry.data.size()),
                     entry.rows * entry.columns * quail::infer::SizeOf(*entry.type));
    }
  } catch (const quail::Error& error) {
    QUAIL_CHECK(error.code() == quail::ErrorCode::kCorrupt);
  }
  return 0;
}
