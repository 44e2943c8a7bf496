#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "quail/error.h"
#include "relational/duckdb_functions.h"
#include "relational/duckdb_library.h"

namespace quail::relational {
namespace {

using Rows = std::vector<std::vector<TableFunction::Cell>>;

/// One scan: the function as it was at its start, its rows, and how many of them were given out.
struct Scan {
  std::shared_ptr<const TableFunction> function;
  Rows rows;
  std::size_t given = 0;
};

duckdb_type TypeOf(const TableFunction::Column& column) {
  switch (column.type) {
    case ScalarType::kText:
      return DUCKDB_TYPE_VARCHAR;
    case ScalarType::kInteger:
      return DUCKDB_TYPE_BIGINT;
    case ScalarType::kDouble:
      return DUCKDB_TYPE_DOUBLE;
    case ScalarType::kBoolean:
    case ScalarType::kIntegerList:
      break;
  }
  QUAIL_CHECK_MSG(false, "a table function's column must be text, integer or double");
  return DUCKDB_TYPE_INVALID;
}

/// duckdb_table_function_bind_t
void Bind(duckdb_bind_info info) {
  const DuckDbApi& api = LoadedDuckDb();
  const auto& slot =
      **static_cast<const std::shared_ptr<TableSlot>*>(api.bind_get_extra_info(info));
  for (const auto& column : slot.function()->columns) {
    const DuckDbHandle<duckdb_logical_type> type(api.destroy_logical_type,
                                                 api.create_logical_type(TypeOf(column)));
    api.bind_add_result_column(info, column.name.c_str(), type.get());
  }
}

/// duckdb_table_function_init_t
void Begin(duckdb_init_info info) {
  const DuckDbApi& api = LoadedDuckDb();
  const auto& slot =
      **static_cast<const std::shared_ptr<TableSlot>*>(api.init_get_extra_info(info));
  auto scan = std::make_unique<Scan>();
  const std::string failure = slot.session.guard.Run([&] {
    scan->function = slot.function();
    scan->rows = scan->function->rows();
  });
  if (!failure.empty()) {
    api.init_set_error(info, failure.c_str());
    return;
  }
  api.init_set_max_threads(info, 1);
  api.init_set_init_data(info, scan.release(), [](void* data) { delete static_cast<Scan*>(data); });
}

template <typename Number>
void SetNumber(void* data, std::size_t row, const std::string& text) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  QUAIL_CHECK_MSG(parsed.ec == std::errc() && parsed.ptr == text.data() + text.size(),
                  "'{}' is no number", text);
  static_cast<Number*>(data)[row] = value;
}

void FillColumn(const Scan& scan, std::size_t column, std::size_t count, duckdb_vector vector) {
  const DuckDbApi& api = LoadedDuckDb();
  const ScalarType type = scan.function->columns[column].type;
  void* data = api.vector_get_data(vector);
  api.vector_ensure_validity_writable(vector);
  std::uint64_t* validity = api.vector_get_validity(vector);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& cell = scan.rows[scan.given + i].at(column);
    if (!cell) {
      validity[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    } else if (type == ScalarType::kText) {
      api.vector_assign_string_element_len(vector, i, cell->data(), cell->size());
    } else if (type == ScalarType::kInteger) {
      SetNumber<std::int64_t>(data, i, *cell);
    } else {
      SetNumber<double>(data, i, *cell);
    }
  }
}

/// duckdb_table_function_t
void Fill(duckdb_function_info info, duckdb_data_chunk output) {
  const DuckDbApi& api = LoadedDuckDb();
  auto& scan = *static_cast<Scan*>(api.function_get_init_data(info));
  const std::size_t count = std::min<std::size_t>(api.vector_size(), scan.rows.size() - scan.given);
  for (std::size_t column = 0; column < scan.function->columns.size(); ++column) {
    FillColumn(scan, column, count, api.data_chunk_get_vector(output, column));
  }
  scan.given += count;
  api.data_chunk_set_size(output, count);
}

}  // namespace

void RegisterTableSlot(const std::shared_ptr<TableSlot>& slot) {
  const DuckDbApi& api = slot->session.api;
  const std::string name = slot->function()->name;
  const DuckDbHandle<duckdb_table_function> handle(api.destroy_table_function,
                                                   api.create_table_function());
  api.table_function_set_name(handle.get(), name.c_str());
  api.table_function_set_extra_info(
      handle.get(), new std::shared_ptr<TableSlot>(slot),
      [](void* data) { delete static_cast<std::shared_ptr<TableSlot>*>(data); });
  api.table_function_set_bind(handle.get(), &Bind);
  api.table_function_set_init(handle.get(), &Begin);
  api.table_function_set_function(handle.get(), &Fill);
  if (api.register_table_function(slot->session.connection.get(), handle.get()) != DuckDBSuccess) {
    throw Error(ErrorCode::kQuery, fmt::format("DuckDB refuses to register the function {}", name));
  }
}

}  // namespace quail::relational
