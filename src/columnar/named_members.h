#pragma once

#include "columnar/batch.h"

namespace quail::columnar {

/// A copy of a checked schema in which every member of a struct, columns included, has a name: v1,
/// v2, .. by its place where it has none, with `_` behind it where another one is named so. Tables
/// cannot have members without names; a file of ROW(a, b) does.
OwnedSchema WithNamedMembers(const ArrowSchema& schema);

}  // namespace quail::columnar
