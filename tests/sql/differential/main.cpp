#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "exec/oracle.h"
#include "query_generator.h"
#include "relational/connection.h"
#include "subject.h"
#include "world.h"

/// Random queries, answered by Quail and by DuckDB with a scalar function that reads the same
/// oracle: their rows must be equal.
namespace quail::test {
namespace {

constexpr std::size_t kQueriesAWorld = 40;

/// A long run that is interrupted tells what it has compared.
volatile std::sig_atomic_t stopped = 0;

class Reference {
 public:
  explicit Reference(const World& world) : oracle_(exec::Oracle::Parse(world.oracle, "world")) {
    relational::DuckDbOptions options;
    options.library_path = QUAIL_TEST_DUCKDB;
    options.threads = 1;
    connection_ = relational::OpenDuckDb(options);
    connection_->Register(Function("ref_filter", relational::ScalarType::kBoolean, WriteVerdict));
    connection_->Register(Function("ref_prob", relational::ScalarType::kDouble, WriteProbability));
    connection_->Register(Function("ref_failed", relational::ScalarType::kBoolean, WriteFailure));
    for (const std::string& sql : world.setup) relational::QueryText(*connection_, sql);
  }

  Answer Rows(const RandomQuery& query) {
    Answer answer;
    try {
      for (const Twin& statement : query.before) {
        relational::QueryText(*connection_, statement.plain);
      }
      for (const auto& row : relational::QueryText(*connection_, query.sql.plain)) {
        answer.AddRow(row);
      }
    } catch (const Error& error) {
      answer.error = error;
    }
    return answer;
  }

  /// The rows without the optimizer whose known fault changes them (README.md lists it).
  Answer RowsWithoutFault(const RandomQuery& query) {
    relational::QueryText(*connection_, "SET disabled_optimizers = 'join_filter_pushdown'");
    Answer answer = Rows(query);
    relational::QueryText(*connection_, "SET disabled_optimizers = ''");
    return answer;
  }

 private:
  /// What is shown of an answer about a row's texts.
  using Writer = void (*)(const exec::PlantedAnswer&, std::size_t row, relational::ScalarOutput&);

  static bool IsDecided(const exec::PlantedAnswer& answer) {
    return answer.verdict == exec::Verdict::kTrue || answer.verdict == exec::Verdict::kFalse;
  }
  static void WriteVerdict(const exec::PlantedAnswer& answer, std::size_t row,
                           relational::ScalarOutput& out) {
    if (!IsDecided(answer)) return out.SetNull(row);
    out.SetBoolean(row, answer.verdict == exec::Verdict::kTrue);
  }
  static void WriteProbability(const exec::PlantedAnswer& answer, std::size_t row,
                               relational::ScalarOutput& out) {
    if (!IsDecided(answer)) return out.SetNull(row);
    out.SetDouble(row, exec::Probability(answer.margin));
  }
  static void WriteFailure(const exec::PlantedAnswer& answer, std::size_t row,
                           relational::ScalarOutput& out) {
    out.SetBoolean(row, answer.verdict == exec::Verdict::kError);
  }

  relational::ScalarFunction Function(const char* name, relational::ScalarType type,
                                      Writer writer) {
    return {name,
            {relational::ScalarType::kText},
            relational::ScalarType::kText,
            type,
            [this, writer](auto arguments, std::size_t rows, relational::ScalarOutput& out) {
              for (std::size_t row = 0; row < rows; ++row) Write(arguments, row, writer, out);
            }};
  }

  void Write(std::span<const relational::ScalarColumn> arguments, std::size_t row, Writer writer,
             relational::ScalarOutput& out) const {
    std::vector<std::string_view> texts;
    for (const auto& argument : arguments) {
      if (argument.is_null(row)) return out.SetNull(row);
      texts.push_back(argument.texts[row]);
    }
    writer(oracle_.Decide(texts[0], std::span(texts).subspan(1)), row, out);
  }

