#include "options.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <sstream>

#include "line_reader.h"
#include "output_file.h"
#include "quail/machine.h"

namespace quail::cli {
namespace {

const std::map<std::string, Format> kFormats = {
    {"table", Format::kTable},     {"csv", Format::kCsv},         {"tsv", Format::kTsv},
    {"json", Format::kJson},       {"jsonl", Format::kJsonLines}, {"markdown", Format::kMarkdown},
    {"parquet", Format::kParquet}, {"arrow", Format::kArrow}};
/// What the ending of -o's file means where --format is absent.
const std::map<std::string, Format> kEndings = {
    {".csv", Format::kCsv},         {".tsv", Format::kTsv},          {".json", Format::kJson},
    {".jsonl", Format::kJsonLines}, {".ndjson", Format::kJsonLines}, {".md", Format::kMarkdown},
    {".parquet", Format::kParquet}, {".arrow", Format::kArrow},      {".feather", Format::kArrow},
    {".ipc", Format::kArrow}};
const std::map<std::string, ProgressMode> kProgress = {{"auto", ProgressMode::kAuto},
                                                       {"always", ProgressMode::kAlways},
                                                       {"never", ProgressMode::kNever}};
const std::map<std::string, Fp8Scales> kScales = {{"exact", Fp8Scales::kExact},
                                                  {"ue8m0", Fp8Scales::kUe8m0}};

const std::map<std::string, ComputeType> kComputeTypes = {{"auto", ComputeType::kAuto},
                                                          {"bf16", ComputeType::kBf16},
                                                          {"f32", ComputeType::kF32},
                                                          {"int8", ComputeType::kInt8}};

std::map<std::string, Dialect> DialectsByName() {
  std::map<std::string, Dialect> dialects;
  for (const Dialect dialect : Dialects()) dialects.emplace(NameOf(dialect), dialect);
  return dialects;
}

/// Options as text, before they are understood.
struct Raw {
  std::string command;
  std::string file;
  std::vector<std::string> tables;
  std::vector<std::string> settings;
  std::string dialect{NameOf(Config().dialect)};
  std::string format;
  std::string explain;
  std::string plan;
  bool analyze = false;
  std::string progress = "auto";
  std::string kv_memory;
  std::string fp8_scales = "exact";
  std::string compute_type = "auto";
};

constexpr std::uint64_t kMostThreads = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

/// Of an option: a whole number up to `most`.
CLI::Validator WholeNumber(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  const auto check = [most](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data(), end, number);
    if (fault == std::errc() && rest == end && number <= most) return "";
    return "needs a whole number from 0 to " + std::to_string(most) + ", not '" + text + "'";
  };
  return CLI::Validator(check, "");
}

/// Of an option: a number that is not negative.
CLI::Validator Amount() {
  const auto check = [](const std::string& text) -> std::string {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data(), end, number);
    if (fault == std::errc() && rest == end && std::isfinite(number) && number >= 0) return "";
    return "needs a number that is not negative, not '" + text + "'";
  };
  return CLI::Validator(check, "");
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <typename Value>
Value Choose(const std::map<std::string, Value>& choices, const std::string& text,
             const std::string& option) {
  const auto found = choices.find(text);
  if (found != choices.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : choices) known += (known.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::kUsage, option + " cannot be '" + text + "' (known: " + known + ")");
}

void CheckKnown(const std::string& option, const std::string& text,
                std::initializer_list<std::string_view> known) {
  if (std::ranges::find(known, text) != known.end()) return;
  std::string list;
  for (const std::string_view name : known) list.append(list.empty() ? "" : ", ").append(name);
  throw Error(ErrorCode::kUsage, option + " cannot be '" + text + "' (known: " + list + ")");
}

std::pair<std::string, std::string> SplitAtEquals(const std::string& text,
                                                  const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage, option + " needs NAME=VALUE, not '" + text + "'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// An SQL literal or a bare word.
std::string SettingValue(const std::string& text) {
  if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') return text;
  std::string value;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    value += text[i];
    if (text[i] == '\'' && i + 2 < text.size() && text[i + 1] == '\'') ++i;
  }
  return value;
}

/// "512M", "2GiB", "1000000": bytes, powers of 1024.
std::uint64_t ReadSize(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  static const std::map<std::string, int> kShifts = {
      {"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KiB", 10}, {"M", 20},  {"MB", 20},
      {"MiB", 20}, {"G", 30}, {"GB", 30}, {"GiB", 30}, {"T", 40},   {"TB", 40}, {"TiB", 40}};
  const auto unit = kShifts.find(std::string(rest, end));
  if (fault != std::errc() || number <= 0 || unit == kShifts.end()) {
    throw Error(ErrorCode::kUsage,
                "--kv-memory needs a size such as 512M or 2G, not '" + text + "'");
  }
  return static_cast<std::uint64_t>(number * static_cast<double>(std::uint64_t{1} << unit->second));
}

std::string ReadScript(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorCode::kUsage, "cannot read '" + path + "': it is a folder");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    // An empty file sets failbit on the output.
    if (file.is_open() && file.peek() == std::ifstream::traits_type::eof()) return "";
    throw Error(ErrorCode::kUsage, "cannot read '" + path + "'");
  }
  return WithoutByteOrderMark(text.str());
}

