#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/arrow_c_data.h"
#include "columnar/layout.h"

namespace quail::columnar {

struct Field {
  std::string name;
  std::string type;  ///< as the relational engine prints it: "VARCHAR", "INTEGER[]", ..
};

using Schema = std::vector<Field>;

/// Owns an ArrowSchema / ArrowArray and releases it.
struct SchemaDeleter {
  void operator()(ArrowSchema* schema) const;
};
struct ArrayDeleter {
  void operator()(ArrowArray* array) const;
};
using OwnedSchema = std::unique_ptr<ArrowSchema, SchemaDeleter>;
using OwnedArray = std::unique_ptr<ArrowArray, ArrayDeleter>;

/// Some rows of a result: a struct array of the Arrow C data interface, with typed views on its
/// columns. Offsets, validity bitmaps, dictionaries and view types are all followed (cases 70, 71).
class Batch {
 public:
  /// Throws Error{kCorrupt} where the array does not fit the schema (validate.h), so that no
  /// accessor reads astray.
  Batch(std::shared_ptr<const ArrowSchema> schema, OwnedArray array);

  std::size_t rows() const;
  std::size_t columns() const;

  /// Throws Error{kUnsupported}, as do the other accessors, for a column whose Arrow layout is not
  /// known (unions, run ends, list views).
  bool IsNull(std::size_t column, std::size_t row) const;
  /// REQUIRES: a utf8, large utf8, utf8 view or binary column (or a dictionary of one), not null.
  std::string_view Text(std::size_t column, std::size_t row) const;
  /// REQUIRES: a column of integers of any width, HUGEINT (decimal of scale 0), dates or times, not
  /// null. A value beyond the range of int64 throws Error{kQuery}.
  std::int64_t Integer(std::size_t column, std::size_t row) const;
  /// Integer of every row, `null` where NULL, in less time than one by one. REQUIRES: as Integer.
  void Integers(std::size_t column, std::int64_t null, std::vector<std::int64_t>& values) const;
  /// REQUIRES: a column of float, double, decimals or integers, not null.
  double Real(std::size_t column, std::size_t row) const;
  bool Boolean(std::size_t column, std::size_t row) const;

  /// Gives the array away, e.g. to a caller's ArrowArrayStream. The batch is empty afterwards.
  OwnedArray Release();

 private:
  struct Column {
    const ArrowArray* indices = nullptr;  ///< of a dictionary column, else null
    Layout index_layout;
    const ArrowArray* values = nullptr;
    Layout layout;
  };
  static constexpr std::int64_t kNullPlace = -1;

  /// Where a row's value lies in its column's buffers; kNullPlace for NULL.
  std::int64_t Place(std::size_t column, std::size_t row) const;
  std::int64_t ValidPlace(std::size_t column, std::size_t row) const;

  std::shared_ptr<const ArrowSchema> schema_;
  OwnedArray array_;
  std::vector<Column> columns_;
};

}  // namespace quail::columnar
