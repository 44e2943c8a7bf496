# Build conventions: one small static library a folder, one test executable a folder.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# Where fetched packages lie (tools/fetch_deps.py) and where the optional shared test data is.
set(QUAIL_DEPS_DIR "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "Fetched packages")
set(QUAIL_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Optional shared test data")

add_library(quail_options INTERFACE)
target_include_directories(quail_options INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(quail_options INTERFACE fmt::fmt Threads::Threads)

# Warnings are for C++ only: nvcc's host pass sees generated code, and infer/cuda has its own list.
set(quail_warnings -Wall -Wextra -Wshadow -Wconversion)
if(QUAIL_WERROR)
  list(APPEND quail_warnings -Werror)
endif()
target_compile_options(quail_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${quail_warnings}>")

# Sanitizers change the memory layout, so they are set for every target at once.
if(QUAIL_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${QUAIL_SANITIZE}>"
    -fno-omit-frame-pointer "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${QUAIL_SANITIZE})
endif()

# What carries the label `threads` or `fuzz`: the thread sanitizer's and libFuzzer's builds compile
# nothing else.
add_custom_target(threaded_tests)
add_custom_target(fuzz_targets)

# quail_library(<folder> SOURCES a.cpp .. LINK quail_base ..): target quail_<folder>.
function(quail_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(quail_${folder} STATIC ${ARG_SOURCES})
  target_link_libraries(quail_${folder} PUBLIC quail_options ${ARG_LINK})
endfunction()

# Folders that tests read from. A header, not definitions: a compiler cache can then share the objects
# of all files that do not include it between clones in different folders.
configure_file("${PROJECT_SOURCE_DIR}/tests/test_paths.h.in" "${PROJECT_BINARY_DIR}/tests/test_paths.h")

# quail_test(<name> SOURCES a_test.cpp .. LINK quail_text .. [LABELS threads gpu]): a GoogleTest
# executable and one ctest entry. Label `threads`: run under the thread sanitizer too; `gpu`: needs one.
function(quail_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  # Half of a first build was the optimiser's work on test bodies; what they test keeps its -O3.
  target_compile_options(${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
  target_include_directories(${name} PRIVATE "${PROJECT_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  # RapidCheck draws the same cases every time; a failure names what it drew.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600
    ENVIRONMENT "RC_PARAMS=seed=20261129")
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threaded_tests ${name})
  endif()
endfunction()

# quail_fuzz(<name> SOURCES a_fuzz.cpp LINK quail_sql .. [RUNS n]): a fuzz target. Its seeds lie in
# seeds/<name>/ beside it. With QUAIL_FUZZ it is linked with libFuzzer and ctest makes RUNS mutations
# from a fixed seed; otherwise ctest replays the seeds, so that found crashes stay found.
function(quail_fuzz name)
  cmake_parse_arguments(ARG "" "RUNS" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_RUNS)
    set(ARG_RUNS 20000)
  endif()
  set(seeds "${CMAKE_CURRENT_SOURCE_DIR}/seeds/${name}")
  if(NOT IS_DIRECTORY "${seeds}")
    message(FATAL_ERROR "fuzz target ${name} has no seeds in ${seeds}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  add_dependencies(fuzz_targets ${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} quail_base)
  if(QUAIL_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # An empty corpus folder each time: what an earlier run found would change this one.
    set(corpus "${CMAKE_CURRENT_BINARY_DIR}/corpus/${name}")
    add_test(NAME ${name} COMMAND sh -c
      "rm -rf '${corpus}' && mkdir -p '${corpus}' && exec \"$0\" \"$@\"" $<TARGET_FILE:${name}>
      -seed=1 -runs=${ARG_RUNS} -max_total_time=120 -timeout=10 -rss_limit_mb=4096 -verbosity=0
      -print_final_stats=1 "-artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}-" "${corpus}"
      "${seeds}")
  else()
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp")
    add_test(NAME ${name} COMMAND ${name} "${seeds}")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endfunction()
