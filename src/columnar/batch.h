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

/// Some rows of a result: a struct array of the Arrow C data interface, with typed views on its columns. Offsets,
/// validity bitmaps, dictionaries and view types are all followed (cases 70, 71).
class Batch {
 public:
  Batch(std::shared_ptr<const ArrowSchema> schema, OwnedArray array);

  std::size_t rows() const;
  std::size_t columns() const;

  bool IsNull(std::size_t column, std::size_t row) const;
  /// REQUIRES: a utf8, large utf8, utf8 view or binary column (or a dictionary of one), not null.
  std::string_view Text(std::size_t column, std::size_t row) const;
  /// REQUIRES: an integer column of any width, not null; an unsigned value beyond the range throws Error{kQuery}.
  std::int64_t Integer(std::size_t column, std::size_t row) const;
  double Real(std::size_t column, std::size_t row) const;
  bool Boolean(std::size_t column, std::size_t row) const;

  /// Gives the array away, e.g. to a caller's ArrowArrayStream. The batch is empty afterwards.
  OwnedArray Release();

 private:
  std::shared_ptr<const ArrowSchema> schema_;
  OwnedArray array_;
};

}  // namespace quail::columnar
