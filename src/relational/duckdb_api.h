#pragma once

#include <cstddef>
#include <cstdint>

#include "columnar/arrow_c_data.h"

// The part of DuckDB's C API (v1, documented at duckdb.org/docs/stable/clients/c/api) that Quail
// calls, declared here so that building needs no file of DuckDB. duckdb_api_check.cpp compares
// every declaration with a fetched duckdb.h.

/// T(name without "DUCKDB_TYPE_", value)
// clang-format off
#define QUAIL_DUCKDB_TYPES(T) \
  T(INVALID, 0)           \
  T(BOOLEAN, 1)           \
  T(TINYINT, 2)           \
  T(SMALLINT, 3)          \
  T(INTEGER, 4)           \
  T(BIGINT, 5)            \
  T(UTINYINT, 6)          \
  T(USMALLINT, 7)         \
  T(UINTEGER, 8)          \
  T(UBIGINT, 9)           \
  T(FLOAT, 10)            \
  T(DOUBLE, 11)           \
  T(TIMESTAMP, 12)        \
  T(DATE, 13)             \
  T(TIME, 14)             \
  T(INTERVAL, 15)         \
  T(HUGEINT, 16)          \
  T(VARCHAR, 17)          \
  T(BLOB, 18)             \
  T(DECIMAL, 19)          \
  T(TIMESTAMP_S, 20)      \
  T(TIMESTAMP_MS, 21)     \
  T(TIMESTAMP_NS, 22)     \
  T(ENUM, 23)             \
  T(LIST, 24)             \
  T(STRUCT, 25)           \
  T(MAP, 26)              \
  T(UUID, 27)             \
  T(UNION, 28)            \
  T(BIT, 29)              \
  T(TIME_TZ, 30)          \
  T(TIMESTAMP_TZ, 31)     \
  T(UHUGEINT, 32)         \
  T(ARRAY, 33)            \
  T(ANY, 34)              \
  T(BIGNUM, 35)           \
  T(SQLNULL, 36)          \
  T(STRING_LITERAL, 37)   \
  T(INTEGER_LITERAL, 38)  \
  T(TIME_NS, 39)          \
  T(GEOMETRY, 40)         \
  T(VARIANT, 41)          \
  T(TIMESTAMP_TZ_NS, 42)
// clang-format on

#ifndef QUAIL_DUCKDB_TYPES_FROM_HEADER

using idx_t = std::uint64_t;

using duckdb_database = struct _duckdb_database*;
using duckdb_connection = struct _duckdb_connection*;
using duckdb_config = struct _duckdb_config*;
using duckdb_extracted_statements = struct _duckdb_extracted_statements*;
using duckdb_prepared_statement = struct _duckdb_prepared_statement*;
using duckdb_pending_result = struct _duckdb_pending_result*;
using duckdb_error_data = struct _duckdb_error_data*;
using duckdb_arrow_options = struct _duckdb_arrow_options*;
using duckdb_arrow_converted_schema = struct _duckdb_arrow_converted_schema*;
using duckdb_logical_type = struct _duckdb_logical_type*;
using duckdb_data_chunk = struct _duckdb_data_chunk*;
using duckdb_vector = struct _duckdb_vector*;
using duckdb_appender = struct _duckdb_appender*;
using duckdb_scalar_function = struct _duckdb_scalar_function*;
using duckdb_table_function = struct _duckdb_table_function*;
using duckdb_function_info = struct _duckdb_function_info*;
using duckdb_bind_info = struct _duckdb_bind_info*;
using duckdb_init_info = struct _duckdb_init_info*;

using duckdb_delete_callback_t = void (*)(void* data);
using duckdb_scalar_function_t = void (*)(duckdb_function_info info, duckdb_data_chunk input,
                                          duckdb_vector output);
using duckdb_table_function_bind_t = void (*)(duckdb_bind_info info);
using duckdb_table_function_init_t = void (*)(duckdb_init_info info);
using duckdb_table_function_t = void (*)(duckdb_function_info info, duckdb_data_chunk output);

enum duckdb_state : unsigned { DuckDBSuccess = 0, DuckDBError = 1 };

enum duckdb_result_type : unsigned {
  DUCKDB_RESULT_TYPE_INVALID = 0,
  DUCKDB_RESULT_TYPE_CHANGED_ROWS = 1,
  DUCKDB_RESULT_TYPE_NOTHING = 2,
  DUCKDB_RESULT_TYPE_QUERY_RESULT = 3,
};

