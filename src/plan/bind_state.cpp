#include "plan/bind_state.h"

#include <algorithm>

#include "fmt/format.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

/// Steps, of which a call needs a few, are numbered in 16 bits while they run.
constexpr std::size_t kMostCalls = 4096;

/// Two calls with one key ask the same and return the same.
std::string KeyOf(const Call& call) {
  const CallOptions& options = call.options;
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  std::string key = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}", static_cast<int>(call.kind), call.prompt.size(), call.prompt,
      number(options.selectivity), number(options.threshold), number(options.max_error_ratio),
      options.anchor.value_or(""), static_cast<int>(options.on_long), options.return_error_details);
  if (call.on_demand) key += "|on demand";
  for (const Argument& argument : call.arguments) {
    key += fmt::format("|{}.{}.{}", argument.relation.value(), argument.id_column,
                       argument.id_column.empty() ? argument.sql : "");
  }
  return key;
}

}  // namespace

bool NamesAiCte(const sql::Json& node, const std::vector<VisibleCte>& ctes) {
  const std::string_view table = sql::TextMember(node, "table_name");
  if (!table.empty() && sql::TextMember(node, "schema_name").empty()) {
    for (const VisibleCte& cte : ctes) {
      if (cte.has_ai && sql::SameWord(cte.name, table)) return true;
    }
  }
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(),
                     [&ctes](const sql::Json& child) { return NamesAiCte(child, ctes); });
}

CallId BindState::AddCall(Call call) {
  const auto [found, added] =
      calls_by_key.try_emplace(KeyOf(call), static_cast<std::uint32_t>(plan.calls.size()));
  if (added) {
    if (plan.calls.size() == kMostCalls) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("a statement can ask at most {} different AI calls", kMostCalls),
                  call.position);
    }
    call.id = found->second;
    plan.calls.push_back(std::move(call));
  }
  return found->second;
}

void BindState::AddNotice(const std::string& notice) {
  auto& notices = plan.notices;
  if (std::find(notices.begin(), notices.end(), notice) == notices.end()) notices.push_back(notice);
}

std::string BindState::NewTable() { return fmt::format("{}m{}", prefix, tables++); }

PairTable BindState::NewPairTable(std::size_t width) {
  const std::uint32_t number = pair_tables++;
  PairTable table{fmt::format("{}p{}", prefix, number), {}};
  std::string columns;
  for (std::size_t i = 0; i < width; ++i) {
    table.columns.push_back(fmt::format("quail_p{}_{}", number, i));
    columns += fmt::format("{}{} INTEGER", i == 0 ? "" : ", ", table.columns.back());
  }
  plan.pair_tables_sql.push_back(fmt::format("CREATE TEMP TABLE {} ({})", table.name, columns));
  plan.cleanup_sql.push_back(fmt::format("DROP TABLE IF EXISTS {}", table.name));
  return table;
}

}  // namespace quail::plan
