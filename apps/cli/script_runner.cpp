#include "script_runner.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "render.h"

namespace quail::cli {

void ScriptRunner::Run(std::string_view script, std::ostream& out) {
  const auto statements = session_.Split(script);
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const bool to_file = options_.format == Format::kParquet && i + 1 == statements.size();
    if (to_file) {
      session_.RunToFile(script, statements[i], "parquet", options_.output);
      progress_.Clear();
    } else {
      RunOne(script, statements[i], out);
    }
  }
}

void ScriptRunner::RunOne(std::string_view script, const Session::Statement& statement,
                          std::ostream& out) {
  RunOptions run;
  run.form = FormOf(options_.format);
  run.explain = options_.explain;
  const auto result = session_.Run(script, statement, run);
  progress_.Clear();
  if (!result->has_rows()) return;
  // Rows before the last statement have no place in a file of another form.
  const Format format = options_.format == Format::kParquet ? Format::kCsv : options_.format;
  Render(*result, format, out);
  out.flush();
  if (!out) throw Error(ErrorCode::kIo, "the rows cannot be written");
}

void WriteReport(const Session* session, const Options& options, const Error* failure) {
  if (options.report.empty()) return;
  std::string report = session == nullptr ? "" : session->ReportJson();
  const bool has_failure = report.find("\n  \"error\": {") != std::string::npos;
  if (failure != nullptr && !has_failure) {
    nlohmann::ordered_json json =
        report.empty() ? nlohmann::ordered_json::object() : nlohmann::ordered_json::parse(report);
    json["error"] = {{"message", failure->what()}};
    if (failure->position()) {
      json["error"]["line"] = failure->position()->line;
      json["error"]["column"] = failure->position()->column;
    }
    report = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  if (report.empty()) report = "{}";
  if (options.report == "-") {
    fmt::print(stderr, "{}\n", report);
    return;
  }
  std::ofstream file(options.report);
  file << report << '\n';
  if (!file.flush()) {
    throw Error(ErrorCode::kIo, fmt::format("cannot write the report '{}'", options.report));
  }
}

}  // namespace quail::cli
