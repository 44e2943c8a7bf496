#include "quailb/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "quail/session.h"
#include "quailb/data_folder.h"
#include "quailb/result_table.h"
#include "quailb/run_folder.h"
#include "quailb/suite_files.h"

namespace quail::quailb {
namespace {

using Json = nlohmann::ordered_json;

PromptLayout ReadLayout(const std::string& name) {
  if (name == "own") return PromptLayout::kOwn;
  if (name == "published") return PromptLayout::kPublished;
  throw Error(ErrorCode::kUsage,
              fmt::format("there is no layout '{}' (known: own, published)", name));
}

void CheckNames(const SuiteRunOptions& options) {
  if (options.suite != "quailb") {
    throw Error(ErrorCode::kUsage,
                fmt::format("there is no suite '{}' (known: quailb)", options.suite));
  }
  if (options.answers != "truth" && options.answers != "flow4b" && options.answers != "none") {
    throw Error(ErrorCode::kUsage, fmt::format("there are no answers '{}' (known: truth, flow4b, "
                                               "none)",
                                               options.answers));
  }
  if (!(options.hourly_price >= 0)) {
    throw Error(ErrorCode::kUsage, "--price needs dollars an hour, not below 0");
  }
  if (options.data.empty()) throw Error(ErrorCode::kUsage, "bench run needs --data DIR");
  if (options.output.empty()) throw Error(ErrorCode::kUsage, "bench run needs --out DIR");
}

struct Slice {
  std::size_t part = 1;  ///< 1-based
  std::size_t parts = 1;
};

/// "2/5".
Slice ReadSlice(const std::string& text) {
  if (text.empty()) return {};
  Slice slice;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, slice.part);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, slice.parts) : first;
  if (!slash || second.ec != std::errc() || second.ptr != end || slice.part < 1 ||
      slice.part > slice.parts) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--slice needs I/N with I from 1 to N, not '{}'", text));
  }
  return slice;
}

/// The queries to run, in the suite's order.
std::vector<const Query*> ChosenQueries(const SuiteRunOptions& options) {
  std::vector<const Query*> named;
  for (const std::string& name : options.only) named.push_back(&FindQuery(name));
  std::vector<const Query*> chosen;
  const Slice slice = ReadSlice(options.slice);
  std::size_t number = 0;
  for (const Query& query : Queries()) {
    if (!named.empty() && std::ranges::find(named, &query) == named.end()) continue;
    if (number++ % slice.parts == slice.part - 1) chosen.push_back(&query);
  }
  if (chosen.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("slice {} of {} queries is empty", options.slice, number));
  }
  return chosen;
}

/// The commit of the source tree that the program was built in; "unknown" where it is gone.
std::string Commit() {
  std::string commit;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen("git -C '" QUAIL_SOURCE_DIR "' describe --always --dirty 2>/dev/null", "r"),
      ::pclose);
  char line[128];
  if (pipe != nullptr && std::fgets(line, sizeof line, pipe.get()) != nullptr) commit = line;
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return commit.empty() ? "unknown" : commit;
}

/// What all results of a folder have in common.
Json Settings(const SuiteRunOptions& options, const DataFolder& data) {
  const Config& config = options.config;
  return {{"suite", options.suite},
          {"scale", ScaleName(data.scale())},
          {"data_seed", data.seed()},
          {"layout", options.layout},
          {"answers", options.answers},
          {"hints", options.hints},
          {"plan_only", options.plan_only},
          {"model", config.model},
          {"random_weights", config.random_weights},
          {"backend", config.backend},
          {"threads", config.threads},
          {"kv_memory", config.kv_memory},
          {"kv_tokens", config.kv_tokens},
          {"chunk_tokens", config.chunk_tokens},
          {"fp8_scales", config.fp8_scales == Fp8Scales::kUe8m0 ? "ue8m0" : "exact"},
          {"radix", config.radix},
          {"baseline", config.baseline}};
}

