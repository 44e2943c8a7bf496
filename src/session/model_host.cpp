#include "session/model_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "infer/cpu/cpu_backend.h"
#include "infer/weights/gguf_weights.h"
#include "quail/error.h"
#include "session/known_models.h"
#include "text/gguf_vocabulary.h"

namespace quail::session {
namespace {

constexpr std::int64_t kMostKvBytes = std::int64_t{4} << 30;

std::unique_ptr<infer::Backend> OpenBackend(const Config& config) {
  if (config.backend == "cuda") {
    throw Error(ErrorCode::kDevice, "this program was built without the CUDA backend");
  }
  if (config.backend != "auto" && config.backend != "cpu") {
    throw Error(ErrorCode::kUsage,
                fmt::format("unknown backend '{}': auto, cpu or cuda", config.backend));
  }
  infer::cpu::CpuOptions options;
  options.threads = config.threads;
  return infer::cpu::CreateCpuBackend(options);
}

std::int64_t KvBytesPerToken(const spec::ModelSpec& spec, const infer::BackendInfo& device) {
  const std::int64_t bytes = device.compute_type == spec::WeightType::kF32 ? 4 : 2;
  return std::int64_t{2} * spec.layers * spec.kv_width() * bytes;
}

}  // namespace

ModelHost::ModelHost(const Config& config, base::ThreadPool& pool) : config_(config), pool_(pool) {
  const std::filesystem::path path = LocateModel(config.model);
  path_ = path.string();
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: folders with safetensors are not supported yet, name a .gguf file",
                            path_));
  }
  if (!config.adapter.empty() && config.adapter != "none") {
    throw Error(ErrorCode::kUnsupported, "adapters are not supported yet: --adapter none");
  }
  file_ = spec::GgufFile::Open(path);
  spec_ = spec::ReadModelSpec(*file_);
  LoadTokenizer();
  answers_ = text::ChooseAnswerWords(*tokenizer_);
  backend_ = OpenBackend(config_);
}

ModelHost::~ModelHost() = default;

const infer::BackendInfo& ModelHost::device() const { return backend_->info(); }

void ModelHost::LoadTokenizer() {
  const auto tokens = file_->Strings("tokenizer.ggml.tokens");
  const auto types = file_->Ints("tokenizer.ggml.token_type");
  const auto merges = file_->Strings("tokenizer.ggml.merges");
  text::GgufVocabularyFields fields;
  fields.model = file_->String("tokenizer.ggml.model");
  fields.pre = file_->FindString("tokenizer.ggml.pre").value_or("");
  fields.tokens = tokens;
  fields.token_types = types;
  fields.merges = merges;
  if (const auto unknown = file_->FindUint("tokenizer.ggml.unknown_token_id")) {
    fields.unknown_token_id = static_cast<std::uint32_t>(*unknown);
  }
  tokenizer_ = text::BpeTokenizer::Create(text::ReadGgufVocabulary(fields));
}

/// An eighth of the memory, at most 4 GiB, unless the user says; at least a whole context beside two chunks.
std::int64_t ModelHost::KvTokens() const {
  const infer::BackendInfo& device = backend_->info();
  const std::int64_t a_token = KvBytesPerToken(spec_, device);
  const std::int64_t bytes = config_.kv_memory > 0
                                 ? static_cast<std::int64_t>(config_.kv_memory)
                                 : std::min(device.memory_bytes / 8, kMostKvBytes);
  const std::int64_t tokens = bytes / a_token;
  const std::int64_t least = 2 * std::int64_t{device.preferred_chunk_tokens};
  if (tokens < least) {
    throw Error(ErrorCode::kUsage,
                fmt::format("a KV memory of {} bytes holds {} tokens; at least {} ({} bytes) are "
                            "needed",
                            bytes, tokens, least, least * a_token));
  }
  return tokens;
}

void ModelHost::LoadWeights() {
  weights_ = infer::OpenGgufWeights(file_, spec_);
  infer::ModelRequest request;
  request.spec = spec_;
  for (const auto* side : {&answers_.yes, &answers_.no}) {
    for (const base::TokenId token : *side) request.answer_tokens.push_back(token.value());
  }
  model_ = infer::LoadModel(request, *weights_, *backend_);
  const std::int64_t kv_tokens = KvTokens();
  backend_->ReserveKv({spec_.layers, spec_.kv_heads, spec_.head_dim}, kv_tokens);
  infer::ForestConfig forest;
  forest.kv_tokens = kv_tokens;
  forest.chunk_tokens = backend_->info().preferred_chunk_tokens;
  forest.context_tokens = spec_.context;
  forest.true_rows = static_cast<std::int32_t>(answers_.yes.size());
  forest.answer_rows = static_cast<std::int32_t>(request.answer_tokens.size());
  forest_ = infer::PromptForest::Create(*model_, *backend_, forest);
}

exec::Evaluator& ModelHost::evaluator(text::TextStore& texts) {
  if (!forest_) LoadWeights();
  if (!evaluator_) {
    evaluator_ = std::make_unique<exec::ModelEvaluator>(
        exec::ModelParts{*forest_, *tokenizer_, texts, pool_, answers_.words});
  }
  return *evaluator_;
}

RunReport::Model ModelHost::ModelReport() const {
  RunReport::Model model;
  model.name = spec_.name;
  model.path = path_;
  if (weights_) model.hash = weights_->hash().ToHex();
  model.parameters = spec_.block_parameters() + std::int64_t{spec_.vocabulary} * spec_.hidden *
                                                    (spec_.tied_head ? 1 : 2);
  model.weight_type = spec::NameOf(spec_.weight_type);
  return model;
}

RunReport::Device ModelHost::DeviceReport() const {
  const infer::BackendInfo& info = backend_->info();
  return {info.device, info.backend, info.threads, info.memory_bytes};
}

}  // namespace quail::session