enum duckdb_pending_state : unsigned {
  DUCKDB_PENDING_RESULT_READY = 0,
  DUCKDB_PENDING_RESULT_NOT_READY = 1,
  DUCKDB_PENDING_ERROR = 2,
  DUCKDB_PENDING_NO_TASKS_AVAILABLE = 3,
};

enum duckdb_type : unsigned {
#define QUAIL_ENUMERATE(name, value) DUCKDB_TYPE_##name = (value),
  QUAIL_DUCKDB_TYPES(QUAIL_ENUMERATE)
#undef QUAIL_ENUMERATE
};

struct duckdb_result {
  idx_t deprecated[3];
  void* deprecated_columns;
  char* deprecated_error_message;
  void* internal_data;
};

struct duckdb_list_entry {
  std::uint64_t offset;
  std::uint64_t length;
};

#endif  // QUAIL_DUCKDB_TYPES_FROM_HEADER

// Seen with either set of types, so that the two cannot drift.
static_assert(sizeof(duckdb_result) == 48 && sizeof(duckdb_list_entry) == 16);
static_assert(DuckDBSuccess == 0 && DuckDBError == 1 && DUCKDB_RESULT_TYPE_QUERY_RESULT == 3);
static_assert(DUCKDB_PENDING_RESULT_NOT_READY == 1 && DUCKDB_PENDING_NO_TASKS_AVAILABLE == 3);
#define QUAIL_CHECK_TYPE(name, value) static_assert(DUCKDB_TYPE_##name == (value));
QUAIL_DUCKDB_TYPES(QUAIL_CHECK_TYPE)
#undef QUAIL_CHECK_TYPE

