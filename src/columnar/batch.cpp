#include "columnar/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "columnar/text_value.h"
#include "columnar/validate.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

__extension__ using Int128 = __int128;

Int128 ReadDecimal(const void* buffer, const Layout& layout, std::int64_t index) {
  const char* bytes = static_cast<const char*>(buffer) + index * layout.width;
  if (layout.width == 4) {
    std::int32_t value;
    std::memcpy(&value, bytes, 4);
    return value;
  }
  if (layout.width == 8) {
    std::int64_t value;
    std::memcpy(&value, bytes, 8);
    return value;
  }
  QUAIL_CHECK_EQ(layout.width, 16);
  Int128 value;
  std::memcpy(&value, bytes, 16);
  return value;
}

template <typename T>
double ReadFloat(const void* buffer, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const T*>(buffer) + index, sizeof(T));
  return value;
}

const char* NameOf(const ArrowSchema& schema, std::size_t column) {
  const char* name = schema.children[column]->name;
  return name == nullptr ? "" : name;
}

[[noreturn]] void ThrowOutOfRange(const ArrowSchema& schema, std::size_t column) {
  throw Error(ErrorCode::kQuery, fmt::format("column '{}': the number does not fit into 64 bits",
                                             NameOf(schema, column)));
}

[[noreturn]] void ThrowUnreadable(const ArrowSchema& schema, std::size_t column) {
  throw Error(ErrorCode::kUnsupported,
              fmt::format("column '{}': values of the Arrow type '{}' cannot be read yet",
                          NameOf(schema, column), schema.children[column]->format));
}

/// REQUIRES: a layout with validity.
bool HasNoNulls(const ArrowArray& array) {
  return array.buffers[0] == nullptr || array.null_count == 0;
}

}  // namespace

void SchemaDeleter::operator()(ArrowSchema* schema) const {
  if (schema->release != nullptr) schema->release(schema);
  delete schema;
}

void ArrayDeleter::operator()(ArrowArray* array) const {
  if (array->release != nullptr) array->release(array);
  delete array;
}

Batch::Batch(std::shared_ptr<const ArrowSchema> schema, OwnedArray array)
    : schema_(std::move(schema)), array_(std::move(array)) {
  QUAIL_CHECK(schema_ != nullptr && array_ != nullptr);
  CheckSchema(*schema_);
  CheckArray(*schema_, *array_);
  columns_.reserve(static_cast<std::size_t>(schema_->n_children));
  for (std::int64_t i = 0; i < schema_->n_children; ++i) {
    const ArrowSchema& field = *schema_->children[i];
    Column column;
    column.values = array_->children[i];
    column.layout = ParseLayout(field.format);
    if (field.dictionary != nullptr) {
      column.indices = column.values;
      column.index_layout = column.layout;
      column.values = column.indices->dictionary;
      column.layout = ParseLayout(field.dictionary->format);
    }
    columns_.push_back(column);
  }
}

std::size_t Batch::rows() const {
  return array_ == nullptr ? 0 : static_cast<std::size_t>(array_->length);
}

std::size_t Batch::columns() const { return columns_.size(); }

std::int64_t Batch::Place(std::size_t column, std::size_t row) const {
  QUAIL_CHECK_LT(column, columns_.size());
  QUAIL_CHECK_LT(row, rows());
  const Column& source = columns_[column];
  if (source.layout.kind == LayoutKind::kOther) ThrowUnreadable(*schema_, column);
  const std::int64_t struct_row = array_->offset + static_cast<std::int64_t>(row);
  if (!IsValid(*array_, struct_row) || source.layout.kind == LayoutKind::kNull) return kNullPlace;
  std::int64_t place = struct_row;
  if (source.indices != nullptr) {
    place += source.indices->offset;
    if (!IsValid(*source.indices, place)) return kNullPlace;
    place = ReadInteger(source.indices->buffers[1], source.index_layout, place);
  }
  place += source.values->offset;
  return IsValid(*source.values, place) ? place : kNullPlace;
}

