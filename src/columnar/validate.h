#pragma once

#include "columnar/arrow_c_data.h"

namespace quail::columnar {

/// Throws Error{kCorrupt}, naming the column, unless the schema is a struct whose parts are all
/// there.
void CheckSchema(const ArrowSchema& schema);

/// Throws Error{kCorrupt}, naming the column, unless the array fits its checked schema: counts of
/// children and buffers, no missing buffer, no negative length, offsets that ascend within their
/// child, dictionary indices and views in range. The lengths of buffers are not part of the
/// interface, so data shorter than promised cannot be found.
void CheckArray(const ArrowSchema& schema, const ArrowArray& array);

/// Throws Error{kUnsupported} where a column's type cannot be imported as a table.
void CheckImportable(const ArrowSchema& schema);

/// Throws Error{kCorrupt}, naming column and row, where a text is not valid UTF-8. REQUIRES:
/// CheckArray passed.
void CheckText(const ArrowSchema& schema, const ArrowArray& array);

}  // namespace quail::columnar
