#pragma once

#include <cstdint>
#include <memory>

#include "columnar/batch.h"

namespace quail::columnar {

/// Rows [begin, begin + length) of a struct array as a struct array without an offset of its own:
/// the offset moves into the children, which readers follow more reliably. Shares the buffers and
/// keeps `owner` alive.
OwnedArray SliceRows(std::shared_ptr<const ArrowArray> owner, std::int64_t begin,
                     std::int64_t length);

/// An array without rows of a checked schema. REQUIRES: CheckImportable passed.
OwnedArray MakeEmptyArray(const ArrowSchema& schema);

}  // namespace quail::columnar