/// F(name without "duckdb_", result, parameters)
// clang-format off
#define QUAIL_DUCKDB_FUNCTIONS(F) \
  F(library_version, const char*, ())                                                            \
  F(vector_size, idx_t, ())                                                                      \
  F(create_config, duckdb_state, (duckdb_config* out_config))                                    \
  F(set_config, duckdb_state, (duckdb_config config, const char* name, const char* option))      \
  F(destroy_config, void, (duckdb_config* config))                                               \
  F(open_ext, duckdb_state,                                                                      \
    (const char* path, duckdb_database* out_database, duckdb_config config, char** out_error))   \
  F(close, void, (duckdb_database* database))                                                    \
  F(connect, duckdb_state, (duckdb_database database, duckdb_connection* out_connection))        \
  F(disconnect, void, (duckdb_connection* connection))                                           \
  F(interrupt, void, (duckdb_connection connection))                                             \
  F(free, void, (void* ptr))                                                                     \
  F(extract_statements, idx_t,                                                                   \
    (duckdb_connection connection, const char* query, duckdb_extracted_statements*               \
     out_extracted_statements))                                                                  \
  F(extract_statements_error, const char*, (duckdb_extracted_statements extracted_statements))   \
  F(prepare_extracted_statement, duckdb_state,                                                   \
    (duckdb_connection connection, duckdb_extracted_statements extracted_statements, idx_t       \
     index, duckdb_prepared_statement* out_prepared_statement))                                  \
  F(destroy_extracted, void, (duckdb_extracted_statements* extracted_statements))                \
  F(prepare_error, const char*, (duckdb_prepared_statement prepared_statement))                  \
  F(destroy_prepare, void, (duckdb_prepared_statement* prepared_statement))                      \
  F(pending_prepared_streaming, duckdb_state,                                                    \
    (duckdb_prepared_statement prepared_statement, duckdb_pending_result* out_result))           \
  F(pending_error, const char*, (duckdb_pending_result pending_result))                          \
  F(pending_execute_task, duckdb_pending_state, (duckdb_pending_result pending_result))          \
  F(execute_pending, duckdb_state,                                                               \
    (duckdb_pending_result pending_result, duckdb_result* out_result))                           \
  F(destroy_pending, void, (duckdb_pending_result* pending_result))                              \
  F(result_error, const char*, (duckdb_result* result))                                          \
  F(result_return_type, duckdb_result_type, (duckdb_result result))                              \
  F(destroy_result, void, (duckdb_result* result))                                               \
  F(column_count, idx_t, (duckdb_result* result))                                                \
  F(column_name, const char*, (duckdb_result* result, idx_t col))                                \
  F(column_logical_type, duckdb_logical_type, (duckdb_result* result, idx_t col))                \
  F(fetch_chunk, duckdb_data_chunk, (duckdb_result result))                                      \
  F(result_get_arrow_options, duckdb_arrow_options, (duckdb_result* result))                     \
  F(destroy_arrow_options, void, (duckdb_arrow_options* arrow_options))                          \
  F(to_arrow_schema, duckdb_error_data,                                                          \
    (duckdb_arrow_options arrow_options, duckdb_logical_type* types, const char** names, idx_t   \
     column_count, ArrowSchema* out_schema))                                                     \
  F(data_chunk_to_arrow, duckdb_error_data,                                                      \
    (duckdb_arrow_options arrow_options, duckdb_data_chunk chunk, ArrowArray*                    \
     out_arrow_array))                                                                           \
  F(schema_from_arrow, duckdb_error_data,                                                        \
    (duckdb_connection connection, ArrowSchema* schema, duckdb_arrow_converted_schema*           \
     out_types))                                                                                 \
  F(data_chunk_from_arrow, duckdb_error_data,                                                    \
    (duckdb_connection connection, ArrowArray* arrow_array, duckdb_arrow_converted_schema        \
     converted_schema, duckdb_data_chunk* out_chunk))                                            \
  F(destroy_arrow_converted_schema, void,                                                        \
    (duckdb_arrow_converted_schema* arrow_converted_schema))                                     \
  F(error_data_has_error, bool, (duckdb_error_data error_data))                                  \
  F(error_data_message, const char*, (duckdb_error_data error_data))                             \
  F(destroy_error_data, void, (duckdb_error_data* error_data))                                   \
  F(create_logical_type, duckdb_logical_type, (duckdb_type type))                                \
  F(create_list_type, duckdb_logical_type, (duckdb_logical_type type))                           \
  F(destroy_logical_type, void, (duckdb_logical_type* type))                                     \
  F(get_type_id, duckdb_type, (duckdb_logical_type type))                                        \
  F(logical_type_get_alias, char*, (duckdb_logical_type type))                                   \
  F(decimal_width, uint8_t, (duckdb_logical_type type))                                          \
  F(decimal_scale, uint8_t, (duckdb_logical_type type))                                          \
  F(enum_dictionary_size, uint32_t, (duckdb_logical_type type))                                  \
  F(enum_dictionary_value, char*, (duckdb_logical_type type, idx_t index))                       \
  F(list_type_child_type, duckdb_logical_type, (duckdb_logical_type type))                       \
  F(array_type_child_type, duckdb_logical_type, (duckdb_logical_type type))                      \
  F(array_type_array_size, idx_t, (duckdb_logical_type type))                                    \
  F(map_type_key_type, duckdb_logical_type, (duckdb_logical_type type))                          \
  F(map_type_value_type, duckdb_logical_type, (duckdb_logical_type type))                        \
  F(struct_type_child_count, idx_t, (duckdb_logical_type type))                                  \
  F(struct_type_child_name, char*, (duckdb_logical_type type, idx_t index))                      \
  F(struct_type_child_type, duckdb_logical_type, (duckdb_logical_type type, idx_t index))        \
  F(union_type_member_count, idx_t, (duckdb_logical_type type))                                  \
  F(union_type_member_name, char*, (duckdb_logical_type type, idx_t index))                      \
  F(union_type_member_type, duckdb_logical_type, (duckdb_logical_type type, idx_t index))        \
  F(destroy_data_chunk, void, (duckdb_data_chunk* chunk))                                        \
  F(data_chunk_get_size, idx_t, (duckdb_data_chunk chunk))                                       \
  F(data_chunk_set_size, void, (duckdb_data_chunk chunk, idx_t size))                            \
  F(data_chunk_get_column_count, idx_t, (duckdb_data_chunk chunk))                               \
  F(data_chunk_get_vector, duckdb_vector, (duckdb_data_chunk chunk, idx_t col_idx))              \
  F(vector_get_column_type, duckdb_logical_type, (duckdb_vector vector))                         \
  F(vector_get_data, void*, (duckdb_vector vector))                                              \
  F(vector_get_validity, uint64_t*, (duckdb_vector vector))                                      \
  F(vector_ensure_validity_writable, void, (duckdb_vector vector))                               \
  F(vector_assign_string_element_len, void,                                                      \
    (duckdb_vector vector, idx_t index, const char* str, idx_t str_len))                         \
  F(list_vector_get_child, duckdb_vector, (duckdb_vector vector))                                \
  F(list_vector_get_size, idx_t, (duckdb_vector vector))                                         \
  F(appender_create_ext, duckdb_state,                                                           \
    (duckdb_connection connection, const char* catalog, const char* schema, const char* table,   \
     duckdb_appender* out_appender))                                                             \
  F(append_data_chunk, duckdb_state, (duckdb_appender appender, duckdb_data_chunk chunk))        \
  F(appender_error_data, duckdb_error_data, (duckdb_appender appender))                          \
  F(appender_close, duckdb_state, (duckdb_appender appender))                                    \
  F(appender_destroy, duckdb_state, (duckdb_appender* appender))                                 \
  F(create_scalar_function, duckdb_scalar_function, ())                                          \
  F(destroy_scalar_function, void, (duckdb_scalar_function* scalar_function))                    \
  F(scalar_function_set_name, void, (duckdb_scalar_function scalar_function, const char* name))  \
  F(scalar_function_add_parameter, void,                                                         \
    (duckdb_scalar_function scalar_function, duckdb_logical_type type))                          \
  F(scalar_function_set_varargs, void,                                                           \
    (duckdb_scalar_function scalar_function, duckdb_logical_type type))                          \
  F(scalar_function_set_return_type, void,                                                       \
    (duckdb_scalar_function scalar_function, duckdb_logical_type type))                          \
  F(scalar_function_set_special_handling, void, (duckdb_scalar_function scalar_function))        \
  F(scalar_function_set_extra_info, void,                                                        \
    (duckdb_scalar_function scalar_function, void* extra_info, duckdb_delete_callback_t          \
     destroy))                                                                                   \
  F(scalar_function_set_function, void,                                                          \
    (duckdb_scalar_function scalar_function, duckdb_scalar_function_t function))                 \
  F(register_scalar_function, duckdb_state,                                                      \
    (duckdb_connection con, duckdb_scalar_function scalar_function))                             \
  F(scalar_function_get_extra_info, void*, (duckdb_function_info info))                          \
  F(scalar_function_set_error, void, (duckdb_function_info info, const char* error))             \
  F(create_table_function, duckdb_table_function, ())                                            \
  F(destroy_table_function, void, (duckdb_table_function* table_function))                       \
  F(table_function_set_name, void, (duckdb_table_function table_function, const char* name))     \
  F(table_function_set_extra_info, void,                                                         \
    (duckdb_table_function table_function, void* extra_info, duckdb_delete_callback_t            \
     destroy))                                                                                   \
  F(table_function_set_bind, void,                                                               \
    (duckdb_table_function table_function, duckdb_table_function_bind_t bind))                   \
  F(table_function_set_init, void,                                                               \
    (duckdb_table_function table_function, duckdb_table_function_init_t init))                   \
  F(table_function_set_function, void,                                                           \
    (duckdb_table_function table_function, duckdb_table_function_t function))                    \
  F(register_table_function, duckdb_state,                                                       \
    (duckdb_connection con, duckdb_table_function function))                                     \
  F(bind_get_extra_info, void*, (duckdb_bind_info info))                                         \
  F(bind_add_result_column, void,                                                                \
    (duckdb_bind_info info, const char* name, duckdb_logical_type type))                         \
  F(bind_set_error, void, (duckdb_bind_info info, const char* error))                            \
  F(init_get_extra_info, void*, (duckdb_init_info info))                                         \
  F(init_set_init_data, void,                                                                    \
    (duckdb_init_info info, void* init_data, duckdb_delete_callback_t destroy))                  \
  F(init_set_max_threads, void, (duckdb_init_info info, idx_t max_threads))                      \
  F(init_set_error, void, (duckdb_init_info info, const char* error))                            \
  F(function_get_init_data, void*, (duckdb_function_info info))                                  \
  F(function_set_error, void, (duckdb_function_info info, const char* error))
// clang-format on

namespace quail::relational {

/// DuckDB's VARCHAR cell inside a vector (duckdb_string_t): text of up to 12 bytes lies in the cell
/// itself.
struct DuckDbString {
  std::uint32_t length;
  char prefix[4];
  union {
    const char* pointer;
    char rest[8];
  };

  const char* data() const {
    return length <= 12 ? reinterpret_cast<const char*>(this) + sizeof(length) : pointer;
  }
};

/// The C API of one loaded library; every pointer is set. Lives until the process ends.
struct DuckDbApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator's parts
#define QUAIL_DECLARE(name, result, parameters) result(*name) parameters = nullptr;
  QUAIL_DUCKDB_FUNCTIONS(QUAIL_DECLARE)
#undef QUAIL_DECLARE
};

}  // namespace quail::relational
