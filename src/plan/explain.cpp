#include "plan/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "fmt/format.h"

namespace quail::plan {

namespace {

constexpr std::size_t kColumns = 120;

std::string Count(double value) {
  if (value < 9999.5) return fmt::format("{:.0f}", value);
  if (value < 999.95e3) return fmt::format("{:.1f}k", value / 1e3);
  if (value < 999.95e6) return fmt::format("{:.1f}M", value / 1e6);
  return fmt::format("{:.1f}G", value / 1e9);
}

std::string Duration(double seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 9999.5) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.3g} h", seconds / 3600);
}

/// Cut to a width in code points.
std::string Cut(std::string_view text, std::size_t width) {
  std::size_t points = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && ++points > width) {
      std::string out(text.substr(0, i));
      // Room for the dots: drop the last two characters.
      for (int dropped = 0; dropped < 2 && !out.empty(); ++dropped) {
        while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80)
          out.pop_back();
        if (!out.empty()) out.pop_back();
      }
      return out + "..";
    }
  }
  return std::string(text);
}

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text;
}

/// Rows of cells, all columns but the first two right-aligned.
class Table {
 public:
  void Add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], cells[i].size());
    }
    rows_.push_back({std::move(cells), ""});
  }
  /// A line of its own under the last row.
  void AddDetail(const std::string& line) {
    rows_.back().details += fmt::format("{}\n", Cut("     " + OneLine(line), kColumns));
  }
  std::string Print() const {
    std::string out;
    for (const Row& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        if (i > 0) line += "  ";
        line += i < 2 ? fmt::format("{:<{}}", row.cells[i], widths_[i])
                      : fmt::format("{:>{}}", row.cells[i], widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += Cut(line, kColumns) + "\n" + row.details;
    }
    return out;
  }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string details;
  };
  std::vector<Row> rows_;
  std::vector<std::size_t> widths_;
};

std::string AliasOf(const PhysicalPlan& plan, RelationId id) {
  return plan.relations[id.value()].alias;
}

std::string CallText(const PhysicalPlan& plan, CallId id, bool negated) {
  const Call& call = plan.calls[id.value()];
  std::vector<std::string> arguments;
  arguments.reserve(call.arguments.size());
  for (const Argument& argument : call.arguments) arguments.push_back(argument.sql);
  std::string text = fmt::format("{}{} \"{}\"", negated ? "NOT " : "", call.function, call.prompt);
  if (!arguments.empty()) text += fmt::format(" <- {}", fmt::join(arguments, ", "));
  return text;
}

/// What a step asks, and the choices made for it, a line each.
std::vector<std::string> DetailsOf(const PhysicalPlan& plan, std::size_t index) {
  std::vector<std::string> lines;
  const Step& step = plan.steps[index];
  const std::string& reason = plan.estimates[index].anchor_reason;
  const auto explain_anchor = [&](RelationId anchor) {
    lines.push_back(fmt::format("layout join, anchor {} ({})", AliasOf(plan, anchor), reason));
  };
  if (const auto* filter = std::get_if<AskFilterStep>(&step)) {
    for (const Predicate& p : filter->predicates)
      lines.push_back(CallText(plan, p.call, p.negated));
    if (filter->enough) lines.push_back(fmt::format("stops after {} rows", *filter->enough));
    if (filter->feeds) {
      lines.push_back(
          fmt::format("layout filter, KV of what passes is kept for step {}", *filter->feeds + 1));
    }
  } else if (const auto* join = std::get_if<AskJoinStep>(&step)) {
    for (const Predicate& p : join->stages) lines.push_back(CallText(plan, p.call, p.negated));
    explain_anchor(join->anchor);
    if (!join->pairs_sql.empty()) lines.push_back("pairs restricted by the other conditions");
    if (join->enough) lines.push_back(fmt::format("stops after {} pairs", *join->enough));
  } else if (const auto* column = std::get_if<AskColumnStep>(&step)) {
    lines.push_back(CallText(plan, column->call, false));
    if (column->anchor) explain_anchor(*column->anchor);
  } else if (const auto* on_demand = std::get_if<AskOnDemandStep>(&step)) {
    for (const CallId call : on_demand->calls) lines.push_back(CallText(plan, call, false));
    for (const EarlyStop& stop : on_demand->stops) {
      lines.push_back(
          fmt::format("EXISTS: a row's next tuples are asked until one is {}, {} at first",
                      stop.has_condition ? "found"
                      : stop.negated     ? "FALSE"
                                         : "TRUE",
                      stop.wave));
    }
    lines.push_back(
        "asked as the engine needs the values; rows by its estimate, texts not measured");
  }
  return lines;
}

