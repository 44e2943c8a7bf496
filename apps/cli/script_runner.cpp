#include "script_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "output_file.h"
#include "render.h"
#include "standard_streams.h"

namespace quail::cli {
namespace {

[[noreturn]] void RefuseReport(const std::string& path) {
  throw Error(ErrorCode::kIo, fmt::format("cannot write the report '{}'", path));
}

}  // namespace

void ScriptRunner::Run(std::string_view script, std::ostream& out) {
  const auto statements = session_.Split(script);
  for (std::size_t i = 0; i < statements.size(); ++i) {
    RunStatement(script, statements[i], i + 1 < statements.size(), out);
  }
}

void ScriptRunner::RunStatement(std::string_view script, const Session::Statement& statement,
                                bool more_may_follow, std::ostream& out) {
  RunOptions run;
  run.form = FormOf(options_.format);
  run.explain = options_.explain;
  run.more_may_follow = more_may_follow;
  Logged(statement, [&] { RunOne(script, statement, run, out); });
}

template <typename Call>
void ScriptRunner::Logged(const Session::Statement& statement, Call call) {
  const auto run = [&] {
    call();
    stopped_by_budget_ |= session_.StoppedByBudget();
  };
  if (!log_.on()) return run();
  log_.Tell(statement.text);
  const std::string before = session_.ReportJson();
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const std::string report = session_.ReportJson();
  log_.TellEnd(taken.count(), report == before ? "" : report);
}

void ScriptRunner::WriteBinary(std::string_view script, const std::string& path) {
  const std::string format = options_.format == Format::kParquet ? "parquet" : "arrow";
  const auto statements = session_.Split(script);
  const auto has_rows = [&](const auto& statement) { return session_.HasRows(script, statement); };
  const auto only = std::ranges::find_if(statements, has_rows);
  const auto next =
      std::find_if(only == statements.end() ? only : only + 1, statements.end(), has_rows);
  if (only == statements.end() || next != statements.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("format {} writes the rows of one statement, and here {}", format,
                            only == statements.end() ? "none has rows" : "several have rows"));
  }
  for (auto statement = statements.begin(); statement != statements.end(); ++statement) {
    bool has_more = false;
    Logged(*statement, [&] {
      if (statement == only) {
        session_.RunToFile(script, *statement, format, path);
      } else {
        has_more = session_.Run(script, *statement, {})->has_rows();
      }
    });
    if (has_more) {
      throw Error(ErrorCode::kUsage, fmt::format("format {} has no place for the rows of: {}",
                                                 format, statement->text));
    }
    progress_.Clear();
  }
}

void ScriptRunner::RunOne(std::string_view script, const Session::Statement& statement,
                          const RunOptions& run, std::ostream& out) {
  const auto result = session_.Run(script, statement, run);
  progress_.Clear();
  if (!result->has_rows()) return;
  Render(*result, options_.format, out);
  out.flush();
  if (!out) throw Error(ErrorCode::kIo, "the rows cannot be written");
}

void CheckReport(const Options& options) {
  const std::string& path = options.report;
  // A pipe's reader would take the opening for the report.
  if (path.empty() || path == "-" || IsWrittenInPlace(path)) return;
  if (!std::ofstream(path, std::ios::app)) RefuseReport(path);
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
    if (!WriteToErrors(report + "\n")) RefuseReport("standard error");
    return;
  }
  std::ofstream file(options.report);
  file << report << '\n';
  if (!file.flush()) RefuseReport(options.report);
}

}  // namespace quail::cli
