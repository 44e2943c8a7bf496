#include "columnar/validate.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "columnar/layout.h"
#include "columnar/text_value.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

/// Deeper nesting is refused, so that a hostile schema cannot exhaust the stack.
constexpr int kMaxDepth = 64;

/// A column's place for messages: its name, and those of the columns around it.
struct Place {
  const Place* parent = nullptr;
  const ArrowSchema* schema = nullptr;
  int depth = 0;

  Place Child(const ArrowSchema& child) const { return {this, &child, depth + 1}; }
  std::string Path() const {
    if (parent == nullptr) return "";
    const std::string outer = parent->Path();
    const char* name = schema->name == nullptr ? "" : schema->name;
    return outer.empty() ? name : fmt::format("{}.{}", outer, name);
  }
};

[[noreturn]] void Refuse(const Place& place, std::string_view what) {
  const std::string path = place.Path();
  if (path.empty()) throw Error(ErrorCode::kCorrupt, fmt::format("Arrow data: {}", what));
  throw Error(ErrorCode::kCorrupt, fmt::format("Arrow data, column '{}': {}", path, what));
}

std::int64_t ExpectedChildren(const Layout& layout, std::int64_t actual) {
  switch (layout.kind) {
    case LayoutKind::kStruct:
    case LayoutKind::kOther:
      return actual;
    case LayoutKind::kList:
    case LayoutKind::kLargeList:
    case LayoutKind::kFixedList:
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
  return actual;
}

void CheckSchemaAt(const Place& place) {
  const ArrowSchema& schema = *place.schema;
  if (place.depth > kMaxDepth) Refuse(place, "nested too deeply");
  if (schema.release == nullptr) Refuse(place, "the schema was released");
  if (schema.format == nullptr) Refuse(place, "the format is missing");
  const Layout layout = ParseLayout(schema.format);
  if (schema.n_children < 0 || schema.n_children != ExpectedChildren(layout, schema.n_children)) {
    Refuse(place,
           fmt::format("{} children do not fit the format '{}'", schema.n_children, schema.format));
  }
  if (schema.n_children > 0 && schema.children == nullptr) Refuse(place, "children are missing");
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) Refuse(place, fmt::format("child {} is missing", i));
    CheckSchemaAt(place.Child(*schema.children[i]));
  }
  if (schema.dictionary == nullptr) return;
  if (layout.kind != LayoutKind::kInteger) Refuse(place, "dictionary indices are not integers");
  if (schema.dictionary->dictionary != nullptr) Refuse(place, "a dictionary of dictionaries");
  CheckSchemaAt(place.Child(*schema.dictionary));
}

void CheckCounts(const Place& place, const ArrowArray& array) {
  if (array.release == nullptr) Refuse(place, "the array was released");
  if (array.length < 0 || array.offset < 0) Refuse(place, "negative length or offset");
  if (array.length > std::numeric_limits<std::int64_t>::max() / 32 - array.offset) {
    Refuse(place, "length and offset overflow");
  }
  if (array.null_count < -1 || array.null_count > array.length) {
    Refuse(place, fmt::format("{} nulls in {} rows", array.null_count, array.length));
  }
  if (array.n_children != place.schema->n_children) {
    Refuse(place, fmt::format("{} children, the schema has {}", array.n_children,
                              place.schema->n_children));
  }
  if (array.n_children > 0 && array.children == nullptr) Refuse(place, "children are missing");
  if ((array.dictionary == nullptr) != (place.schema->dictionary == nullptr)) {
    Refuse(place, "schema and array disagree about a dictionary");
  }
}

void CheckBuffers(const Place& place, const ArrowArray& array, const Layout& layout) {
  const std::int64_t wanted = BufferCount(layout);
  const bool fits =
      layout.kind == LayoutKind::kTextView ? array.n_buffers >= wanted : array.n_buffers == wanted;
  if (!fits) Refuse(place, fmt::format("{} buffers, {} are needed", array.n_buffers, wanted));
  if (wanted == 0) return;
  if (array.buffers == nullptr) Refuse(place, "buffers are missing");
  if (array.null_count > 0 && array.buffers[0] == nullptr) {
    Refuse(place, "nulls without a validity buffer");
  }
  if (wanted > 1 && array.length > 0 && array.buffers[1] == nullptr) {
    Refuse(place, "the values are missing");
  }
}

/// Offsets ascend from a value >= 0; returns the last one, 0 for an empty array.
std::int64_t CheckOffsets(const Place& place, const ArrowArray& array, const Layout& layout) {
  if (array.length == 0) return 0;
  std::int64_t last = ReadOffset(array.buffers[1], layout, array.offset);
  if (last < 0) Refuse(place, "a negative offset");
  for (std::int64_t i = 1; i <= array.length; ++i) {
    const std::int64_t next = ReadOffset(array.buffers[1], layout, array.offset + i);
    if (next < last) Refuse(place, fmt::format("offsets descend at row {}", i - 1));
    last = next;
  }
  return last;
}

