#include "columnar/text_value.h"

#include <cstring>

namespace quail::columnar {
namespace {

constexpr std::int64_t kViewBytes = 16;

const char* ViewBytes(const ArrowArray& array, std::int64_t index) {
  return static_cast<const char*>(array.buffers[1]) + index * kViewBytes;
}

}  // namespace

TextView ReadTextView(const ArrowArray& array, std::int64_t index) {
  const char* bytes = ViewBytes(array, index);
  TextView view;
  std::memcpy(&view.length, bytes, 4);
  std::memcpy(&view.block, bytes + 8, 4);
  std::memcpy(&view.offset, bytes + 12, 4);
  return view;
}

bool IsValid(const ArrowArray& array, std::int64_t index) {
  if (array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr) return true;
  return ReadBit(array.buffers[0], index);
}

std::string_view ReadText(const ArrowArray& array, const Layout& layout, std::int64_t index) {
  if (layout.kind == LayoutKind::kTextView) {
    const TextView view = ReadTextView(array, index);
    const auto length = static_cast<std::size_t>(view.length);
    if (view.length <= kInlineTextLength) return {ViewBytes(array, index) + 4, length};
    return {static_cast<const char*>(array.buffers[2 + view.block]) + view.offset, length};
  }
  const std::int64_t begin = ReadOffset(array.buffers[1], layout, index);
  const std::int64_t end = ReadOffset(array.buffers[1], layout, index + 1);
  if (begin == end) return {};
  return {static_cast<const char*>(array.buffers[2]) + begin,
          static_cast<std::size_t>(end - begin)};
}

}  // namespace quail::columnar
