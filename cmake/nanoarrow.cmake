# nanoarrow's C library with its IPC reader and writer, built from pinned sources, which are fetched where
# they are missing.

enable_language(C)

set(quail_nanoarrow "${QUAIL_DEPS_DIR}/nanoarrow")
if(NOT EXISTS "${quail_nanoarrow}/src/nanoarrow/nanoarrow_ipc.h")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/fetch_deps.py"
    --group source --deps "${QUAIL_DEPS_DIR}" RESULT_VARIABLE quail_fetched)
  if(NOT quail_fetched EQUAL 0)
    message(FATAL_ERROR "nanoarrow's sources could not be fetched; they belong in ${quail_nanoarrow}")
  endif()
endif()
find_library(quail_zstd zstd REQUIRED)
find_library(quail_lz4 lz4 REQUIRED)

set(NANOARROW_VERSION_MAJOR 0)
set(NANOARROW_VERSION_MINOR 9)
set(NANOARROW_VERSION_PATCH 0)
set(NANOARROW_VERSION 0.9.0)
configure_file("${quail_nanoarrow}/src/nanoarrow/nanoarrow_config.h.in"
  "${PROJECT_BINARY_DIR}/nanoarrow/nanoarrow/nanoarrow_config.h")

set(quail_nanoarrow_sources
  array array_stream schema utils)
list(TRANSFORM quail_nanoarrow_sources PREPEND "${quail_nanoarrow}/src/nanoarrow/common/")
foreach(name codecs decoder encoder reader writer)
  list(APPEND quail_nanoarrow_sources "${quail_nanoarrow}/src/nanoarrow/ipc/${name}")
endforeach()
foreach(name builder emitter refmap verifier)
  list(APPEND quail_nanoarrow_sources "${quail_nanoarrow}/flatcc/src/runtime/${name}")
endforeach()
list(TRANSFORM quail_nanoarrow_sources APPEND ".c")

add_library(nanoarrow STATIC ${quail_nanoarrow_sources})
set_target_properties(nanoarrow PROPERTIES C_STANDARD 11)
target_include_directories(nanoarrow SYSTEM
  PUBLIC "${quail_nanoarrow}/src" "${PROJECT_BINARY_DIR}/nanoarrow"
  PRIVATE "${quail_nanoarrow}/flatcc/include")
target_compile_definitions(nanoarrow PRIVATE NANOARROW_IPC_WITH_ZSTD NANOARROW_IPC_WITH_LZ4)
target_compile_options(nanoarrow PRIVATE -w)
target_link_libraries(nanoarrow PRIVATE ${quail_zstd} ${quail_lz4})
