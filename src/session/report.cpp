#include "session/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "session/version.h"

namespace quail::session {
namespace {

using Json = nlohmann::ordered_json;

struct Totals {
  exec::StepCounters calls;
  exec::TokenCounters tokens;
  bool has_tokens = false;
};

Totals Sum(const std::vector<RunReport::Step>& steps) {
  Totals totals;
  for (const RunReport::Step& step : steps) {
    const exec::StepCounters& counters = step.counters;
    totals.calls.asked += counters.asked;
    totals.calls.distinct += counters.distinct;
    totals.calls.yes += counters.yes;
    totals.calls.no += counters.no;
    totals.calls.null += counters.null;
    totals.calls.null_input += counters.null_input;
    totals.calls.error += counters.error;
    totals.calls.unjudged += counters.unjudged;
    if (!counters.tokens) continue;
    totals.has_tokens = true;
    totals.tokens.requested += counters.tokens->requested;
    totals.tokens.fresh += counters.tokens->fresh;
    totals.tokens.recomputed += counters.tokens->recomputed;
    totals.tokens.cut_asks += counters.tokens->cut_asks;
  }
  return totals;
}

/// Tokens that were asked for and not computed; recomputation can make it negative.
std::int64_t Cached(const exec::TokenCounters& tokens) {
  return static_cast<std::int64_t>(tokens.requested) - static_cast<std::int64_t>(tokens.fresh);
}

Json StepJson(const RunReport::Step& step) {
  const exec::StepCounters& counters = step.counters;
  Json json{{"name", step.name}, {"kind", counters.kind}, {"tables", counters.tables}};
  if (!counters.anchor.empty()) json["anchor"] = counters.anchor;
  Json selectivity = Json::object();
  if (step.hint) selectivity["hint"] = *step.hint;
  if (counters.rows_in > 0 && counters.kind != "column") {
    selectivity["observed"] =
        static_cast<double>(counters.rows_out) / static_cast<double>(counters.rows_in);
  }
  json["selectivity"] = selectivity;
  json["asked"] = counters.asked;
  json["distinct"] = counters.distinct;
  json["true"] = counters.yes;
  json["false"] = counters.no;
  json["null"] = counters.null;
  json["null_input"] = counters.null_input;
  json["error"] = counters.error;
  json["unjudged"] = counters.unjudged;
  if (counters.tokens) {
    json["fresh"] = counters.tokens->fresh;
    json["cached"] = Cached(*counters.tokens);
    json["cut_asks"] = counters.tokens->cut_asks;
  }
  json["seconds"] = counters.seconds;
  if (step.estimate) json["estimated_seconds"] = step.estimate->predicted_seconds;
  if (step.roofline_seconds) json["roofline_seconds"] = *step.roofline_seconds;
  return json;
}

void AddHead(const RunReport& report, Json& json) {
  json["query"] = report.query;
  json["dialect"] = report.dialect;
  json["seed"] = report.seed;
  json["started_at"] = report.started_at;
  json["version"] = kVersion;
  if (report.model) {
    json["model"] = {{"name", report.model->name},
                     {"path", report.model->path},
                     {"hash", report.model->hash},
                     {"parameters", report.model->parameters},
                     {"weight_type", report.model->weight_type}};
    if (!report.model->weights.empty()) json["model"]["weights"] = report.model->weights;
  }
  if (report.device) {
    json["device"] = {{"name", report.device->name},
                      {"backend", report.device->backend},
                      {"threads", report.device->threads},
                      {"memory_bytes", report.device->memory_bytes},
                      {"compute_type", report.device->compute_type}};
    if (!report.device->fp8_scales.empty()) {
      json["device"]["fp8_scales"] = report.device->fp8_scales;
    }
  }
  if (!report.planted_answers.empty()) json["planted_answers"] = report.planted_answers;
  json["seconds"] = report.seconds;
  if (report.rows) json["rows"] = *report.rows;
}

void AddCalls(const RunReport& report, const Totals& totals, Json& json) {
  const exec::StepCounters& calls = totals.calls;
  json["calls"] = {
      {"asked", calls.asked}, {"distinct", calls.distinct}, {"true", calls.yes},
      {"false", calls.no},    {"null", calls.null},         {"null_input", calls.null_input},
      {"error", calls.error}, {"unjudged", calls.unjudged}, {"labels", Json::object()}};
  json["errors"] = Json::array();
  for (const auto& failure : report.failures) {
    json["errors"].push_back(
        {{"reason", failure.reason}, {"count", failure.count}, {"rows", failure.rows}});
  }
}

void AddTokens(const RunReport& report, const Totals& totals, Json& json) {
  const exec::TokenCounters& tokens = totals.tokens;
  Json values{{"requested", tokens.requested}, {"fresh", tokens.fresh}, {"cached", Cached(tokens)}};
  if (report.minimum_tokens) {
    values["minimum"] = *report.minimum_tokens;
    values["regret"] =
        static_cast<std::int64_t>(tokens.fresh) - static_cast<std::int64_t>(*report.minimum_tokens);
  }
  if (report.sorted_minimum_tokens) values["sorted_minimum"] = *report.sorted_minimum_tokens;
  if (totals.has_tokens) values["cut_asks"] = tokens.cut_asks;
  json["tokens"] = values;
  if (report.pairs) json["pairs"] = *report.pairs;
  const auto model = report.seconds.find("model");
  if (totals.has_tokens && model != report.seconds.end() && model->second > 0) {
    json["rates"] = {
        {"fresh_tokens_per_s", static_cast<double>(tokens.fresh) / model->second},
        {"requested_tokens_per_s", static_cast<double>(tokens.requested) / model->second},
        {"asks_per_s", static_cast<double>(totals.calls.distinct) / model->second}};
    if (report.roofline_seconds) {
      json["roofline"] = {{"seconds", *report.roofline_seconds}};
      // Where nothing is computed, time is no measure.
      if (*report.roofline_seconds <= model->second) {
        json["roofline"]["fraction"] = *report.roofline_seconds / model->second;
      }
    }
  }
}

Json RangeJson(const RunReport::Power::Range& range) {
  return {{"median", range.median}, {"min", range.least}};
}

void AddPower(const RunReport::Power& power, std::uint64_t fresh_tokens, Json& json) {
  Json values = Json::object();
  if (power.joules) {
    values["joules"] = *power.joules;
    if (fresh_tokens > 0) {
      values["joules_per_fresh_token"] = *power.joules / static_cast<double>(fresh_tokens);
    }
  }
  if (power.megahertz) values["clock_mhz"] = RangeJson(*power.megahertz);
  if (power.watts) values["watts"] = RangeJson(*power.watts);
  if (!values.empty()) json["power"] = values;
}

void AddDevice(const RunReport& report, Json& json) {
  if (report.chunks) {
    json["chunks"] = {{"count", report.chunks->count},
                      {"median_tokens", report.chunks->median_tokens},
                      {"max_tokens", report.chunks->max_tokens}};
  }
  if (report.kv) {
    json["kv"] = {{"capacity_tokens", report.kv->capacity_tokens},
                  {"peak_tokens", report.kv->peak_tokens},
                  {"evictions", report.kv->evictions},
                  {"recomputed_tokens", report.kv->recomputed_tokens}};
  }
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    json["peak_memory_bytes"] = {{"host", std::int64_t{usage.ru_maxrss} * 1024}};
    if (report.device_peak_bytes) {
      json["peak_memory_bytes"]["device"] = *report.device_peak_bytes;
    }
  }
}

}  // namespace

std::string RunReport::ToJson() const {
  Json json;
  const Totals totals = Sum(steps);
  AddHead(*this, json);
  AddCalls(*this, totals, json);
  AddTokens(*this, totals, json);
  AddDevice(*this, json);
  if (power) AddPower(*power, totals.tokens.fresh, json);
  json["steps"] = Json::array();
  for (const Step& step : steps) json["steps"].push_back(StepJson(step));
  json["notices"] = notices;
  if (error_message) {
    json["error"] = {{"message", *error_message}};
    if (error_position) {
      json["error"]["line"] = error_position->line;
      json["error"]["column"] = error_position->column;
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string IsoTime() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace quail::session