bool Asks(const Step& step) { return !std::holds_alternative<RelationalStep>(step); }

StepEstimate TotalOf(const PhysicalPlan& plan) {
  StepEstimate total;
  for (const StepEstimate& estimate : plan.estimates) {
    total.asks += estimate.asks;
    total.fresh_tokens += estimate.fresh_tokens;
    total.requested_tokens += estimate.requested_tokens;
    total.roofline_seconds += estimate.roofline_seconds;
    total.predicted_seconds += estimate.predicted_seconds;
  }
  return total;
}

std::string HeadText(const PhysicalPlan& plan, const ExplainHead& head) {
  const StepEstimate total = TotalOf(plan);
  std::string first = fmt::format("model {}, device {}", head.model, head.device);
  if (!head.answers.empty()) first += fmt::format(", answers {}", head.answers);
  if (head.max_pairs) {
    first += fmt::format(", at most {} pairs", Count(static_cast<double>(*head.max_pairs)));
  }
  const std::string second = fmt::format(
      "total {} asks, {} pairs, {} fresh tokens ({} requested), speed of light {}, predicted {}",
      Count(total.asks), Count(PlannedPairs(plan)), Count(total.fresh_tokens),
      Count(total.requested_tokens),
      head.no_light.empty() ? Duration(total.roofline_seconds) : head.no_light,
      Duration(total.predicted_seconds));
  return Cut(first, kColumns) + "\n" + Cut(second, kColumns) + "\n";
}

std::string ActualText(const StepActual& actual, bool has_light) {
  std::string text = fmt::format(
      "actual: {} asked, {} distinct, {} TRUE, {} FALSE, {} NULL, {} error, {} fresh tokens",
      actual.asked, actual.distinct, actual.yes, actual.no, actual.null, actual.error,
      Count(actual.fresh_tokens));
  if (actual.minimum_tokens > 0) {
    text += fmt::format(" ({} regret)", Count(actual.fresh_tokens - actual.minimum_tokens));
  }
  text += fmt::format(", {}", Duration(actual.seconds));
  // The bound is that of the estimate: of a step that had less to do it is none.
  const bool bounds = actual.roofline_seconds > 0 && actual.roofline_seconds <= actual.seconds;
  if (has_light && bounds) {
    text += fmt::format(" ({:.0f} % of light)", 100 * actual.roofline_seconds / actual.seconds);
  }
  return text;
}

nlohmann::json StepJson(const PhysicalPlan& plan, std::size_t index, bool has_light) {
  const Step& step = plan.steps[index];
  const StepEstimate& estimate = plan.estimates[index];
  nlohmann::json json;
  json["name"] = estimate.name;
  nlohmann::json calls = nlohmann::json::array();
  const auto add = [&](CallId id, bool negated) {
    const Call& call = plan.calls[id.value()];
    calls.push_back({{"function", call.function}, {"prompt", call.prompt}, {"negated", negated}});
  };
  if (const auto* relational = std::get_if<RelationalStep>(&step)) {
    json["kind"] = "relational";
    json["sql"] = relational->sql;
    return json;
  }
  if (const auto* filter = std::get_if<AskFilterStep>(&step)) {
    json["kind"] = "filter";
    json["table"] = AliasOf(plan, filter->relation);
    for (const Predicate& p : filter->predicates) add(p.call, p.negated);
    if (filter->feeds) json["feeds"] = *filter->feeds;
  } else if (const auto* join = std::get_if<AskJoinStep>(&step)) {
    json["kind"] = "join";
    json["anchor"] = AliasOf(plan, join->anchor);
    json["partner"] = AliasOf(plan, join->partner);
    json["pairs_sql"] = join->pairs_sql;
    json["keep_sql"] = join->keep_sql;
    for (const Predicate& p : join->stages) add(p.call, p.negated);
  } else if (const auto* column = std::get_if<AskColumnStep>(&step)) {
    json["kind"] = "column";
    json["domain_sql"] = column->domain_sql;
    if (column->anchor) json["anchor"] = AliasOf(plan, *column->anchor);
    add(column->call, false);
  } else if (const auto* on_demand = std::get_if<AskOnDemandStep>(&step)) {
    json["kind"] = "on demand";
    for (const CallId call : on_demand->calls) add(call, false);
  }
  json["calls"] = std::move(calls);
  json["rows"] = estimate.rows_in;
  json["asks"] = estimate.asks;
  json["selectivity"] = {{"value", estimate.selectivity}, {"from", estimate.selectivity_from}};
  json["tokens"] = {{"fresh", estimate.fresh_tokens}, {"requested", estimate.requested_tokens}};
  json["estimated_seconds"] = estimate.predicted_seconds;
  if (has_light) json["roofline_seconds"] = estimate.roofline_seconds;
  if (!estimate.anchor_reason.empty()) json["anchor_reason"] = estimate.anchor_reason;
  return json;
}

}  // namespace

