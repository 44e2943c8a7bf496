#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace quail {

enum class Dialect : std::uint8_t { kSnowflake, kBigQuery };

/// What a running statement tells, at most twice a second.
struct Progress {
  std::string step;  ///< "filter reviews"
  std::uint64_t asks_done = 0;
  std::uint64_t asks_total = 0;  ///< upper bound
  double rows_per_second = 0;
  double fresh_tokens_per_second = 0;
  double observed_selectivity = -1;  ///< -1: nothing observed
  double seconds_left = -1;          ///< -1: unknown
};

struct Config {
  std::string database;          ///< a DuckDB file; empty: in memory
  std::string model;             ///< known name, directory or .gguf; empty: the embedded default
  std::string adapter;           ///< "none", a path; empty: the embedded default's own
  std::string backend = "auto";  ///< auto, cpu, cuda
  std::string oracle;            ///< truth table instead of a model (file)
  std::string duckdb_library;    ///< explicit path of libduckdb
  Dialect dialect = Dialect::kSnowflake;
  std::uint32_t threads = 0;    ///< 0: all usable cores
  std::uint64_t kv_memory = 0;  ///< bytes; 0: chosen from the device's memory
  std::uint64_t seed = 0;
  bool deterministic = false;
  std::vector<std::pair<std::string, std::string>> settings;  ///< as SET NAME = VALUE
  std::function<void(const Progress&)> on_progress;
  std::function<void(const std::string&)> on_notice;
};

}  // namespace quail
