// Requests given as token ids, on a checkpoint, through the prompt forest on the GPU: what another
// engine was given, for its seconds and its answers beside ours.
//
//   cuda_requests_benchmark FOLDER CHECKPOINT OUT exact|ue8m0|vllm NAME ..
//
// FOLDER has of each NAME: NAME.tokens.u32 (parts one after another), NAME.offsets.u64 (where each
// begins, and the end), NAME.requests.i32 (a row of part numbers each, -1 = none, as wide as
// NAME.json's "width" says). A request's answer is the likeliest of eight ids. In OUT: of each NAME
// NAME.answers.u32 and NAME.gaps.f32 (the best logit less the second) in the order of the
// requests, and requests.jsonl. A NAME that comes again must get the same bits.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/mapped_file.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/fp8_block_weights.h"
#include "infer/weights/safetensors_weights.h"
#include "power_json.h"
#include "quail/error.h"

namespace {

using namespace quail::infer;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kKeptBytes = std::int64_t{4} << 30;
constexpr std::array<std::int32_t, 8> kAnswers = {830, 895, 1866, 2514, 3007, 3582, 4049, 6867};
constexpr std::size_t kTrueRows = 4;
using quail::infer::cuda::PowerOfTwoScales;
/// vllm: as vLLM 0.26 has them on Hopper. But for `exact` the weights are requantised as well.
const std::map<std::string, PowerOfTwoScales> kScales = {{"exact", PowerOfTwoScales::kNone},
                                                         {"ue8m0", PowerOfTwoScales::kAll},
                                                         {"vllm", PowerOfTwoScales::kAttention}};
using Logits = std::array<float, kAnswers.size()>;

/// A backend that also keeps every answer row's logits.
class RecordingBackend final : public Backend {
 public:
  explicit RecordingBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  std::deque<Logits>& recorded() { return recorded_; }

  const BackendInfo& info() const override { return backend_->info(); }
  std::optional<DeviceUsage> usage() override { return backend_->usage(); }
  void Configure(const BackendModel& model) override { backend_->Configure(model); }
  WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return backend_->LoadLinear(parts);
  }
  WeightId LoadEmbedding(const WeightTensor& table) override {
    return backend_->LoadEmbedding(table);
  }
  WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) override {
    return backend_->LoadRows(matrix, rows);
  }
  WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return backend_->LoadVector(parts);
  }
  void ReserveKv(const KvShape& shape, std::int64_t tokens) override {
    backend_->ReserveKv(shape, tokens);
  }
  std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) override {
    return backend_->Begin(batch);
  }
  void Embed(Chunk& chunk, WeightId table, WeightId first_norm) override {
    backend_->Embed(chunk, table, first_norm);
  }
  void Qkv(Chunk& chunk, const QkvWeights& weights, std::int32_t layer,
           bool answers_only) override {
    backend_->Qkv(chunk, weights, layer, answers_only);
  }
  void Attention(Chunk& chunk, std::int32_t layer) override { backend_->Attention(chunk, layer); }
  void AttentionOutput(Chunk& chunk, WeightId projection, WeightId next_norm) override {
    backend_->AttentionOutput(chunk, projection, next_norm);
  }
  void GateUp(Chunk& chunk, WeightId gate_up) override { backend_->GateUp(chunk, gate_up); }
  void Down(Chunk& chunk, WeightId down, WeightId next_norm) override {
    backend_->Down(chunk, down, next_norm);
  }
  void AnswerLogits(Chunk& chunk, WeightId head) override { backend_->AnswerLogits(chunk, head); }
  void LogProbs(Chunk& chunk, WeightId head, std::int32_t vocabulary) override {
    backend_->LogProbs(chunk, head, vocabulary);
  }
  void Finish(Chunk& chunk) override { backend_->Finish(chunk); }
  ChunkResult Wait(Chunk& chunk) override {
    const ChunkResult result = backend_->Wait(chunk);
    const auto logits = result.answer_logits;
    for (std::size_t i = 0; i < logits.size(); i += kAnswers.size()) {
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(i), kAnswers.size(),
                  recorded_.emplace_back().begin());
    }
    return result;
  }
  void CopyKvOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) override {
    backend_->CopyKvOut(first_slot, slots, host);
  }
  void CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                std::span<const std::byte> host) override {
    backend_->CopyKvIn(first_slot, slots, host);
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::deque<Logits> recorded_;
};

template <typename T>
std::vector<T> ReadArray(const std::filesystem::path& path) {
  const auto file = quail::base::MappedFile::Open(path);
  const auto* first = reinterpret_cast<const T*>(file.bytes().data());
  return {first, first + file.bytes().size() / sizeof(T)};
}

