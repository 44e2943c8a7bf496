#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/oracle.h"
#include "quail/session.h"
#include "query_generator.h"
#include "relational/connection.h"
#include "world.h"

/// Random queries, answered by Quail and by DuckDB with a scalar function that reads the same
/// oracle: their rows must be equal.
namespace quail::test {
namespace {

constexpr std::size_t kQueriesAWorld = 40;

/// Rows as lines, or why there are none.
struct Answer {
  std::vector<std::string> lines;
  std::optional<Error> error;
};

class Reference {
 public:
  explicit Reference(const World& world) : oracle_(exec::Oracle::Parse(world.oracle, "world")) {
    relational::DuckDbOptions options;
    options.library_path = QUAIL_TEST_DUCKDB;
    connection_ = relational::OpenDuckDb(options);
    connection_->Register(Function("ref_filter", relational::ScalarType::kBoolean));
    connection_->Register(Function("ref_prob", relational::ScalarType::kDouble));
    for (const std::string& sql : world.setup) relational::QueryText(*connection_, sql);
  }

  Answer Rows(const std::string& sql) {
    Answer answer;
    try {
      for (const auto& row : relational::QueryText(*connection_, sql)) {
        std::string line;
        for (const auto& cell : row) line += cell.value_or("NULL") + "|";
        answer.lines.push_back(line);
      }
    } catch (const Error& error) {
      answer.error = error;
    }
    return answer;
  }

 private:
  relational::ScalarFunction Function(const char* name, relational::ScalarType type) {
    return {name,
            {relational::ScalarType::kText},
            relational::ScalarType::kText,
            type,
            [this, type](auto arguments, std::size_t rows, relational::ScalarOutput& out) {
              for (std::size_t row = 0; row < rows; ++row) Write(arguments, row, type, out);
            }};
  }

  void Write(std::span<const relational::ScalarColumn> arguments, std::size_t row,
             relational::ScalarType type, relational::ScalarOutput& out) const {
    std::vector<std::string_view> texts;
    for (const auto& argument : arguments) {
      if (argument.is_null(row)) return out.SetNull(row);
      texts.push_back(argument.texts[row]);
    }
    const auto answer = oracle_.Decide(texts[0], std::span(texts).subspan(1));
    const bool yes = answer.verdict == exec::Verdict::kTrue;
    if (!yes && answer.verdict != exec::Verdict::kFalse) return out.SetNull(row);
    type == relational::ScalarType::kBoolean ? out.SetBoolean(row, yes)
                                             : out.SetDouble(row, exec::Probability(answer.margin));
  }

  exec::Oracle oracle_;
  std::unique_ptr<relational::Connection> connection_;
};

class Subject {
 public:
  Subject(const World& world, const std::filesystem::path& scratch) {
    Config config;
    config.duckdb_library = QUAIL_TEST_DUCKDB;
    config.oracle = (scratch / "oracle.jsonl").string();
    config.threads = 1;
    std::ofstream(config.oracle) << world.oracle;
    session_ = Session::Open(config);
    for (const std::string& sql : world.setup) session_->Run(sql, {sql, 0}, {});
  }

  Answer Rows(const std::string& sql) {
    Answer answer;
    try {
      const auto result = session_->Run(sql, {sql, 0}, {});
      for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
        for (const auto& row : rows) {
          std::string line;
          for (const auto& cell : row) line += cell.value_or("NULL") + "|";
          answer.lines.push_back(line);
        }
      }
    } catch (const Error& error) {
      answer.error = error;
    }
    return answer;
  }

 private:
  std::unique_ptr<Session> session_;
};

struct Options {
  std::uint64_t seed = 1;
  std::size_t queries = 300;
  std::optional<std::size_t> only;  ///< this one, shown
};

struct Tally {
  std::size_t compared = 0;
  std::size_t with_rows = 0;
  std::size_t different = 0;
  std::map<std::string, std::size_t> refused;  ///< by message
};

void ShowWorld(const World& world) {
  for (const std::string& sql : world.setup) fmt::print("{};\n", sql);
  fmt::print("oracle:\n{}", world.oracle);
}

void Show(std::size_t number, const RandomQuery& query, const Answer& ours, const Answer& wanted) {
  const auto text = [](const Answer& answer) {
    if (answer.error) return fmt::format("error: {}", answer.error->what());
    return fmt::format("{}", fmt::join(answer.lines, "\n    "));
  };
  fmt::print("query {}:\n  {}\n  {}\n  Quail:\n    {}\n  reference:\n    {}\n", number,
             query.sql.ai, query.sql.plain, text(ours), text(wanted));
}

void Compare(std::size_t number, const RandomQuery& query, Subject& subject, Reference& reference,
             bool show, Tally& tally) {
  Answer wanted = reference.Rows(query.sql.plain);
  if (wanted.error) {
    if (show) Show(number, query, {}, wanted);
    return;
  }
  Answer ours = subject.Rows(query.sql.ai);
  if (ours.error && ours.error->code() == ErrorCode::kUnsupported) {
    if (show) Show(number, query, ours, wanted);
    ++tally.refused[ours.error->what()];
    return;
  }
  ++tally.compared;
  if (!wanted.lines.empty()) ++tally.with_rows;
  if (!query.ordered) {
    std::ranges::sort(wanted.lines);
    std::ranges::sort(ours.lines);
  }
  const bool equal = !ours.error && ours.lines == wanted.lines;
  if (!equal) ++tally.different;
  if (!equal || show) Show(number, query, ours, wanted);
}

Tally RunAll(const Options& options) {
  const auto scratch =
      std::filesystem::temp_directory_path() / fmt::format("quail_differential_{}", options.seed);
  std::filesystem::create_directories(scratch);
  Tally tally;
  for (std::size_t first = 0; first < options.queries; first += kQueriesAWorld) {
    if (options.only && (*options.only < first || *options.only >= first + kQueriesAWorld))
      continue;
    Dice dice(options.seed * 1'000'003 + first);
    const World world = World::Random(dice);
    if (options.only) ShowWorld(world);
    Reference reference(world);
    Subject subject(world, scratch);
    const std::size_t last = std::min(options.queries, first + kQueriesAWorld);
    for (std::size_t i = first; i < last; ++i) {
      const RandomQuery query = MakeQuery(world, dice);
      if (options.only && i != *options.only) continue;
      Compare(i, query, subject, reference, options.only.has_value(), tally);
    }
  }
  std::filesystem::remove_all(scratch);
  return tally;
}

bool ReadNumber(std::string_view text, std::uint64_t& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

}  // namespace
}  // namespace quail::test

/// sql_differential [QUERIES [SEED [ONLY]]]
int main(int argc, char** argv) {
  quail::test::Options options;
  std::uint64_t numbers[3] = {options.queries, options.seed, 0};
  for (int i = 1; i < argc; ++i) {
    if (i > 3 || !quail::test::ReadNumber(argv[i], numbers[i - 1])) {
      fmt::print(stderr, "usage: sql_differential [QUERIES [SEED [ONLY]]]\n");
      return 2;
    }
  }
  options.queries = numbers[0];
  options.seed = numbers[1];
  if (argc == 4) options.only = numbers[2];
  const quail::test::Tally tally = quail::test::RunAll(options);
  for (const auto& [message, count] : tally.refused) fmt::print("refused {}: {}\n", count, message);
  fmt::print("{} queries compared ({} with rows), {} differ\n", tally.compared, tally.with_rows,
             tally.different);
  return tally.different == 0 && tally.compared > 0 ? 0 : 1;
}
