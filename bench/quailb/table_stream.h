#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "columnar/arrow_c_data.h"

namespace quail::quailb {

/// A column as a function of the row's number.
struct Column {
  using Integer = std::function<std::optional<std::int64_t>(std::uint64_t)>;
  using Real = std::function<double(std::uint64_t)>;
  using Text = std::function<std::string(std::uint64_t)>;
  using Tokens = std::function<std::vector<std::int32_t>(std::uint64_t)>;

  std::string name;
  std::variant<Integer, Real, Text, Tokens> value;
};

/// A table that is made while it is read.
struct TableSource {
  std::vector<Column> columns;
  std::uint64_t rows = 0;
  std::function<bool()> ends_early = {};  ///< asked before each batch; TRUE: the rest is left out
};

/// Opens the table as a stream of the Arrow C stream interface, some thousand rows a batch: BIGINT,
/// DOUBLE, VARCHAR and INTEGER[] columns. `out` is released by who reads it.
void ExportStream(TableSource source, ArrowArrayStream* out);

}  // namespace quail::quailb
