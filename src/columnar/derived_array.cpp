#include "columnar/derived_array.h"

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "columnar/layout.h"

namespace quail::columnar {
namespace {

/// What a derived array's private_data points to. The children are derived arrays of their own
/// where they differ from the owner's, or shallow copies without ownership.
struct Derived {
  std::shared_ptr<const ArrowArray> owner;
  std::vector<const void*> buffers;
  std::vector<OwnedArray> children;
  std::vector<ArrowArray*> child_pointers;
  OwnedArray dictionary;
};

void ReleaseDerived(ArrowArray* array) {
  delete static_cast<Derived*>(array->private_data);
  array->release = nullptr;
}

void ReleaseNothing(ArrowArray* array) { array->release = nullptr; }

OwnedArray Finish(const ArrowArray& shape, std::unique_ptr<Derived> derived) {
  OwnedArray array(new ArrowArray(shape));
  for (const OwnedArray& child : derived->children) derived->child_pointers.push_back(child.get());
  array->n_buffers = static_cast<std::int64_t>(derived->buffers.size());
  array->buffers = derived->buffers.data();
  array->n_children = static_cast<std::int64_t>(derived->children.size());
  array->children = derived->child_pointers.data();
  array->dictionary = derived->dictionary.get();
  array->release = &ReleaseDerived;
  array->private_data = derived.release();
  return array;
}

/// A child's rows: everything but offset, length and the count of nulls is the owner's, who
/// outlives it.
OwnedArray BorrowRows(const ArrowArray& child, std::int64_t begin, std::int64_t length) {
  OwnedArray rows(new ArrowArray(child));
  rows->offset += begin;
  if (length != child.length && child.null_count != 0) rows->null_count = -1;
  rows->length = length;
  rows->release = &ReleaseNothing;
  return rows;
}

/// Zeros for every buffer of an empty array: a first offset of 0, no validity bits, no values.
alignas(64) constexpr std::array<char, 64> kZeros{};

}  // namespace

OwnedArray SliceRows(std::shared_ptr<const ArrowArray> owner, std::int64_t begin,
                     std::int64_t length) {
  QUAIL_CHECK(begin >= 0 && length >= 0 && begin + length <= owner->length);
  auto derived = std::make_unique<Derived>();
  derived->buffers.push_back(nullptr);
  for (std::int64_t i = 0; i < owner->n_children; ++i) {
    derived->children.push_back(BorrowRows(*owner->children[i], owner->offset + begin, length));
  }
  derived->owner = std::move(owner);
  ArrowArray shape{};
  shape.length = length;
  return Finish(shape, std::move(derived));
}

OwnedArray MakeEmptyArray(const ArrowSchema& schema) {
  auto derived = std::make_unique<Derived>();
  const std::int64_t buffers = BufferCount(ParseLayout(schema.format));
  derived->buffers.assign(static_cast<std::size_t>(buffers), kZeros.data());
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    derived->children.push_back(MakeEmptyArray(*schema.children[i]));
  }
  if (schema.dictionary != nullptr) derived->dictionary = MakeEmptyArray(*schema.dictionary);
  return Finish({}, std::move(derived));
}

}  // namespace quail::columnar
