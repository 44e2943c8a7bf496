#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "exec/verdicts.h"
#include "relational/connection.h"

namespace quail::exec {

/// The distinct tuples of texts that a step must decide, and how many rows (or pairs of rows) each
/// stands for.
struct Domain {
  std::size_t width = 0;
  std::vector<TextId> ids;  ///< [size, width]; kNullText where NULL
  std::vector<std::uint64_t> weights;

  std::size_t size() const { return weights.size(); }
  std::span<const TextId> row(std::size_t i) const {
    return std::span(ids).subspan(i * width, width);
  }
  std::uint64_t total_weight() const;
};

/// Reads the distinct tuples of `select`, which has `width` integer columns; each stands for as
/// many rows as are equal.
Domain ReadDomain(relational::Connection& connection, std::string_view select, std::size_t width);

/// The distinct tuples of some columns of a table, in the order of their first rows. `where` may be
/// empty.
Domain ReadTableDomain(relational::Connection& connection, std::string_view table,
                       std::span<const std::string> columns, std::string_view where);

}  // namespace quail::exec
