#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "query_generator.h"
#include "subject.h"
#include "world.h"

/// What must not change a query's rows: the order of the input, the number of threads, how many
/// asks are judged at once, hints; and the rows of a table's slices together are those of the
/// table.
namespace quail::test {
namespace {

constexpr std::size_t kQueriesAWorld = 25;

/// The world with the rows of every INSERT in the opposite order.
World Reversed(const World& world) {
  World other = world;
  for (std::string& sql : other.setup) {
    const std::size_t values = sql.find(" VALUES ");
    if (values == std::string::npos) continue;
    sql = fmt::format("INSERT INTO {} SELECT * FROM (VALUES {}) v(id, k, n, x, y) ORDER BY id DESC",
                      sql.substr(12, values - 12), sql.substr(values + 8));
  }
  return other;
}

/// The query with other hints in place of the generator's, such as ", {'selectivity': 0.3}".
std::string WithHints(std::string sql, const std::string& hint) {
  constexpr std::string_view kBegin = ", {'selectivity': 0.";
  constexpr std::size_t kRest = 2;  // a digit and the brace
  for (std::size_t at = sql.find(kBegin); at != std::string::npos;
       at = sql.find(kBegin, at + hint.size())) {
    sql.replace(at, kBegin.size() + kRest, hint);
  }
  return sql;
}

RandomQuery WithHints(RandomQuery query, const std::string& hint) {
  for (Twin& statement : query.before) statement.ai = WithHints(statement.ai, hint);
  query.sql.ai = WithHints(query.sql.ai, hint);
  return query;
}

/// The engine at work in chunks of so many tokens, with planted answers.
Config Chunks(std::int32_t tokens) {
  Config config = Threads(1);
  config.model = QUAIL_TEST_MODEL;
  config.adapter = "none";
  config.backend = "counting";
  config.kv_tokens = 1024;
  config.chunk_tokens = tokens;
  return config;
}

bool HasModel() { return std::filesystem::exists(QUAIL_TEST_MODEL); }

/// Opposite orders of input, numbers of threads, chunks.
struct Subjects {
  Subjects(const World& world, const std::filesystem::path& folder)
      : plain(world, folder, Threads(1)),
        reversed(Reversed(world), folder, Threads(1)),
        threads(world, folder, Threads(4)) {
    if (!HasModel()) return;
    one_token.emplace(world, folder, Chunks(1));
    few_tokens.emplace(world, folder, Chunks(100));
  }
  Subject plain;
  Subject reversed;
  Subject threads;
  std::optional<Subject> one_token;
  std::optional<Subject> few_tokens;
};

class Run {
 public:
  explicit Run(std::uint64_t seed)
      : seed_(seed),
        folder_(std::filesystem::temp_directory_path() /
                fmt::format("quail_metamorphic_{}_{}", seed, ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Run() { std::filesystem::remove_all(folder_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void Queries(std::size_t count) {
    for (std::size_t first = 0; first < count; first += kQueriesAWorld) {
      Dice dice(seed_ * 1'000'003 + first);
      World world = World::Random(dice);
      world.row_ids = false;  // others in another order
      Subjects subjects(world, folder_);
      for (std::size_t i = first; i < std::min(count, first + kQueriesAWorld); ++i) {
        Relations(subjects, MakeQuery(world, dice));
        Slices(subjects.plain, MakeRowQuery(world, dice));
      }
    }
  }
  std::size_t compared() const { return compared_; }
  std::size_t different() const { return different_; }

 private:
  void Relations(Subjects& subjects, const RandomQuery& query) {
    const Answer wanted = subjects.plain.Rows(query);
    if (wanted.error) return;  // the differential test's
    const auto same = [&](std::string_view what, Subject& subject, const RandomQuery& like) {
      Compare(what, like.sql.ai, wanted.lines, subject.Rows(like), query.ordered);
    };
    same("input in the opposite order", subjects.reversed, query);
    same("four threads", subjects.threads, query);
    if (subjects.one_token) same("chunks of a token", *subjects.one_token, query);
    if (subjects.few_tokens) same("chunks of 100 tokens", *subjects.few_tokens, query);
    same("no hints", subjects.plain, WithHints(query, ""));
    same("other hints", subjects.plain, WithHints(query, ", {'selectivity': 0.99}"));
  }

  void Slices(Subject& subject, const RowQuery& query) {
    const std::string whole = query.before + query.table + query.after;
    const Answer wanted = subject.Rows(whole);
    if (wanted.error) return;
    Answer together;
    for (int slice = 0; slice < 3 && !together.error; ++slice) {
      const Answer part = subject.Rows(fmt::format("{}(SELECT * FROM {} WHERE id % 3 = {}){}",
                                                   query.before, query.table, slice, query.after));
      together.lines.insert(together.lines.end(), part.lines.begin(), part.lines.end());
      together.error = part.error;
    }
    Compare("slices", whole, wanted.lines, together, false);
  }

  void Compare(std::string_view what, const std::string& sql, std::vector<std::string> wanted,
               Answer ours, bool ordered) {
    ++compared_;
    if (!ordered) {
      std::ranges::sort(wanted);
      std::ranges::sort(ours.lines);
    }
    if (!ours.error && ours.lines == wanted) return;
    ++different_;
    fmt::print("{}:\n  {}\n  rows:\n    {}\n  not:\n    {}\n", what, sql, ours.Text(),
               fmt::join(wanted, "\n    "));
  }

  std::uint64_t seed_;
  std::filesystem::path folder_;
  std::size_t compared_ = 0;
  std::size_t different_ = 0;
};

}  // namespace
}  // namespace quail::test

/// sql_metamorphic [QUERIES [SEED]]
int main(int argc, char** argv) {
  std::size_t numbers[2] = {150, 1};
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    const auto read = i > 2
                          ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                          : std::from_chars(text.data(), text.data() + text.size(), numbers[i - 1]);
    if (read.ec != std::errc()) {
      fmt::print(stderr, "usage: sql_metamorphic [QUERIES [SEED]]\n");
      return 2;
    }
  }
  quail::test::Run run(numbers[1]);
  run.Queries(numbers[0]);
  if (!quail::test::HasModel()) fmt::print("chunks not compared: no {}\n", QUAIL_TEST_MODEL);
  fmt::print("{} comparisons, {} differ\n", run.compared(), run.different());
  return run.different() == 0 && run.compared() > 0 ? 0 : 1;
}
