#pragma once

#include <cstddef>

#include "columnar/batch.h"
#include "columnar/layout.h"

namespace quail::fuzz {

/// Reads a cell by the accessor of its column's kind; returns something of it, so that the reads
/// are not optimised out. `layout`: of the column's values, not of a dictionary's indices.
inline std::size_t ReadCell(const columnar::Batch& batch, const columnar::Layout& layout,
                            std::size_t column, std::size_t row) {
  switch (layout.kind) {
    case columnar::LayoutKind::kText:
    case columnar::LayoutKind::kLargeText:
    case columnar::LayoutKind::kTextView: {
      std::size_t sum = 0;
      for (const char c : batch.Text(column, row)) sum += static_cast<unsigned char>(c);
      return sum;
    }
    case columnar::LayoutKind::kBoolean:
      return batch.Boolean(column, row) ? 1 : 0;
    case columnar::LayoutKind::kInteger:
    case columnar::LayoutKind::kFloat:
    case columnar::LayoutKind::kDecimal:
      return batch.Real(column, row) > 0 ? 1 : 0;
    case columnar::LayoutKind::kNull:
    case columnar::LayoutKind::kFixed:
    case columnar::LayoutKind::kList:
    case columnar::LayoutKind::kLargeList:
    case columnar::LayoutKind::kFixedList:
    case columnar::LayoutKind::kStruct:
    case columnar::LayoutKind::kOther:
      return 0;
  }
  return 0;
}

}  // namespace quail::fuzz