  exec::Oracle oracle_;
  std::unique_ptr<relational::Connection> connection_;
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
  std::size_t faults = 0;  ///< equal once DuckDB's known fault is out of the reference
  std::map<std::string, std::size_t> refused;            ///< by Quail, by message
  std::map<std::string, std::size_t> without_reference;  ///< DuckDB refuses them
};

std::string FirstLine(const std::string& message) { return message.substr(0, message.find('\n')); }

void ShowWorld(const World& world) {
  for (const std::string& sql : world.setup) fmt::print("{};\n", sql);
  fmt::print("oracle:\n{}", world.oracle);
}

void Show(std::size_t number, const RandomQuery& query, const Answer& ours, const Answer& wanted) {
  fmt::print("query {}:\n", number);
  for (const Twin& statement : query.before) {
    fmt::print("  {};\n  {};\n", statement.ai, statement.plain);
  }
  fmt::print("  {}\n  {}\n  Quail:\n    {}\n  reference:\n    {}\n", query.sql.ai, query.sql.plain,
             ours.Text(), wanted.Text());
  std::fflush(stdout);
}

void ShowRefused(std::string_view by, const std::map<std::string, std::size_t>& refused) {
  for (const auto& [message, count] : refused)
    fmt::print("{} refused {}: {}\n", by, count, message);
}

std::size_t Total(const std::map<std::string, std::size_t>& counts) {
  std::size_t total = 0;
  for (const auto& [message, count] : counts) total += count;
  return total;
}

/// Worlds are independent of each other, so threads share them out: what is said of one query stays
/// together.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        scratch_(std::filesystem::temp_directory_path() /
                 fmt::format("quail_differential_{}_{}", options.seed, ::getpid())) {}
  ~Run() { std::filesystem::remove_all(scratch_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Tally All() {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([this] { TakeWorlds(); });
    }
    threads.clear();
    return std::move(tally_);
  }

 private:
  void TakeWorlds() {
    for (;;) {
      const std::size_t first = next_.fetch_add(kQueriesAWorld);
      if (first >= options_.queries || stopped != 0) return;
      const bool skipped =
          options_.only && *options_.only / kQueriesAWorld * kQueriesAWorld != first;
      if (!skipped) RunWorld(first);
    }
  }

  void RunWorld(std::size_t first) {
    Dice dice(options_.seed * 1'000'003 + first);
    const World world = World::Random(dice);
    const std::filesystem::path folder = scratch_ / std::to_string(first);
    std::filesystem::create_directories(folder);
    if (options_.only) ShowWorld(world);
    Reference reference(world);
    Subject subject(world, folder, Threads(1));
    const std::size_t last = std::min(options_.queries, first + kQueriesAWorld);
    for (std::size_t i = first; i < last; ++i) {
      const RandomQuery query = MakeQuery(world, dice);
      if (options_.only && i != *options_.only) continue;
      Compare(i, query, subject, reference);
    }
  }

  void Compare(std::size_t number, const RandomQuery& query, Subject& subject,
               Reference& reference) {
    Answer wanted = reference.Rows(query);
    Answer ours = wanted.error ? Answer{} : subject.Rows(query);
    const std::lock_guard lock(mutex_);
    if (options_.only) Show(number, query, ours, wanted);
    if (wanted.error) {
      ++tally_.without_reference[FirstLine(wanted.error->what())];
      return;
    }
    if (ours.error && ours.error->code() == ErrorCode::kUnsupported) {
      ++tally_.refused[ours.error->what()];
      return;
    }
    ++tally_.compared;
    if (!wanted.lines.empty()) ++tally_.with_rows;
    if (Equal(query, ours, wanted)) return;
    if (!options_.only) Show(number, query, ours, wanted);
    const bool fault = Equal(query, ours, reference.RowsWithoutFault(query));
    ++(fault ? tally_.faults : tally_.different);
  }

  static bool Equal(const RandomQuery& query, Answer ours, Answer wanted) {
    if (ours.error || wanted.error) return false;
    if (!query.ordered) {
      std::ranges::sort(wanted.lines);
      std::ranges::sort(ours.lines);
    }
    return ours.lines == wanted.lines;
  }

  const Options& options_;
  std::filesystem::path scratch_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  Tally tally_;
};

bool ReadNumber(std::string_view text, std::uint64_t& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

}  // namespace
}  // namespace quail::test

/// sql_differential [QUERIES [SEED [ONLY]]]: seeds share no worlds, so that a long run may be many
/// processes with a seed each.
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
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int) { quail::test::stopped = 1; });
  const quail::test::Tally tally = quail::test::Run(options).All();
  quail::test::ShowRefused("Quail", tally.refused);
  quail::test::ShowRefused("DuckDB", tally.without_reference);
  fmt::print(
      "seed {}: {} queries compared ({} with rows), {} refused by Quail, {} met the known fault of "
      "DuckDB, {} differ\n",
      options.seed, tally.compared, tally.with_rows, quail::test::Total(tally.refused),
      tally.faults, tally.different);
  return tally.different == 0 && tally.compared > 0 ? 0 : 1;
}
