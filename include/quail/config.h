#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "quail/dialect.h"

namespace quail {

/// How the scales of fp8 blocks are rounded: as computed, or up to powers of two, activations and
/// weights (which are requantised), as engines with ue8m0 scales do, whose answers ours can then
/// stand beside.
enum class Fp8Scales : std::uint8_t { kExact, kUe8m0 };

/// What the cpu backend multiplies in: as suits the processor (bf16 where it is fast, else f32), or
/// one of these. Int8 takes weights that the file has in integers (GGUF Q8_0, Q4_0 ..) as bytes
/// with a scale a row and rounds activations likewise: faster, at a noise of its own.
enum class ComputeType : std::uint8_t { kAuto, kF32, kBf16, kInt8 };

/// What a running statement tells, at most twice a second.
struct Progress {
  std::string step;  ///< "filter reviews"
  std::uint64_t asks_done = 0;
  std::uint64_t asks_total = 0;  ///< upper bound
  double rows_per_second = 0;
  double fresh_tokens_per_second = 0;
  double observed_selectivity = -1;  ///< -1: nothing observed
  double seconds_left = -1;          ///< -1: unknown
};

/// The token ids of a prompt's constant pieces, in place of text that is tokenised:
///
///   filter:  [head] document [tail]            | [question]
///   join:    [head] anchor [tail] [question]   | [partner_head] partner [partner_tail]
///
/// What stands left of the bar is computed once per document or anchor. For templates with one slot
/// and with two; of two either can be the anchor.
struct TokenPrompt {
  std::string prompt;  ///< the template in canonical form, as the SQL has it
  std::vector<std::int32_t> head;
  std::vector<std::int32_t> tail;
  std::vector<std::int32_t> question;  ///< at least one id in a filter
  std::vector<std::int32_t> partner_head;
  std::vector<std::int32_t> partner_tail;
};

struct Config {
  std::string database;  ///< a DuckDB file; empty: in memory
  std::string model;     ///< known name, directory or .gguf; empty: the embedded default
  std::string adapter;   ///< "none", a path; empty: the embedded default's own
  /// Of prompts: plain; chat, with the turns of the model's own chat template around the same
  /// words.
  std::string layout = "plain";
  std::string backend = "auto";  ///< auto, cpu, cuda; counting: computes nothing, see below
  /// Truth table instead of a model (file); with backend counting its answers are planted, while
  /// forest, scheduler and packer do their work.
  std::string oracle;
  std::string checkpoint;      ///< file that keeps finished verdicts; empty: none
  std::string duckdb_library;  ///< explicit path of libduckdb
  Dialect dialect = Dialect::kSnowflake;
  std::uint32_t threads = 0;    ///< 0: all usable cores
  std::uint64_t kv_memory = 0;  ///< bytes; 0: chosen from the device's memory
  std::uint64_t seed = 0;
  bool deterministic = false;
  /// kUe8m0 needs a block-fp8 model on the cuda backend. Verdicts near 0.5 may differ by it.
  Fp8Scales fp8_scales = Fp8Scales::kExact;

  /// Other than kAuto: of the cpu backend. kInt8 is refused where the file's weights are no
  /// integers. Verdicts near 0.5 may differ by it.
  ComputeType compute_type = ComputeType::kAuto;

  // For benchmarks and tests: work without a model's files. Every one of these is said in the
  // report.
  /// Made-up weights of `model`'s shape, a known one (qwen3-4b-fp8, qwen3-0.6b, smollm2-135m; no
  /// tokenizer: only TOKENS columns under `token_prompts` can be asked) or a model on this
  /// computer.
  bool random_weights = false;
  std::uint64_t kv_tokens = 0;  ///< room for keys and values in positions; 0: see kv_memory
  /// The control: asks served one by one with a hash prefix cache, instead of a prompt forest.
  bool baseline = false;
  std::int32_t chunk_tokens = 0;  ///< most fresh tokens a forward pass; 0: the backend's own
  /// When texts that begin alike share what they have in common: pays (where the saved compute
  /// exceeds the cost of another span), always, never.
  std::string radix = "pays";
  std::vector<TokenPrompt> token_prompts;
  /// Selectivity by template, where a call has no hint of its own: it steers the plan, never the
  /// answer.
  std::vector<std::pair<std::string, double>> hints;
  /// The counting backend follows what every place of the KV arena holds, and a statement fails
  /// where a run would have read another path's.
  bool check_kv = false;
  /// Counts the distinct tokens of all asks a second time, by sorting their paths.
  bool check_minimum = false;

  std::vector<std::pair<std::string, std::string>> settings;  ///< as SET NAME = VALUE
  std::function<void(const Progress&)> on_progress;
  std::function<void(const std::string&)> on_notice;
};

}  // namespace quail
