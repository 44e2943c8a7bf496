#include "quailb/run_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "quail/error.h"

namespace quail::quailb {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSettings = "run.json";

Json ReadJson(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::kIo, fmt::format("cannot read '{}'", path.string()));
  try {
    return Json::parse(file);
  } catch (const nlohmann::json::exception&) {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("'{}' is broken; without it --resume runs its query again", path.string()));
  }
}

/// "layout published, not own; seed 2, not 1".
std::string Differences(const Json& wanted, const Json& found) {
  std::string text;
  for (const auto& [key, value] : wanted.items()) {
    const Json other = found.contains(key) ? found[key] : Json();
    if (value == other) continue;
    text +=
        fmt::format("{}{} {}, not {}", text.empty() ? "" : "; ", key, other.dump(), value.dump());
  }
  return text;
}

}  // namespace

RunFolder::RunFolder(const std::string& path, const Json& settings, bool resume) : path_(path) {
  std::error_code fault;
  fs::create_directories(path_, fault);
  if (fault) {
    throw Error(ErrorCode::kIo, fmt::format("cannot make '{}': {}", path, fault.message()));
  }
  if (!fs::exists(path_ / kSettings)) {
    WriteFile(kSettings, settings.dump(2) + "\n");
    return;
  }
  if (!resume) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' has results already: --resume keeps and "
                                               "completes them",
                                               path));
  }
  const std::string differences = Differences(settings, ReadJson(path_ / kSettings));
  if (!differences.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the results in '{}' were made with {}", path, differences));
  }
}

bool RunFolder::Has(std::string_view query) const {
  return fs::exists(path_ / fmt::format("{}.json", query));
}

void RunFolder::Write(std::string_view query, const Json& result) const {
  WriteFile(fmt::format("{}.json", query), result.dump(2) + "\n");
}

Json RunFolder::Read(std::string_view query) const {
  return ReadJson(path_ / fmt::format("{}.json", query));
}

void RunFolder::WriteFile(const std::string& name, const std::string& text) const {
  const fs::path target = path_ / name;
  const fs::path partial = path_ / (name + ".partial");
  errno = 0;
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  std::error_code fault;
  if (!file) {
    const std::string reason = errno == 0 ? "unknown reason" : std::strerror(errno);
    fs::remove(partial, fault);
    throw Error(ErrorCode::kIo, fmt::format("cannot write '{}': {}", target.string(), reason));
  }
  fs::rename(partial, target, fault);
  if (fault) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write '{}': {}", target.string(), fault.message()));
  }
}

}  // namespace quail::quailb
