#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace quail::quailb {

struct GenerateOptions {
  std::string suite = "quailb";
  std::string scale = "0.1";
  std::uint64_t seed = 1;
  std::string mode = "ids";
  std::string output;                              ///< a directory that is not there yet
  std::string duckdb_library;                      ///< as in Config
  std::function<void(std::string_view)> on_table;  ///< told each table that is written
  std::function<bool()> interrupted;               ///< asked again and again whether to give up
};

/// Writes the suite's tables as Parquet, its prompt pieces, its planted answers and a manifest into
/// OUTPUT.partial, which becomes OUTPUT when all is complete; a failure removes it. What an
/// interrupted run left there is replaced. Throws Error{kUsage | kUnsupported} for an unknown
/// suite, scale or mode, Error{kIo} where the output exists or cannot be written,
/// Error{kInterrupted}.
void GenerateSuite(const GenerateOptions& options);

}  // namespace quail::quailb
