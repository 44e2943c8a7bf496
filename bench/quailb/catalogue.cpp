#include "quailb/catalogue.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "quail/error.h"

namespace quail::quailb {
namespace {

constexpr std::array<std::string_view, 4> kScaleNames = {"0.01", "0.1", "0.5", "1.0"};

constexpr std::array<TableInfo, kTableCount> kTables = {{
    {"reviews", "review", {500, 5000, 25000, 50000}},
    {"aspects", "aspect", {12, 12, 12, 12}},
    {"reports", "report", {50, 500, 2500, 5000}},
    {"terms", "term", {113, 1127, 2934, 4144}},
    {"claims", "claim", {50, 500, 2500, 5000}},
    {"evidence", "page", {29, 287, 1037, 1478}},
    {"citation_contexts", "excerpt", {50, 500, 2496, 4972}},
    {"citation_passages", "passage", {43, 433, 1756, 2991}},
    {"agent_traces", "trace", {177, 1772, 8859, 17711}},
}};

constexpr Question Filter(std::string_view name, std::string_view text, std::uint32_t tokens,
                          Table table) {
  return {name, text, tokens, table, table};
}

constexpr std::array kQuestions = {
    Filter("F1", "Does the review praise something about the film? {0}", 51, Table::kReviews),
    Filter("F4", "Does the review talk about how the film ends? {0}", 45, Table::kReviews),
    Filter("F5", "Does the review name an actor of the film? {0}", 49, Table::kReviews),
    Question{"ASPECT", "Does the review {0} discuss {1}?", 36, Table::kReviews, Table::kAspects},
    Question{"POSITIVE", "Is the review {0} positive about {1}?", 39, Table::kReviews,
             Table::kAspects},
    Filter("SERIOUS", "Was the adverse event serious or life-threatening? {0}", 49,
           Table::kReports),
    Filter("NEURO", "Is this reaction neurological? {0}", 23, Table::kTerms),
    Filter("CARDIO", "Is this reaction cardiovascular? {0}", 25, Table::kTerms),
    Question{"REACTION", "Did the patient of the report {0} experience {1}?", 42, Table::kReports,
             Table::kTerms},
    Filter("F11", "Is the claim about a person? {0}", 53, Table::kClaims),
    Filter("F12", "Does the claim contain a date? {0}", 45, Table::kClaims),
    Filter("F13", "Is the page about a person? {0}", 62, Table::kEvidence),
    Question{"SUPPORTS", "Does the page {0} support the claim {1}?", 36, Table::kEvidence,
             Table::kClaims},
    Question{"REFUTES", "Does the page {0} refute the claim {1}?", 38, Table::kEvidence,
             Table::kClaims},
    Filter("LEP1", "Does the excerpt say that the cited case does not apply? {0}", 54,
           Table::kContexts),
    Filter("LEP2", "Is the excerpt about a matter of procedure? {0}", 47, Table::kContexts),
    Filter("LEPS1", "Does the passage state a general rule of law? {0}", 43, Table::kPassages),
    Question{"CITES", "Does the excerpt {0} cite the passage {1}?", 37, Table::kContexts,
             Table::kPassages},
    Filter("AGENT1", "Did the agent recover from an approach that failed? {0}", 75, Table::kTraces),
    Filter("AGENT2", "Did the agent make a plausible fix? {0}", 99, Table::kTraces),
};

QueryTable Reviews(std::vector<std::string_view> filters = {}) {
  return {Table::kReviews, std::move(filters)};
}
QueryTable Aspects() { return {Table::kAspects, {}}; }
QueryTable Reports(std::vector<std::string_view> filters = {}) {
  return {Table::kReports, std::move(filters)};
}
QueryTable Terms(std::vector<std::string_view> filters = {}) {
  return {Table::kTerms, std::move(filters)};
}
QueryTable Claims(std::vector<std::string_view> filters = {}) {
  return {Table::kClaims, std::move(filters)};
}
QueryTable Evidence(std::vector<std::string_view> filters = {}) {
  return {Table::kEvidence, std::move(filters)};
}
QueryTable Contexts(std::vector<std::string_view> filters = {}) {
  return {Table::kContexts, std::move(filters)};
}
QueryTable Passages(std::vector<std::string_view> filters = {}) {
  return {Table::kPassages, std::move(filters)};
}
QueryTable Traces(std::vector<std::string_view> filters) {
  return {Table::kTraces, std::move(filters)};
}

std::vector<Query> MakeReviewQueries() {
  const std::vector<QueryJoin> discusses = {{"ASPECT", 0, 1}};
  const std::vector<QueryJoin> chain = {{"ASPECT", 0, 1}, {"ASPECT", 2, 1}, {"POSITIVE", 2, 3}};
  return {
      {"IMDB-1", {Reviews({"F1"})}, {}},
      {"IMDB-2", {Reviews(), Aspects()}, discusses},
      {"IMDB-3", {Reviews({"F1"}), Aspects()}, discusses},
      {"IMDB-4", {Reviews({"F1", "F4"}), Aspects()}, discusses},
      {"IMDB-5", {Reviews({"F1", "F4", "F5"}), Aspects()}, discusses},
      {"IMDB-6", {Reviews({"F1", "F4"})}, {}},
      {"IMDB-7", {Reviews({"F1", "F4", "F5"})}, {}},
      {"IMDB-8", {Reviews(), Aspects(), Aspects()}, {{"ASPECT", 0, 1}, {"POSITIVE", 0, 2}}},
      {"IMDB-9", {Reviews(), Aspects(), Reviews(), Aspects()}, chain},
      {"IMDB-10", {Reviews({"F1"}), Aspects(), Reviews(), Aspects()}, chain},
  };
}

std::vector<Query> MakeReportQueries() {
  return {
      {"BIO-1", {Reports({"SERIOUS"})}, {}},
      {"BIO-2", {Reports(), Terms()}, {{"REACTION", 0, 1}}},
      {"BIO-3", {Reports({"SERIOUS"}), Terms()}, {{"REACTION", 0, 1}}},
      {"BIO-4",
       {Reports({"SERIOUS"}), Terms({"NEURO"}), Terms({"CARDIO"})},
       {{"REACTION", 0, 1}, {"REACTION", 0, 2}}},
  };
}

std::vector<Query> MakeClaimQueries() {
  const std::vector<QueryJoin> supports = {{"SUPPORTS", 1, 0}};
  const std::vector<QueryJoin> chain = {{"SUPPORTS", 1, 0}, {"REFUTES", 1, 2}, {"SUPPORTS", 3, 2}};
  return {
      {"FEV-1", {Claims({"F11"})}, {}},
      {"FEV-2", {Claims(), Evidence()}, supports},
      {"FEV-3", {Claims({"F11"}), Evidence()}, supports},
      {"FEV-4", {Claims({"F11", "F12"}), Evidence()}, supports},
      {"FEV-5", {Claims({"F11"}), Evidence({"F13"})}, supports},
      {"FEV-6", {Claims({"F11", "F12"}), Evidence({"F13"})}, supports},
      {"FEV-7", {Claims(), Evidence(), Evidence()}, {{"SUPPORTS", 1, 0}, {"REFUTES", 2, 0}}},
      {"FEV-8", {Claims(), Evidence(), Claims(), Evidence()}, chain},
      {"FEV-9", {Claims({"F11"}), Evidence({"F13"}), Claims({"F11"}), Evidence({"F13"})}, chain},
      {"FEV-10", {Claims({"F11"}), Evidence({"F13"})}, {{"SUPPORTS", 1, 0, true}}},
  };
}

std::vector<Query> MakeCitationQueries() {
  const std::vector<QueryJoin> cites = {{"CITES", 0, 1}};
  return {
      {"LEP-1", {Contexts({"LEP1"})}, {}},
      {"LEP-2", {Contexts(), Passages()}, cites},
      {"LEP-3", {Contexts({"LEP1"}), Passages()}, cites},
      {"LEP-4", {Contexts({"LEP1", "LEP2"}), Passages()}, cites},
      {"LEP-5", {Contexts({"LEP1", "LEP2"}), Passages({"LEPS1"})}, cites},
  };
}

std::vector<Query> MakeQueries() {
  std::vector<Query> all;
  const std::vector<Query> traces = {{"AGENT-1", {Traces({"AGENT1"})}, {}},
                                     {"AGENT-2", {Traces({"AGENT2"})}, {}}};
  for (const auto& family : {MakeReviewQueries(), MakeReportQueries(), MakeClaimQueries(),
                             MakeCitationQueries(), traces}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

/// An error that lists what there is.
[[noreturn]] void ThrowUnknown(std::string_view kind, std::string_view name,
                               const std::vector<std::string_view>& known) {
  std::string list;
  for (const std::string_view item : known) list.append(" ").append(item);
  throw Error(ErrorCode::kUsage,
              fmt::format("there is no {} '{}' in quailb; known:{}", kind, name, list));
}

template <typename Items>
auto& FindNamed(const Items& items, std::string_view name, std::string_view kind) {
  std::vector<std::string_view> known;
  for (const auto& item : items) {
    if (item.name == name) return item;
    known.push_back(item.name);
  }
  ThrowUnknown(kind, name, known);
}

}  // namespace

Scale ReadScale(std::string_view text) {
  if (text == "1") return Scale::k1;
  for (std::size_t i = 0; i < kScaleNames.size(); ++i) {
    if (kScaleNames[i] == text) return static_cast<Scale>(i);
  }
  ThrowUnknown("scale factor", text, {kScaleNames.begin(), kScaleNames.end()});
}

std::string_view ScaleName(Scale scale) { return kScaleNames[static_cast<std::size_t>(scale)]; }

const TableInfo& InfoOf(Table table) { return kTables[static_cast<std::size_t>(table)]; }

std::span<const Question> Questions() { return kQuestions; }

const Question& FindQuestion(std::string_view name) {
  return FindNamed(Questions(), name, "question");
}

std::span<const Query> Queries() {
  static const std::vector<Query> queries = MakeQueries();
  return queries;
}

const Query& FindQuery(std::string_view name) { return FindNamed(Queries(), name, "query"); }

Hints ReadHints(std::string_view json) {
  try {
    return nlohmann::json::parse(json).get<Hints>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("the hints are not a map of pass rates: {}", error.what()));
  }
}

}  // namespace quail::quailb