Config SessionConfig(const SuiteRunOptions& options, const DataFolder& data) {
  Config config = options.config;
  config.dialect = Dialect::kSnowflake;
  config.token_prompts = data.Prompts(ReadLayout(options.layout));
  config.check_minimum = true;
  if (options.hints) {
    for (const auto& [question, rate] : ReadHints(HintsText())) {
      config.hints.emplace_back(FindQuestion(question).text, rate);
    }
  }
  return config;
}

/// The forest's own count of distinct tokens and the one from sorted paths must be the same.
void CheckMinimum(std::string_view query, const Json& report) {
  const Json& tokens = report.at("tokens");
  if (tokens.at("minimum") == tokens.at("sorted_minimum")) return;
  throw Error(
      ErrorCode::kQuery,
      fmt::format("{}: the forest counted {} distinct tokens, sorting the asked paths gives "
                  "{}",
                  query, tokens.at("minimum").dump(), tokens.at("sorted_minimum").dump()));
}

class SuiteRun {
 public:
  SuiteRun(const SuiteRunOptions& options, const DataFolder& data)
      : options_(options),
        data_(data),
        settings_(Settings(options, data)),
        folder_(options.output, settings_, options.resume),
        session_(Session::Open(SessionConfig(options, data))) {
    settings_["commit"] = Commit();
    data_.Register(*session_);
  }

  void Run(const Query& query) {
    if (folder_.Has(query.name)) return Say(fmt::format("{}: done before", query.name));
    Say(fmt::format("{}: running", query.name));
    if (options_.answers != "none") {
      session_->PlantAnswers(data_.Answers(*session_, options_.answers, query));
    }
    Json result = options_.plan_only ? Plan(query) : Measure(query);
    result["suite"] = settings_;
    result["suite"]["query"] = query.name;
    folder_.Write(query.name, result);
    WriteTables();
    Say(fmt::format("{}: {:.2f} s", query.name, Seconds(result)));
  }

 private:
  void Say(const std::string& line) const {
    if (options_.on_line) options_.on_line(line);
  }

  std::unique_ptr<Result> Start(const Query& query, RunOptions::Explain explain) {
    const std::string sql(QueryText(query.name));
    RunOptions run;
    run.explain = explain;
    run.more_may_follow = false;
    return session_->Run(sql, session_->Split(sql).at(0), run);
  }

  Json Plan(const Query& query) {
    const auto rows = Start(query, RunOptions::Explain::kJson)->Next();
    Json plan = Json::parse(rows.at(0).at(0).value());
    double most = 0;
    for (const Json& step : plan.at("steps")) {
      if (step.contains("rows")) most += step.at("rows").get<double>();
    }
    plan["total"]["rows"] = most;
    return plan;
  }

  Json Measure(const Query& query) {
    session_->PrepareModel();
    Start(query, RunOptions::Explain::kNo)->Drain();
    Json report = Json::parse(session_->ReportJson());
    CheckMinimum(query.name, report);
    return report;
  }

  static double Seconds(const Json& result) {
    return result.contains("seconds") ? result["seconds"].value("total", 0.0)
                                      : result["total"].value("estimated_seconds", 0.0);
  }

  /// Of all results in the folder, also those of earlier runs.
  void WriteTables() const {
    std::vector<Json> results;
    for (const Query& query : Queries()) {
      if (folder_.Has(query.name)) results.push_back(folder_.Read(query.name));
    }
    const TextTable table =
        options_.plan_only ? PlanTable(results) : ResultTable(results, options_.hourly_price);
    const std::string name = options_.plan_only ? "plans" : "results";
    folder_.WriteFile(name + ".tsv", table.Tsv());
    folder_.WriteFile(name + ".md", table.Markdown());
  }

  const SuiteRunOptions& options_;
  const DataFolder& data_;
  Json settings_;
  RunFolder folder_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void RunSuite(const SuiteRunOptions& options) {
  CheckNames(options);
  ReadLayout(options.layout);
  const std::vector<const Query*> queries = ChosenQueries(options);
  const DataFolder data =
      DataFolder::Open(options.data, options.scale, options.config.duckdb_library);
  SuiteRun run(options, data);
  for (const Query* query : queries) run.Run(*query);
}

}  // namespace quail::quailb
