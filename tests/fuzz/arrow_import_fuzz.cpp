// Arrow data from outside: whatever its counts, offsets, views and indices say, it is refused or
// can be read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../unit/columnar/arrow_builder.h"
#include "columnar/batch.h"
#include "columnar/derived_array.h"
#include "columnar/layout.h"
#include "columnar/validate.h"
#include "quail/error.h"
#include "read_cell.h"

namespace {

using quail::columnar::Batch;
using quail::columnar::Layout;
using quail::columnar::LayoutKind;
using quail::columnar::testing::Bytes;
using quail::columnar::testing::Column;

/// Rows and offsets stay below this, so that buffers of the sizes below are as long as the
/// interface demands: buffers shorter than promised cannot be found and are no subject here.
constexpr std::int64_t kMostRows = 40;
constexpr std::size_t kBufferBytes = 4096;

constexpr std::array<const char*, 24> kFormats = {
    "i", "u",  "+s", "l",    "vu",    "+l", "U", "b", "c",   "C",   "S",     "L",
    "z", "vz", "+L", "+w:2", "d:9,2", "n",  "f", "g", "w:3", "tdD", "+ud:0", "?"};

/// Reads the fuzzer's bytes as choices; zeros when they are used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint8_t Byte() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }
  bool OneIn(int n) { return Byte() % n == n - 1; }
  Bytes Fill() {
    Bytes bytes(kBufferBytes);
    const std::size_t written = Byte();
    for (std::size_t i = 0; i < written; ++i) bytes[i] = Byte();
    return bytes;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

/// Text offsets must stay inside the buffer that they cannot be checked against; their order and
/// sign stay wild.
void BoundOffsets(Bytes& bytes, std::size_t width) {
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    for (std::size_t k = 1; k < width; ++k) {
      const unsigned mask = k == 1 ? 0x0FU : k == width - 1 ? 0x80U : 0x00U;
      bytes[at + k] = static_cast<unsigned char>(bytes[at + k] & mask);
    }
  }
}

std::size_t ChildCount(const Layout& layout, Choices& choices) {
  if (choices.OneIn(16)) return choices.Byte() % 3U;
  switch (layout.kind) {
    case LayoutKind::kStruct:
      return choices.Byte() % 4U;
    case LayoutKind::kList:
    case LayoutKind::kLargeList:
    case LayoutKind::kFixedList:
    case LayoutKind::kOther:
      return 1;
    case LayoutKind::kNull:
    case LayoutKind::kBoolean:
    case LayoutKind::kInteger:
    case LayoutKind::kFloat:
    case LayoutKind::kDecimal:
    case LayoutKind::kFixed:
    case LayoutKind::kText:
    case LayoutKind::kLargeText:
    case LayoutKind::kTextView:
      return 0;
  }
  return 0;
}

void AddBuffers(Column& column, const Layout& layout, Choices& choices) {
  const std::int64_t count =
      layout.kind == LayoutKind::kOther ? 1 : quail::columnar::BufferCount(layout);
  for (std::int64_t i = 0; i < count; ++i) {
    column.buffers.emplace_back(choices.OneIn(8) ? std::nullopt : std::optional(choices.Fill()));
  }
  if (count > 1 && column.buffers[1] && layout.kind == LayoutKind::kText) {
    BoundOffsets(*column.buffers[1], 4);
  }
  if (count > 1 && column.buffers[1] && layout.kind == LayoutKind::kLargeText) {
    BoundOffsets(*column.buffers[1], 8);
  }
  if (layout.kind == LayoutKind::kTextView && choices.OneIn(2)) {
    column.buffers.insert(column.buffers.begin() + 2, choices.Fill());
    Bytes sizes;
    quail::columnar::testing::Put(sizes, std::int64_t{kBufferBytes});
    column.buffers.back() = sizes;
  }
  if (!column.buffers.empty() && choices.OneIn(16)) column.buffers.pop_back();
}

Column MakeColumn(Choices& choices, int depth) {
  Column column;
  column.format = depth == 0 ? "+s" : kFormats[choices.Byte() % kFormats.size()];
  const Layout layout = quail::columnar::ParseLayout(column.format);
  column.name = "c";
  column.length = choices.Byte() % kMostRows - (choices.OneIn(16) ? kMostRows : 0);
  column.offset = choices.OneIn(3) ? choices.Byte() % kMostRows : 0;
  column.null_count = choices.OneIn(3) ? choices.Byte() % kMostRows - 1 : 0;
  AddBuffers(column, layout, choices);
  if (depth < 4) {
    const std::size_t children = ChildCount(layout, choices);
    for (std::size_t i = 0; i < children; ++i) {
      column.children.push_back(MakeColumn(choices, depth + 1));
    }
    if (layout.kind == LayoutKind::kInteger && choices.OneIn(3)) {
      column.dictionary = std::make_shared<Column>(MakeColumn(choices, depth + 1));
    }
  }
  return column;
}

std::size_t ReadAll(const Batch& batch, const Column& table) {
  std::size_t sum = 0;
  for (std::size_t column = 0; column < batch.columns(); ++column) {
    const Column& child = table.children[column];
    const Column& values = child.dictionary ? *child.dictionary : child;
    const Layout layout = quail::columnar::ParseLayout(values.format);
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      if (batch.IsNull(column, row)) continue;
      sum += quail::fuzz::ReadCell(batch, layout, column, row);
    }
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  const Column table = MakeColumn(choices, 0);
  const std::shared_ptr<const ArrowSchema> schema = quail::columnar::testing::MakeSchema(table);
  volatile std::size_t sink = 0;
  try {
    Batch batch(schema, quail::columnar::testing::MakeArray(table));
    sink = ReadAll(batch, table);
    quail::columnar::CheckImportable(*schema);
    const std::shared_ptr<const ArrowArray> array = batch.Release();
    quail::columnar::CheckText(*schema, *array);
    const Batch slice(schema,
                      quail::columnar::SliceRows(array, array->length / 2, array->length / 3));
    sink = ReadAll(slice, table);
    const Batch empty(schema, quail::columnar::MakeEmptyArray(*schema));
  } catch (const quail::Error&) {
    // Refused: what hostile data deserves.
  }
  static_cast<void>(sink);
  return 0;
}
