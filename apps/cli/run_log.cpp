#include "run_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "quail/error.h"
#include "standard_streams.h"

namespace quail::cli {
namespace {

using Json = nlohmann::ordered_json;

/// "model, backend; asked 6, distinct 5, true 3 ..; 1,204 fresh tokens".
std::string Summary(const Json& report) {
  std::string text;
  if (report.contains("model")) {
    text += fmt::format("{} on {}; ", report["model"].value("name", ""),
                        report.value("/device/backend"_json_pointer, ""));
  }
  std::string counts;
  for (const auto& [name, count] : report["calls"].items()) {
    if (!count.is_number()) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", name, count.get<std::uint64_t>());
  }
  text += counts;
  const auto fresh = report.value("/tokens/fresh"_json_pointer, std::uint64_t{0});
  if (fresh > 0) text += fmt::format("; {} fresh tokens", fresh);
  return text;
}

}  // namespace

RunLog::RunLog(const Options& options, ProgressLine& progress)
    : verbose_(options.verbose), progress_(progress) {
  if (options.log.empty()) return;
  errno = 0;
  file_.open(options.log, std::ios::app);
  if (file_) return;
  throw Error(ErrorCode::kIo,
              fmt::format("cannot write the log '{}': {}", options.log, std::strerror(errno)));
}

void RunLog::Keep(std::string_view text) {
  if (!file_.is_open()) return;
  const auto now = std::chrono::system_clock::now();
  file_ << fmt::format("{:%FT%TZ} {}\n",
                       fmt::gmtime(std::chrono::time_point_cast<std::chrono::seconds>(now)), text);
  if (file_.flush()) return;
  PrintToErrors("notice: the log cannot be written\n");
  file_.close();
}

void RunLog::Tell(std::string_view text) {
  Keep(text);
  if (!verbose_) return;
  progress_.Clear();
  PrintToErrors("{}\n", text);
}

void RunLog::TellEnd(double seconds, const std::string& report) {
  if (!report.empty()) Tell(Summary(Json::parse(report)));
  Tell(fmt::format("{:.3f} s", seconds));
}

}  // namespace quail::cli
