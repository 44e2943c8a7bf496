#include <fmt/format.h>

#include <deque>

#include "base/check.h"
#include "quail/error.h"
#include "relational/duckdb_functions.h"
#include "relational/duckdb_library.h"

namespace quail::relational {
namespace {

using Type = DuckDbHandle<duckdb_logical_type>;

Type MakeType(const DuckDbApi& api, ScalarType type) {
  const auto plain = [&](duckdb_type id) {
    return Type(api.destroy_logical_type, api.create_logical_type(id));
  };
  switch (type) {
    case ScalarType::kBoolean:
      return plain(DUCKDB_TYPE_BOOLEAN);
    case ScalarType::kDouble:
      return plain(DUCKDB_TYPE_DOUBLE);
    case ScalarType::kInteger:
      return plain(DUCKDB_TYPE_INTEGER);
    case ScalarType::kText:
      return plain(DUCKDB_TYPE_VARCHAR);
    case ScalarType::kIntegerList:
      break;
  }
  const Type element = plain(DUCKDB_TYPE_INTEGER);
  return Type(api.destroy_logical_type, api.create_list_type(element.get()));
}

/// The arguments of one call as views; owns what DuckDB's vectors do not hold in our form.
class Arguments {
 public:
  Arguments(const DuckDbApi& api, const ScalarFunction& function, duckdb_data_chunk input)
      : api_(api), rows_(api.data_chunk_get_size(input)) {
    const idx_t count = api.data_chunk_get_column_count(input);
    for (idx_t i = 0; i < count; ++i) {
      const ScalarType type =
          i < function.parameters.size() ? function.parameters[i] : *function.variadic;
      columns_.push_back(View(type, api.data_chunk_get_vector(input, i)));
    }
  }

  std::span<const ScalarColumn> columns() const { return columns_; }
  std::size_t rows() const { return rows_; }

 private:
  ScalarColumn View(ScalarType type, duckdb_vector vector) {
    ScalarColumn column;
    column.type = type;
    column.validity = api_.vector_get_validity(vector);
    const void* data = api_.vector_get_data(vector);
    if (type == ScalarType::kInteger) {
      column.integers = {static_cast<const std::int32_t*>(data), rows_};
    } else if (type == ScalarType::kText) {
      ViewTexts(static_cast<const DuckDbString*>(data), column);
    } else {
      QUAIL_CHECK(type == ScalarType::kIntegerList);
      ViewLists(static_cast<const duckdb_list_entry*>(data), vector, column);
    }
    return column;
  }

  void ViewTexts(const DuckDbString* cells, ScalarColumn& column) {
    auto& texts = texts_.emplace_back(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      if (!column.is_null(i)) texts[i] = {cells[i].data(), cells[i].length};
    }
    column.texts = texts;
  }

  void ViewLists(const duckdb_list_entry* entries, duckdb_vector vector, ScalarColumn& column) {
    const duckdb_vector child = api_.list_vector_get_child(vector);
    column.integers = {static_cast<const std::int32_t*>(api_.vector_get_data(child)),
                       api_.list_vector_get_size(vector)};
    ScalarColumn elements;
    elements.validity = api_.vector_get_validity(child);
    auto& offsets = numbers_.emplace_back(rows_);
    auto& lengths = numbers_.emplace_back(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      if (column.is_null(i)) continue;
      offsets[i] = entries[i].offset;
      lengths[i] = entries[i].length;
      for (std::uint64_t k = 0; k < lengths[i]; ++k) {
        if (elements.is_null(offsets[i] + k)) {
          throw Error(ErrorCode::kQuery, "NULL inside a list of integers");
        }
      }
    }
    column.list_offsets = offsets;
    column.list_lengths = lengths;
  }