double PlannedPairs(const PhysicalPlan& plan) {
  double pairs = 0;
  for (std::size_t i = 0; i < plan.steps.size() && i < plan.estimates.size(); ++i) {
    const auto* column = std::get_if<AskColumnStep>(&plan.steps[i]);
    const bool of_pairs = std::holds_alternative<AskJoinStep>(plan.steps[i]) ||
                          (column != nullptr && column->anchor.has_value());
    if (of_pairs) pairs += plan.estimates[i].rows_in;
  }
  return pairs;
}

std::string ExplainText(const PhysicalPlan& plan, const ExplainHead& head,
                        std::span<const StepActual> actual) {
  const bool has_light = head.no_light.empty();
  Table table;
  table.Add(
      {"#", "step", "rows", "asks", "selectivity", "fresh", "requested", "light", "predicted"});
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const StepEstimate& e = plan.estimates[i];
    const std::string number = std::to_string(i + 1);
    const std::string name = Cut(e.name, 36);
    if (!Asks(plan.steps[i])) {
      table.Add({number, name});
      continue;
    }
    const std::string selectivity =
        e.selectivity_from.empty() ? "-"
                                   : fmt::format("{:.3g} {}", e.selectivity, e.selectivity_from);
    table.Add({number, name, Count(e.rows_in), Count(e.asks), selectivity, Count(e.fresh_tokens),
               Count(e.requested_tokens), has_light ? Duration(e.roofline_seconds) : "-",
               Duration(e.predicted_seconds)});
    for (const std::string& line : DetailsOf(plan, i)) table.AddDetail(line);
    if (i < actual.size()) table.AddDetail(ActualText(actual[i], has_light));
  }
  std::string out = HeadText(plan, head);
  for (const std::string& notice : plan.notices) out += Cut("note: " + notice, kColumns) + "\n";
  return out + table.Print();
}

std::string ExplainJson(const PhysicalPlan& plan, const ExplainHead& head,
                        std::span<const StepActual> actual) {
  const StepEstimate total = TotalOf(plan);
  const bool has_light = head.no_light.empty();
  nlohmann::json json;
  json["model"] = head.model;
  json["device"] = head.device;
  if (!head.answers.empty()) json["answers"] = head.answers;
  if (head.max_pairs) json["max_pairs"] = *head.max_pairs;
  json["total"] = {
      {"asks", total.asks},
      {"pairs", PlannedPairs(plan)},
      {"tokens", {{"fresh", total.fresh_tokens}, {"requested", total.requested_tokens}}},
      {"estimated_seconds", total.predicted_seconds}};
  if (has_light) json["total"]["roofline_seconds"] = total.roofline_seconds;
  json["notices"] = plan.notices;
  json["steps"] = nlohmann::json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    nlohmann::json step = StepJson(plan, i, has_light);
    if (i < actual.size() && Asks(plan.steps[i])) {
      const StepActual& a = actual[i];
      step["actual"] = {{"asked", a.asked},        {"distinct", a.distinct}, {"true", a.yes},
                        {"false", a.no},           {"null", a.null},         {"error", a.error},
                        {"fresh", a.fresh_tokens}, {"seconds", a.seconds}};
    }
    json["steps"].push_back(std::move(step));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace quail::plan