void AddOptions(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("DATABASE", options.config.database, "a DuckDB file; default: in memory");
  auto* command = app.add_option("-c", raw.command, "run SQL and exit")->type_name("SQL");
  app.add_option("-f", raw.file, "run a file and exit")->type_name("FILE")->excludes(command);
  app.add_option("-t", raw.tables,
                 "make a file a table (CSV, TSV, JSON, JSONL, Parquet, Arrow IPC; globs)")
      ->type_name("NAME=PATH")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("-m,--model", options.config.model,
                 "a known name (quail models), a .gguf file, or a folder with config.json and "
                 "safetensors")
      ->type_name("MODEL");
  app.add_option("-d,--dialect", raw.dialect,
                 fmt::format("{}; default {}", DialectNames(), raw.dialect));
  app.add_option("--backend", options.config.backend,
                 "auto, cpu or cuda; for bench run also counting, which computes nothing");
  app.add_option("--threads", options.config.threads, "0: all cores")
      ->check(WholeNumber(kMostThreads));
  app.add_option(
      "--format", raw.format,
      "table, csv, tsv, json (an array a statement), jsonl, markdown, parquet, arrow (these two "
      "need -o; one statement with rows); default: as the file of -o ends, table on a terminal, "
      "else csv. EXPLAIN prints text in every one of them (--explain=json: JSON)");
  app.add_option("-o,--output", options.output,
                 "write the rows to a file, which is replaced when all are there; needs -c or -f")
      ->type_name("FILE");
  app.add_option("--report", options.report, "write the run report as JSON; - is standard error")
      ->type_name("FILE");
  app.add_option("--oracle", options.config.oracle, "a truth table instead of a model")
      ->type_name("FILE");
  app.add_option("--checkpoint", options.config.checkpoint,
                 "keep finished verdicts in a file: the same command continues after a crash")
      ->type_name("FILE");
  auto* explain =
      app.add_flag("--explain{text}", raw.explain, "show the plan, run nothing (=json: as JSON)");
  app.add_option("--plan", raw.plan)->group("");  // refused: not in the list
  app.add_flag("--analyze", raw.analyze, "run, and show the plan with what happened")
      ->excludes(explain);
  app.add_option("--progress", raw.progress, "auto, always or never");
  app.add_option("--seed", options.config.seed,
                 "of samples; kept in the report, no step draws one yet")
      ->check(WholeNumber());
  app.add_option("--set", raw.settings, "a setting")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--kv-memory", raw.kv_memory, "room for keys and values, such as 2G")
      ->type_name("SIZE");
  app.add_option("--kv-tokens", options.config.kv_tokens, "the same in tokens")
      ->check(WholeNumber(kMostTokens));
  app.add_option("--chunk-tokens", options.config.chunk_tokens, "most tokens of a forward pass")
      ->check(WholeNumber(kMostTokens));
  app.add_option("--radix", options.config.radix,
                 "when texts that begin alike share it: pays (default), always, never");
  app.add_flag("--random-weights", options.config.random_weights,
               "made-up weights of the shape that -m names, for benchmarks");
  app.add_option("--adapter", options.config.adapter, "none, or a file: adapter of the model");
  app.add_option("--layout", options.config.layout,
                 "of prompts: plain (default), or chat: the same words in the turns of the model's "
                 "own chat template");
  app.add_option("--duckdb-library", options.config.duckdb_library, "path of libduckdb");
  app.add_flag("--deterministic", options.config.deterministic, "bit-equal for any packing");
  app.add_option("--fp8-scales", raw.fp8_scales,
                 "of fp8 models on a GPU: exact (default), or ue8m0 to compare with engines that "
                 "round them up to powers of two");
  app.add_option("--compute-type", raw.compute_type,
                 "of a CPU: auto (default: bf16 where that is fast, else f32), f32, bf16, or int8 "
                 "for quantised files, which is faster and less exact");
  app.add_flag("-q", options.quiet, "no notices");
  app.add_flag("-v", options.verbose, "tell on standard error what is run, and what it took");
  app.add_option("--log", options.log, "the same, with times and notices, appended to a file")
      ->type_name("FILE");
  app.set_version_flag("--version", "quail " + Version());
}