  const DuckDbApi& api_;
  std::size_t rows_;
  std::vector<ScalarColumn> columns_;
  std::deque<std::vector<std::string_view>> texts_;
  std::deque<std::vector<std::uint64_t>> numbers_;
};

class VectorOutput final : public ScalarOutput {
 public:
  VectorOutput(const DuckDbApi& api, ScalarType type, duckdb_vector vector)
      : api_(api), type_(type), vector_(vector), data_(api.vector_get_data(vector)) {}

  void SetNull(std::size_t row) override {
    if (validity_ == nullptr) {
      api_.vector_ensure_validity_writable(vector_);
      validity_ = api_.vector_get_validity(vector_);
    }
    validity_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }
  void SetBoolean(std::size_t row, bool value) override {
    QUAIL_CHECK(type_ == ScalarType::kBoolean);
    static_cast<bool*>(data_)[row] = value;
  }
  void SetDouble(std::size_t row, double value) override {
    QUAIL_CHECK(type_ == ScalarType::kDouble);
    static_cast<double*>(data_)[row] = value;
  }
  void SetInteger(std::size_t row, std::int32_t value) override {
    QUAIL_CHECK(type_ == ScalarType::kInteger);
    static_cast<std::int32_t*>(data_)[row] = value;
  }
  void SetText(std::size_t row, std::string_view value) override {
    QUAIL_CHECK(type_ == ScalarType::kText);
    api_.vector_assign_string_element_len(vector_, row, value.data(), value.size());
  }

 private:
  const DuckDbApi& api_;
  ScalarType type_;
  duckdb_vector vector_;
  void* data_;
  std::uint64_t* validity_ = nullptr;
};

/// duckdb_scalar_function_t. The slot is found through `info`, which only the library that calls
/// can read.
void Invoke(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const DuckDbApi& api = LoadedDuckDb();
  const auto& slot =
      **static_cast<const std::shared_ptr<ScalarSlot>*>(api.scalar_function_get_extra_info(info));
  const std::string failure = slot.session.guard.Run([&] {
    const auto function = slot.function();
    const Arguments arguments(api, *function, input);
    VectorOutput out(api, function->result, output);
    function->invoke(arguments.columns(), arguments.rows(), out);
  });
  if (!failure.empty()) api.scalar_function_set_error(info, failure.c_str());
}

void CheckSupported(const ScalarFunction& function) {
  const auto is_argument = [](ScalarType type) {
    return type == ScalarType::kInteger || type == ScalarType::kText ||
           type == ScalarType::kIntegerList;
  };
  for (const ScalarType type : function.parameters) QUAIL_CHECK(is_argument(type));
  QUAIL_CHECK(!function.variadic || is_argument(*function.variadic));
  QUAIL_CHECK(function.result != ScalarType::kIntegerList);
}

}  // namespace

void RegisterScalarSlot(const std::shared_ptr<ScalarSlot>& slot) {
  const DuckDbApi& api = slot->session.api;
  const auto function = slot->function();
  CheckSupported(*function);
  const DuckDbHandle<duckdb_scalar_function> handle(api.destroy_scalar_function,
                                                    api.create_scalar_function());
  api.scalar_function_set_name(handle.get(), function->name.c_str());
  for (const ScalarType parameter : function->parameters) {
    api.scalar_function_add_parameter(handle.get(), MakeType(api, parameter).get());
  }
  if (function->variadic) {
    api.scalar_function_set_varargs(handle.get(), MakeType(api, *function->variadic).get());
  }
  api.scalar_function_set_return_type(handle.get(), MakeType(api, function->result).get());
  api.scalar_function_set_special_handling(handle.get());
  api.scalar_function_set_extra_info(
      handle.get(), new std::shared_ptr<ScalarSlot>(slot),
      [](void* data) { delete static_cast<std::shared_ptr<ScalarSlot>*>(data); });
  api.scalar_function_set_function(handle.get(), &Invoke);
  if (api.register_scalar_function(slot->session.connection.get(), handle.get()) != DuckDBSuccess) {
    throw Error(ErrorCode::kQuery,
                fmt::format("DuckDB refuses to register the function {}", function->name));
  }
}

}  // namespace quail::relational
