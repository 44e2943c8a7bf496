// Host cost of a statement with an AI predicate end to end, an oracle in the model's place, beside
// DuckDB's own scalar function (registered through its C API) that decides the same, and DuckDB's
// scan with its own predicate.
//
// usage: oracle_benchmark filter ROWS | join ROWS OTHER_ROWS [scan | function | quail]
//   filter: ROWS distinct texts of some 45 bytes. join: all pairs of two tables of such texts. A
//   text or pair is TRUE where a '7' is in it. Without a last argument each is run five times in
//   turn and its best is printed; with it, once, for the process's peak memory (two sizes, slope).

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "process_usage.h"
#include "quail/session.h"
#include "relational/connection.h"

namespace {

using namespace quail;  // NOLINT(google-build-using-namespace)

constexpr int kRounds = 5;

struct Task {
  bool join = false;
  std::size_t rows = 0;
  std::size_t others = 0;

  double asks() const {
    return static_cast<double>(rows) * (join ? static_cast<double>(others) : 1.0);
  }
  std::vector<std::string> tables() const {
    const auto make = [](std::string_view name, std::size_t count) {
      return fmt::format(
          "CREATE TABLE {} AS SELECT i AS id, 'review number ' || i || ' of a product that "
          "somebody "
          "bought' AS t FROM range({}) r(i)",
          name, count);
    };
    return {make("a", rows), make("b", others)};
  }
  std::string query(const char* way) const {
    if (std::strcmp(way, "scan") == 0) {
      return join ? "SELECT count(*) FROM a, b WHERE contains(a.t, '7') OR contains(b.t, '7')"
                  : "SELECT count(*) FROM a WHERE contains(a.t, '7')";
    }
    if (std::strcmp(way, "function") == 0) {
      return join ? "SELECT count(*) FROM a, b WHERE judge(a.t, b.t)"
                  : "SELECT count(*) FROM a WHERE judge(a.t, a.t)";
    }
    return join ? "SELECT count(*) FROM a JOIN b ON AI_FILTER(PROMPT('{0} {1}', a.t, b.t))"
                : "SELECT count(*) FROM a WHERE AI_FILTER(PROMPT('Is it good? {0}', a.t))";
  }
};

struct Cost {
  double wall = 1e30;
  double processor = 1e30;
  std::string count;
};

template <typename Run>
void Time(Cost& best, const Run& run) {
  const double before = bench::ProcessorSeconds();
  const base::Stopwatch watch;
  best.count = run();
  best.wall = std::min(best.wall, watch.seconds());
  best.processor = std::min(best.processor, bench::ProcessorSeconds() - before);
}

relational::ScalarFunction Judge() {
  using relational::ScalarType;
  return {"judge",
          {ScalarType::kText, ScalarType::kText},
          std::nullopt,
          ScalarType::kBoolean,
          [](std::span<const relational::ScalarColumn> columns, std::size_t rows,
             relational::ScalarOutput& out) {
            for (std::size_t row = 0; row < rows; ++row) {
              out.SetBoolean(row, columns[0].texts[row].find('7') != std::string_view::npos ||
                                      columns[1].texts[row].find('7') != std::string_view::npos);
            }
          }};
}

void RunInDuckDb(const Task& task, const char* way, Cost& best) {
  const auto connection = relational::OpenDuckDb({});
  connection->Register(Judge());
  for (const std::string& sql : task.tables()) connection->Query(sql);
  Time(best, [&] { return *relational::QueryText(*connection, task.query(way))[0][0]; });
}

std::string RunStatement(Session& session, const std::string& sql) {
  const auto result = session.Run(sql, {sql, 0}, {});
  const auto rows = result->Next();
  while (!result->Next().empty()) {
  }
  return rows.empty() ? "" : rows[0][0].value_or("");
}

void RunInQuail(const Task& task, const std::string& oracle, Cost& best) {
  Config config;
  config.oracle = oracle;
  const auto session = Session::Open(config);
  for (const std::string& sql : task.tables()) RunStatement(*session, sql);
  Time(best, [&] { return RunStatement(*session, task.query("quail")); });
}

void RunOnce(const Task& task, const char* way, const std::string& oracle, Cost& best) {
  std::strcmp(way, "quail") == 0 ? RunInQuail(task, oracle, best) : RunInDuckDb(task, way, best);
}

void Compare(const Task& task, const std::string& oracle) {
  constexpr const char* kWays[] = {"scan", "function", "quail"};
  Cost costs[3];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 3; ++i) RunOnce(task, kWays[i], oracle, costs[i]);
  }
  for (int i = 0; i < 3; ++i) {
    std::printf("%-8s  count %s  wall %.3f s  processor %.3f s\n", kWays[i], costs[i].count.c_str(),
                costs[i].wall, costs[i].processor);
  }
  const double beyond = costs[2].processor - costs[0].processor;
  std::printf(
      "beyond the scan: %.3f processor seconds, %.2f million a processor second; wall %.2f "
      "million/s\n",
      beyond, task.asks() / beyond * 1e-6, task.asks() / (costs[2].wall - costs[0].wall) * 1e-6);
  std::printf("quail / function: %.2f in processor seconds\n",
              costs[2].processor / costs[1].processor);
}

int Measure(int argc, char** argv) {
  Task task;
  task.join = std::strcmp(argv[1], "join") == 0;
  task.rows = std::strtoull(argv[2], nullptr, 10);
  const int last = task.join ? 4 : 3;
  task.others = task.join && argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const auto file = std::filesystem::temp_directory_path() / "quail_oracle_benchmark.jsonl";
  std::ofstream(file) << "{\"contains\": [\"7\"], \"verdict\": true}\n{\"verdict\": false}\n";
  if (argc <= last) {
    Compare(task, file.string());
    return 0;
  }
  Cost cost;
  RunOnce(task, argv[last], file.string(), cost);
  std::printf("%s: %.0f asks, count %s, processor %.3f s, peak %.1f MB\n", argv[last], task.asks(),
              cost.count.c_str(), cost.processor, bench::PeakMegabytes());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s filter ROWS | join ROWS OTHER_ROWS [scan | function | quail]\n",
                 argv[0]);
    return 2;
  }
  try {
    return Measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
