# Build conventions: one small static library a folder, one test executable a folder.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

add_library(quail_options INTERFACE)
target_include_directories(quail_options INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_options(quail_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Werror)
target_link_libraries(quail_options INTERFACE fmt::fmt Threads::Threads)

# Where fetched packages lie (tools/fetch_deps.py) and where the optional shared test data is.
set(QUAIL_DEPS_DIR "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "Fetched packages")
set(QUAIL_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Optional shared test data")

# quail_library(<folder> SOURCES a.cpp .. LINK quail_base ..): target quail_<folder>.
function(quail_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(quail_${folder} STATIC ${ARG_SOURCES})
  target_link_libraries(quail_${folder} PUBLIC quail_options ${ARG_LINK})
endfunction()

# quail_test(<name> SOURCES a_test.cpp .. LINK quail_text ..): a GoogleTest executable, one ctest entry a case.
function(quail_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    QUAIL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" QUAIL_SHARED_DIR="${QUAIL_SHARED_DIR}"
    QUAIL_DEPS_DIR="${QUAIL_DEPS_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()

# quail_fuzz(<name> SOURCES a_fuzz.cpp LINK quail_sql ..): a libFuzzer target, built where QUAIL_FUZZ is on.
function(quail_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(QUAIL_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LINK} -fsanitize=fuzzer)
  endif()
endfunction()
