#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "base/mapped_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Runs a fuzz target once on every file of a folder: the way without libFuzzer.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const auto file = quail::base::MappedFile::Open(entry.path());
    const auto* data = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    LLVMFuzzerTestOneInput(data, file.bytes().size());
    ++count;
  }
  std::printf("%zu inputs replayed\n", count);
  return count == 0 ? 1 : 0;
}
