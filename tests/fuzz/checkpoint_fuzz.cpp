// Any bytes as a checkpoint file: refused with quail::Error, or opened without its broken
// records; then what it holds is kept, what is added is found again, and nothing is cut twice.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "exec/checkpoint_file.h"
#include "memory_file.h"
#include "quail/error.h"

namespace {

using quail::base::Hash128;
using quail::exec::CheckpointFile;
using quail::exec::Verdict;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckReopened(const std::string& path, std::size_t held, const Hash128& added) {
  const auto again = CheckpointFile::Open(path);
  Require(again->dropped_bytes() == 0 && again->size() == held);
  const auto found = again->Find(added);
  Require(found && found->verdict != Verdict::kUndecided && found->verdict != Verdict::kError);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const quail::fuzz::MemoryFile file(data, size);
  const Hash128 added{0x5eed, 0x5eed};
  std::size_t held = 0;
  try {
    const auto checkpoint = CheckpointFile::Open(file.path());
    Require(checkpoint->dropped_bytes() <= size);
    const bool known = checkpoint->Find(added).has_value();
    held = checkpoint->size() + (known ? 0 : 1);
    checkpoint->Keep(added, {Verdict::kTrue, 1.5F});
    checkpoint->Flush();
    Require(checkpoint->size() == held);
  } catch (const quail::Error& error) {
    Require(error.code() == quail::ErrorCode::kCorrupt);
    return 0;
  }
  CheckReopened(file.path(), held, added);
  return 0;
}