Format FormatOfFile(const std::string& path, std::string& notice) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), Lower);
  const auto found = kEndings.find(ending);
  if (found != kEndings.end()) return found->second;
  if (!IsWrittenInPlace(path)) {
    notice = "'" + path + "' is written as csv: its ending names no format, and --format is absent";
  }
  return Format::kCsv;
}

Format ChooseFormat(Options& options, const Raw& raw) {
  if (!raw.format.empty()) return Choose(kFormats, raw.format, "--format");
  if (!options.output.empty()) return FormatOfFile(options.output, options.notice);
  return ::isatty(STDOUT_FILENO) ? Format::kTable : Format::kCsv;
}

void ReadTables(const std::vector<std::string>& tables, Options& options) {
  std::set<std::string> names;
  for (const std::string& table : tables) {
    options.tables.push_back(SplitAtEquals(table, "-t"));
    std::string name = options.tables.back().first;
    std::ranges::transform(name, name.begin(), Lower);
    if (names.insert(name).second) continue;
    throw Error(ErrorCode::kUsage, "-t names the table '" + name + "' twice");
  }
}

/// What the output can be, given what is run.
void CheckOutput(const Options& options) {
  const bool explains = options.explain != RunOptions::Explain::kNo;
  if (explains && !options.script) {
    throw Error(ErrorCode::kUsage, "--explain and --analyze need -c or -f");
  }
  if (!options.output.empty() && !options.script) {
    throw Error(ErrorCode::kUsage, "-o needs -c or -f");
  }
  if (!IsBinary(options.format)) return;
  const std::string name = options.format == Format::kParquet ? "parquet" : "arrow";
  if (options.output.empty()) throw Error(ErrorCode::kUsage, "format " + name + " needs -o FILE");
  if (explains) {
    throw Error(ErrorCode::kUsage, "a plan is text: it cannot be written as " + name);
  }
}

void Understand(const Raw& raw, bool has_command, bool has_file, Options& options) {
  options.config.dialect = Choose(DialectsByName(), raw.dialect, "--dialect");
  options.config.fp8_scales = Choose(kScales, raw.fp8_scales, "--fp8-scales");
  options.config.compute_type = Choose(kComputeTypes, raw.compute_type, "--compute-type");
  options.progress = Choose(kProgress, raw.progress, "--progress");
  options.format = ChooseFormat(options, raw);
  CheckKnown("--backend", options.config.backend, {"auto", "cpu", "cuda", "counting"});
  CheckKnown("--radix", options.config.radix, {"pays", "always", "never"});
  CheckKnown("--layout", options.config.layout, {"plain", "chat"});
  if (!raw.kv_memory.empty()) options.config.kv_memory = ReadSize(raw.kv_memory);
  ReadTables(raw.tables, options);
  for (const std::string& setting : raw.settings) {
    auto [name, value] = SplitAtEquals(setting, "--set");
    options.config.settings.emplace_back(name, SettingValue(value));
  }
  if (!raw.plan.empty()) {
    throw Error(ErrorCode::kUsage, "--plan: Substrait plans are not supported yet");
  }
  if (!raw.explain.empty()) {
    if (raw.explain != "text" && raw.explain != "json") {
      throw Error(ErrorCode::kUsage, "--explain can be text or json, not '" + raw.explain + "'" +
                                         (raw.explain == "substrait" ? " yet" : ""));
    }
    options.explain =
        raw.explain == "json" ? RunOptions::Explain::kJson : RunOptions::Explain::kText;
  }
  if (raw.analyze) options.explain = RunOptions::Explain::kAnalyze;
  if (has_command) options.script = raw.command;
  if (has_file) options.script = ReadScript(raw.file);
  CheckOutput(options);
}

