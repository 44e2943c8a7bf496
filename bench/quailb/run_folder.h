#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace quail::quailb {

/// The results of a run: one file a query, each written as a whole or not at all, and the settings
/// that all of them share.
class RunFolder {
 public:
  /// Makes the folder. Throws Error{kUsage} where results are there and `resume` is not set, or
  /// were made with other settings; Error{kIo} where it cannot be written.
  RunFolder(const std::string& path, const nlohmann::ordered_json& settings, bool resume);

  bool Has(std::string_view query) const;
  void Write(std::string_view query, const nlohmann::ordered_json& result) const;
  nlohmann::ordered_json Read(std::string_view query) const;
  /// Writes a file of the folder, as a whole or not at all.
  void WriteFile(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace quail::quailb
