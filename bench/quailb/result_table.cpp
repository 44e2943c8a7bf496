#include "quailb/result_table.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace quail::quailb {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNotMeasured = "-";
constexpr double kSecondsAnHour = 3600;
constexpr double kPerGibibyte = 0x1p-30;

/// A number at a path of member names ("/tokens/fresh"); nothing where it is absent.
std::optional<double> Number(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer) || !json.at(pointer).is_number()) return std::nullopt;
  return json.at(pointer).get<double>();
}

std::string Text(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer) || !json.at(pointer).is_string()) return kNotMeasured;
  return json.at(pointer).get<std::string>();
}

std::string Whole(std::optional<double> value) {
  return value ? fmt::format("{:.0f}", *value) : kNotMeasured;
}

std::string Short(std::optional<double> value) {
  return value ? fmt::format("{:.4g}", *value) : kNotMeasured;
}

std::optional<double> Ratio(std::optional<double> a, std::optional<double> b, double factor = 1) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b * factor;
}

struct ColumnOf {
  const char* name;
  std::function<std::string(const Json&)> text;
};

ColumnOf WholeAt(const char* name, const char* path) {
  return {name, [path](const Json& json) { return Whole(Number(json, path)); }};
}
ColumnOf ShortAt(const char* name, const char* path) {
  return {name, [path](const Json& json) { return Short(Number(json, path)); }};
}
ColumnOf TextAt(const char* name, const char* path) {
  return {name, [path](const Json& json) { return Text(json, path); }};
}
ColumnOf ScaledAt(const char* name, const char* path, double factor) {
  return {name, [=](const Json& json) { return Short(Ratio(Number(json, path), 1, factor)); }};
}
/// `a` over `b` times a factor.
ColumnOf RatioOf(const char* name, const char* a, const char* b, double factor = 1) {
  return {name,
          [=](const Json& json) { return Short(Ratio(Number(json, a), Number(json, b), factor)); }};
}

std::vector<ColumnOf> ResultColumns(double hourly_price) {
  const auto cost = [hourly_price](const Json& json) {
    if (hourly_price <= 0) return std::string(kNotMeasured);
    return Short(Ratio(Number(json, "/seconds/total"), kSecondsAnHour, hourly_price));
  };
  return {TextAt("query", "/suite/query"),
          ShortAt("seconds", "/seconds/total"),
          ShortAt("model s", "/seconds/model"),
          ShortAt("roofline s", "/roofline/seconds"),
          RatioOf("fraction", "/roofline/seconds", "/seconds/total"),
          WholeAt("rows", "/rows"),
          WholeAt("asked", "/calls/asked"),
          WholeAt("distinct", "/calls/distinct"),
          RatioOf("pairs/s", "/pairs", "/seconds/total"),
          WholeAt("requested", "/tokens/requested"),
          WholeAt("fresh", "/tokens/fresh"),
          WholeAt("minimum", "/tokens/minimum"),
          WholeAt("regret", "/tokens/regret"),
          RatioOf("fresh/s", "/tokens/fresh", "/seconds/total"),
          RatioOf("requested G/min", "/tokens/requested", "/seconds/total", 60e-9),
          WholeAt("chunks", "/chunks/count"),
          WholeAt("evictions", "/kv/evictions"),
          {"cost $", cost},
          ScaledAt("host GiB", "/peak_memory_bytes/host", kPerGibibyte),
          ScaledAt("device GiB", "/peak_memory_bytes/device", kPerGibibyte),
          WholeAt("MHz median", "/power/clock_mhz/median"),
          WholeAt("MHz min", "/power/clock_mhz/min"),
          WholeAt("W median", "/power/watts/median"),
          WholeAt("W min", "/power/watts/min"),
          RatioOf("J/fresh", "/power/joules", "/tokens/fresh"),
          TextAt("planted", "/planted_answers"),
          TextAt("weights", "/model/weights"),
          TextAt("commit", "/suite/commit")};
}

std::vector<ColumnOf> PlanColumns() {
  return {TextAt("query", "/suite/query"),
          WholeAt("rows", "/total/rows"),
          WholeAt("pairs", "/total/pairs"),
          WholeAt("asks", "/total/asks"),
          WholeAt("requested", "/total/tokens/requested"),
          WholeAt("fresh", "/total/tokens/fresh"),
          ShortAt("roofline s", "/total/roofline_seconds"),
          ShortAt("predicted s", "/total/estimated_seconds")};
}

TextTable TableOf(const std::vector<ColumnOf>& columns, std::span<const Json> lines) {
  TextTable table;
  for (const ColumnOf& column : columns) table.head.emplace_back(column.name);
  for (const Json& line : lines) {
    auto& row = table.rows.emplace_back();
    for (const ColumnOf& column : columns) row.push_back(column.text(line));
  }
  return table;
}

std::string Line(const std::vector<std::string>& cells, const char* before, const char* between,
                 const char* after) {
  return fmt::format("{}{}{}\n", before, fmt::join(cells, between), after);
}

}  // namespace

std::string TextTable::Tsv() const {
  std::string text = Line(head, "", "\t", "");
  for (const auto& row : rows) text += Line(row, "", "\t", "");
  return text;
}

std::string TextTable::Markdown() const {
  std::string text = Line(head, "| ", " | ", " |");
  text += Line(std::vector<std::string>(head.size(), "---"), "| ", " | ", " |");
  for (const auto& row : rows) text += Line(row, "| ", " | ", " |");
  return text;
}

TextTable ResultTable(std::span<const Json> results, double hourly_price) {
  return TableOf(ResultColumns(hourly_price), results);
}

TextTable PlanTable(std::span<const Json> plans) { return TableOf(PlanColumns(), plans); }

}  // namespace quail::quailb