/// quail bench generate: tables, prompts and answers of a suite.
CLI::App* AddGenerateOptions(CLI::App& bench, quailb::GenerateOptions& options) {
  auto* generate = bench.add_subcommand("generate", "write a suite's tables and planted answers");
  generate->add_option("--suite", options.suite, "quailb");
  generate->add_option("--sf", options.scale, "scale factor: 0.01, 0.1 (default), 0.5 or 1.0");
  generate->add_option("--seed", options.seed, "of the generator (default: 1)")
      ->check(WholeNumber());
  generate->add_option("--mode", options.mode, "ids (default): token ids instead of texts");
  generate->add_option("-o,--output", options.output, "a directory that is not there yet")
      ->type_name("DIR")
      ->required();
  return generate;
}

/// quail bench run: queries of a suite, measured.
CLI::App* AddRunOptions(CLI::App& bench, quailb::SuiteRunOptions& options) {
  auto* run = bench.add_subcommand("run", "run a suite's queries and write reports and a table");
  run->fallthrough();
  run->add_option("--suite", options.suite, "quailb");
  run->add_option("--data", options.data, "what bench generate wrote")
      ->type_name("DIR")
      ->required();
  run->add_option("--sf", options.scale, "the scale factor that the data must have");
  run->add_option("--only", options.only, "queries, such as IMDB-1,BIO-2")->delimiter(',');
  run->add_option("--slice", options.slice, "one of N parts of the queries")->type_name("I/N");
  run->add_option("--answers", options.answers,
                  "planted: flow4b (default), truth; none: what the model answers");
  run->add_option("--layout", options.layout,
                  "own (default), published: preamble with every row, label with every pair");
  run->add_flag("!--no-hints", options.hints, "the planner is not told the pass rates");
  run->add_flag("--baseline", options.config.baseline,
                "the control: request by request, hash prefix cache, steps of 25,305 tokens");
  run->add_flag("--plan-only", options.plan_only, "what the plans expect; runs nothing");
  run->add_flag("--resume", options.resume, "complete the results that --out has");
  run->add_option("--price", options.hourly_price, "of the device, in dollars an hour")
      ->check(Amount());
  run->add_option("--out", options.output, "folder of the results")->type_name("DIR")->required();
  return run;
}

}  // namespace

std::string DialectNames() {
  return fmt::format("{}", fmt::join(Dialects() | std::views::transform(NameOf), " or "));
}

std::optional<Exit> ReadOptions(int count, const char* const* arguments, Options& options) {
  CLI::App app("SQL with AI predicates that a small language model decides on this computer.",
               "quail");
  app.require_subcommand(0, 1);
  Raw raw;
  AddOptions(app, options, raw);
  auto* models = app.add_subcommand("models", "list the models that have a name");
  auto* download = app.add_subcommand("download", "fetch a named model");
  download->add_option("NAME", options.download)->required();
  auto* calibrate = app.add_subcommand("calibrate", "measure this computer for the cost model");
  auto* doctor = app.add_subcommand("doctor", "what this computer can do, and what is missing");
  for (auto* subcommand : {models, download, calibrate, doctor}) subcommand->fallthrough();
  auto* bench = app.add_subcommand("bench", "benchmark suites");
  bench->require_subcommand(1);
  bench->fallthrough();
  auto* generate = AddGenerateOptions(*bench, options.generate);
  auto* run = AddRunOptions(*bench, options.suite);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream output;
    std::ostringstream message;
    const int code = app.exit(error, output, message);
    return Exit{code == 0 ? 0 : 2, output.str(), message.str()};
  }
  if (*models) options.command = Command::kModels;
  if (*download) options.command = Command::kDownload;
  if (*calibrate) options.command = Command::kCalibrate;
  if (*doctor) options.command = Command::kDoctor;
  if (*generate) options.command = Command::kBenchGenerate;
  if (*run) options.command = Command::kBenchRun;
  Understand(raw, app.count("-c") > 0, app.count("-f") > 0, options);
  return std::nullopt;
}

}  // namespace quail::cli