template <typename T>
void WriteArray(const std::filesystem::path& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}

/// Requests as paths of parts. What only one request goes through, at its end, is its leaf.
class Requests {
 public:
  Requests(const std::filesystem::path& folder, const std::string& name) {
    for (const auto token : ReadArray<std::uint32_t>(folder / (name + ".tokens.u32"))) {
      tokens_.emplace_back(static_cast<std::int32_t>(token));
    }
    offsets_ = ReadArray<std::uint64_t>(folder / (name + ".offsets.u64"));
    const auto table = ReadArray<std::int32_t>(folder / (name + ".requests.i32"));
    std::ifstream description(folder / (name + ".json"));
    const auto width = nlohmann::json::parse(description)["width"].get<std::size_t>();
    for (std::size_t i = 0; i < table.size(); i += width) {
      auto& path = paths_.emplace_back();
      for (std::size_t k = 0; k < width && table[i + k] >= 0; ++k) path.push_back(table[i + k]);
    }
    FindLeaves();
  }

  std::size_t size() const { return paths_.size(); }
  std::span<const TokenId> part(std::int32_t p) const {
    const auto at = static_cast<std::size_t>(p);
    return std::span(tokens_).subspan(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  /// The parts above request `i`'s leaf.
  std::span<const std::int32_t> parents(std::size_t i) const {
    return std::span(paths_[i]).first(parents_[i]);
  }
  const std::vector<TokenId>& leaf(std::size_t i) const { return leaves_[i]; }

 private:
  void FindLeaves() {
    std::map<std::vector<std::int32_t>, std::size_t> through;
    for (const auto& path : paths_) {
      for (std::size_t k = 1; k < path.size(); ++k)
        ++through[{path.begin(), path.begin() + static_cast<std::ptrdiff_t>(k)}];
    }
    for (const auto& path : paths_) {
      std::size_t parents = path.size() - 1;
      while (parents > 0 &&
             through[{path.begin(), path.begin() + static_cast<std::ptrdiff_t>(parents)}] == 1) {
        --parents;
      }
      parents_.push_back(parents);
      auto& leaf = leaves_.emplace_back();
      for (std::size_t k = parents; k < path.size(); ++k) {
        const auto tokens = part(path[k]);
        leaf.insert(leaf.end(), tokens.begin(), tokens.end());
      }
    }
  }

  std::vector<TokenId> tokens_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::vector<std::int32_t>> paths_;
  std::vector<std::size_t> parents_;
  std::vector<std::vector<TokenId>> leaves_;
};

/// The leaves of neighbouring requests below one node.
class LeafSource final : public ChildSource {
 public:
  LeafSource(const Requests& requests, std::size_t first, std::size_t end)
      : requests_(requests), next_(first), end_(end) {}
  std::uint64_t upper_bound() const override { return end_ - next_; }
  void Next(std::size_t n, std::vector<Leaf>& leaves) override {
    for (; n > 0 && next_ < end_; --n, ++next_) {
      leaves.push_back({next_, requests_.leaf(next_), true});
    }
  }

 private:
  const Requests& requests_;
  std::size_t next_;
  std::size_t end_;
};

void AddRequests(PromptForest& forest, const Requests& requests) {
  for (std::size_t first = 0; first < requests.size();) {
    const auto parents = requests.parents(first);
    std::size_t end = first + 1;
    while (end < requests.size() && std::ranges::equal(requests.parents(end), parents)) ++end;
    NodeId node = forest.root();
    for (const std::int32_t p : parents)
      node = forest.Child(node, forest.Segment(requests.part(p)));
    forest.Add(node, std::make_unique<LeafSource>(requests, first, end), {});
    first = end;
  }
}

struct Answers {
  std::vector<std::uint32_t> ids;
  std::vector<float> gaps;
  friend bool operator==(const Answers&, const Answers&) = default;
};

/// Answers come in the order of the rows that were recorded, which the margin proves.
void Take(const Answer& answer, std::deque<Logits>& recorded, Answers& to) {
  const Logits logits = recorded.front();
  recorded.pop_front();
  const auto split = logits.begin() + kTrueRows;
  QUAIL_CHECK_EQ(answer.value,
                 *std::max_element(logits.begin(), split) - *std::max_element(split, logits.end()));
  Logits sorted = logits;
  std::ranges::sort(sorted, std::greater<>());
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  to.ids[answer.index] = static_cast<std::uint32_t>(kAnswers[static_cast<std::size_t>(best)]);
  to.gaps[answer.index] = sorted[0] - sorted[1];
}

struct Run {
  Answers answers;
  double seconds = 0;
  ForestCounters counters;
};

Run RunOnce(PromptForest& forest, RecordingBackend& backend, const Requests& requests) {
  forest.Clear();
  forest.ResetCounters();
  Run run;
  run.answers.ids.resize(requests.size());
  run.answers.gaps.resize(requests.size());
  const quail::base::Stopwatch watch;
  AddRequests(forest, requests);
  std::vector<Answer> answers;
  while (forest.Next(answers, nullptr)) {
    for (const Answer& answer : answers) Take(answer, backend.recorded(), run.answers);
    answers.clear();
  }
  run.seconds = watch.seconds();
  run.counters = forest.counters();
  return run;
}

/// Where requests come from and answers go to, and the answers that have been given.
struct Place {
  std::filesystem::path folder;
  std::filesystem::path out;
  std::map<std::string, Answers> given;
};

std::string Measure(PromptForest& forest, RecordingBackend& backend, const std::string& name,
                    Place& place) {
  const Requests requests(place.folder, name);
  const DeviceUsage before = backend.usage().value_or(DeviceUsage{});
  const Run run = RunOnce(forest, backend, requests);
  const DeviceUsage after = backend.usage().value_or(DeviceUsage{});
  const auto [known, is_new] = place.given.try_emplace(name, run.answers);
  if (!is_new && known->second != run.answers) {
    throw quail::Error(quail::ErrorCode::kDevice, name + ": two runs gave different answers");
  }
  WriteArray(place.out / (name + ".answers.u32"), run.answers.ids);
  WriteArray(place.out / (name + ".gaps.f32"), run.answers.gaps);
  const ForestCounters::Step& step = run.counters.steps[0];
  return fmt::format(
      R"({{"name": "{}", "requests": {}, "requested_tokens": {}, "fresh_tokens": {}, )"
      R"("minimum_tokens": {}, "seconds": {:.3f}, )"
      R"("model_seconds": {:.3f}, "fresh_tokens_per_s": {:.0f}, "power": {}}})",
      name, requests.size(), step.requested_tokens, step.fresh_tokens, run.counters.minimum_tokens,
      run.seconds, run.counters.model_seconds, static_cast<double>(step.fresh_tokens) / run.seconds,
      PowerJson(before, after, step.fresh_tokens));
}

void MeasureAll(const std::vector<std::string>& arguments) {
  Place place{arguments[0], arguments[2], {}};
  const std::filesystem::path checkpoint = arguments[1];
  const auto config_file = quail::base::MappedFile::Open(checkpoint / "config.json");
  const auto spec = quail::spec::ReadModelSpec(
      {reinterpret_cast<const char*>(config_file.bytes().data()), config_file.bytes().size()},
      "config.json");
  quail::infer::cuda::CudaOptions options;
  options.power_of_two_scales = kScales.at(arguments[3]);
  RecordingBackend backend(quail::infer::cuda::CreateCudaBackend(options));
  const quail::base::Stopwatch watch;
  std::shared_ptr<const WeightSource> weights = OpenSafetensorsWeights(checkpoint);
  if (options.power_of_two_scales != PowerOfTwoScales::kNone) {
    weights = QuantizeToFp8Blocks(weights, BlockScale::kPowerOfTwo);
  }
  const auto model =
      LoadModel({spec, {kAnswers.begin(), kAnswers.end()}, false}, *weights, backend);
  fmt::print("{}: loaded in {:.2f} s\n", backend.info().device, watch.seconds());
  ForestConfig config;
  config.kv_tokens = (backend.info().free_memory_bytes - kKeptBytes) /
                     (std::int64_t{4} * spec.layers * spec.kv_width());
  config.chunk_tokens = backend.info().preferred_chunk_tokens;
  config.context_tokens = spec.context;
  config.true_rows = kTrueRows;
  config.answer_rows = kAnswers.size();
  backend.ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, config.kv_tokens);
  const auto forest = PromptForest::Create(*model, backend, config);
  std::filesystem::create_directories(place.out);
  std::ofstream file(place.out / "requests.jsonl");
  for (std::size_t i = 4; i < arguments.size(); ++i) {
    const std::string line = Measure(*forest, backend, arguments[i], place);
    fmt::print("{}\n", line);
    std::fflush(stdout);
    file << line << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 5 || !kScales.contains(arguments[3])) {
    fmt::print(stderr,
               "usage: cuda_requests_benchmark FOLDER CHECKPOINT OUT exact|ue8m0|vllm NAME ..\n");
    return 2;
  }
  try {
    MeasureAll(arguments);
  } catch (const quail::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  }
  return 0;
}