std::int64_t Batch::ValidPlace(std::size_t column, std::size_t row) const {
  const std::int64_t place = Place(column, row);
  QUAIL_CHECK_NE(place, kNullPlace);
  return place;
}

bool Batch::IsNull(std::size_t column, std::size_t row) const {
  return Place(column, row) == kNullPlace;
}

std::string_view Batch::Text(std::size_t column, std::size_t row) const {
  const std::int64_t place = ValidPlace(column, row);
  const auto& [indices, index_layout, values, layout] = columns_[column];
  const bool is_text = layout.kind == LayoutKind::kText || layout.kind == LayoutKind::kLargeText ||
                       layout.kind == LayoutKind::kTextView;
  QUAIL_CHECK_MSG(is_text, "column {} holds no text", column);
  return ReadText(*values, layout, place);
}

std::int64_t Batch::Integer(std::size_t column, std::size_t row) const {
  const std::int64_t place = ValidPlace(column, row);
  const auto& [indices, index_layout, values, layout] = columns_[column];
  if (layout.kind == LayoutKind::kDecimal) {
    QUAIL_CHECK_EQ(layout.scale, 0);
    const Int128 value = ReadDecimal(values->buffers[1], layout, place);
    if (value < std::numeric_limits<std::int64_t>::min() ||
        value > std::numeric_limits<std::int64_t>::max()) {
      ThrowOutOfRange(*schema_, column);
    }
    return static_cast<std::int64_t>(value);
  }
  QUAIL_CHECK_MSG(layout.kind == LayoutKind::kInteger, "column {} holds no integers", column);
  const std::int64_t value = ReadInteger(values->buffers[1], layout, place);
  if (IntegerOverflows(layout, value)) ThrowOutOfRange(*schema_, column);
  return value;
}

void Batch::Integers(std::size_t column, std::int64_t null,
                     std::vector<std::int64_t>& values) const {
  QUAIL_CHECK_LT(column, columns_.size());
  values.resize(rows());
  const auto& [indices, index_layout, cells, layout] = columns_[column];
  const bool plain = layout.kind == LayoutKind::kInteger && layout.width == 4 && layout.is_signed;
  if (indices == nullptr && plain && HasNoNulls(*array_) && HasNoNulls(*cells)) {
    const auto* first = static_cast<const std::int32_t*>(cells->buffers[1]);
    std::copy_n(first + array_->offset + cells->offset, values.size(), values.begin());
    return;
  }
  for (std::size_t row = 0; row < values.size(); ++row) {
    values[row] = IsNull(column, row) ? null : Integer(column, row);
  }
}

double Batch::Real(std::size_t column, std::size_t row) const {
  const std::int64_t place = ValidPlace(column, row);
  const auto& [indices, index_layout, values, layout] = columns_[column];
  const void* buffer = values->buffers[1];
  if (layout.kind == LayoutKind::kFloat) {
    return layout.width == 4 ? ReadFloat<float>(buffer, place) : ReadFloat<double>(buffer, place);
  }
  if (layout.kind == LayoutKind::kDecimal) {
    return static_cast<double>(ReadDecimal(buffer, layout, place)) / std::pow(10.0, layout.scale);
  }
  QUAIL_CHECK_MSG(layout.kind == LayoutKind::kInteger, "column {} holds no numbers", column);
  const std::int64_t value = ReadInteger(buffer, layout, place);
  if (IntegerOverflows(layout, value))
    return static_cast<double>(static_cast<std::uint64_t>(value));
  return static_cast<double>(value);
}

bool Batch::Boolean(std::size_t column, std::size_t row) const {
  const std::int64_t place = ValidPlace(column, row);
  QUAIL_CHECK_MSG(columns_[column].layout.kind == LayoutKind::kBoolean,
                  "column {} holds no booleans", column);
  return ReadBit(columns_[column].values->buffers[1], place);
}

OwnedArray Batch::Release() {
  columns_.clear();
  return std::move(array_);
}

}  // namespace quail::columnar