void CheckViews(const Place& place, const ArrowArray& array) {
  const std::int64_t blocks = array.n_buffers - 3;
  const void* sizes = array.buffers[array.n_buffers - 1];
  if (blocks > 0 && sizes == nullptr) Refuse(place, "the sizes of the text buffers are missing");
  for (std::int64_t i = 0; i < array.length; ++i) {
    if (!IsValid(array, array.offset + i)) continue;
    const TextView view = ReadTextView(array, array.offset + i);
    if (view.length < 0) Refuse(place, fmt::format("negative length of a text at row {}", i));
    if (view.length <= kInlineTextLength) continue;
    const bool block_exists = view.block >= 0 && view.block < blocks;
    std::int64_t size = 0;
    if (block_exists) std::memcpy(&size, static_cast<const std::int64_t*>(sizes) + view.block, 8);
    if (!block_exists || array.buffers[2 + view.block] == nullptr || view.offset < 0 ||
        std::int64_t{view.offset} + view.length > size) {
      Refuse(place, fmt::format("the text at row {} lies outside its buffer", i));
    }
  }
}

void CheckIndices(const Place& place, const ArrowArray& array, const Layout& layout) {
  for (std::int64_t i = 0; i < array.length; ++i) {
    if (!IsValid(array, array.offset + i)) continue;
    const std::int64_t index = ReadInteger(array.buffers[1], layout, array.offset + i);
    if (index < 0 || index >= array.dictionary->length) {
      Refuse(place, fmt::format("index {} of a dictionary of {} at row {}", index,
                                array.dictionary->length, i));
    }
  }
}

/// Elements that each child must have at least.
std::int64_t CheckOwnValues(const Place& place, const ArrowArray& array, const Layout& layout) {
  switch (layout.kind) {
    case LayoutKind::kText:
    case LayoutKind::kLargeText:
      if (CheckOffsets(place, array, layout) > 0 && array.buffers[2] == nullptr) {
        Refuse(place, "the text is missing");
      }
      return 0;
    case LayoutKind::kTextView:
      CheckViews(place, array);
      return 0;
    case LayoutKind::kList:
    case LayoutKind::kLargeList:
      return CheckOffsets(place, array, layout);
    case LayoutKind::kFixedList: {
      const std::int64_t rows = array.offset + array.length;
      if (layout.width > 0 && rows > std::numeric_limits<std::int64_t>::max() / layout.width) {
        Refuse(place, "length and offset overflow");
      }
      return rows * layout.width;
    }
    case LayoutKind::kStruct:
      return array.offset + array.length;
    case LayoutKind::kNull:
    case LayoutKind::kBoolean:
    case LayoutKind::kInteger:
    case LayoutKind::kFloat:
    case LayoutKind::kDecimal:
    case LayoutKind::kFixed:
    case LayoutKind::kOther:
      return 0;
  }
  return 0;
}

void CheckArrayAt(const Place& place, const ArrowArray& array) {
  CheckCounts(place, array);
  const Layout layout = ParseLayout(place.schema->format);
  if (layout.kind == LayoutKind::kOther) return;
  CheckBuffers(place, array, layout);
  const std::int64_t wanted = CheckOwnValues(place, array, layout);
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    if (array.children[i] == nullptr) Refuse(place, fmt::format("child {} is missing", i));
    const Place child = place.Child(*place.schema->children[i]);
    CheckArrayAt(child, *array.children[i]);
    if (array.children[i]->length < wanted) {
      Refuse(child, fmt::format("{} rows, {} are needed", array.children[i]->length, wanted));
    }
  }
  if (array.dictionary == nullptr) return;
  CheckArrayAt(place.Child(*place.schema->dictionary), *array.dictionary);
  CheckIndices(place, array, layout);
}

void CheckImportableAt(const Place& place) {
  const ArrowSchema& schema = *place.schema;
  if (ParseLayout(schema.format).kind == LayoutKind::kOther) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("Arrow data, column '{}': the type '{}' is not supported yet",
                            place.Path(), schema.format));
  }
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    CheckImportableAt(place.Child(*schema.children[i]));
  }
  if (schema.dictionary != nullptr) CheckImportableAt(place.Child(*schema.dictionary));
}

void CheckTextAt(const Place& place, const ArrowArray& array) {
  const Layout layout = ParseLayout(place.schema->format);
  if (layout.is_utf8) {
    for (std::int64_t i = 0; i < array.length; ++i) {
      if (!IsValid(array, array.offset + i)) continue;
      const auto bad = base::FirstInvalidUtf8(ReadText(array, layout, array.offset + i));
      if (bad) Refuse(place, fmt::format("row {} is not valid UTF-8 at byte {}", i, *bad));
    }
  }
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    CheckTextAt(place.Child(*place.schema->children[i]), *array.children[i]);
  }
  if (array.dictionary != nullptr) {
    CheckTextAt(place.Child(*place.schema->dictionary), *array.dictionary);
  }
}

}  // namespace

void CheckSchema(const ArrowSchema& schema) {
  const Place root{.schema = &schema};
  CheckSchemaAt(root);
  if (ParseLayout(schema.format).kind != LayoutKind::kStruct)
    Refuse(root, "not a struct of columns");
}

void CheckArray(const ArrowSchema& schema, const ArrowArray& array) {
  CheckArrayAt(Place{.schema = &schema}, array);
}

void CheckImportable(const ArrowSchema& schema) { CheckImportableAt(Place{.schema = &schema}); }

void CheckText(const ArrowSchema& schema, const ArrowArray& array) {
  CheckTextAt(Place{.schema = &schema}, array);
}

}  // namespace quail::columnar
