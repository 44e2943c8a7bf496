#include "session/model_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "infer/baseline/request_queue.h"
#include "infer/counting/counting_backend.h"
#include "infer/weights/fp8_block_weights.h"
#include "infer/weights/gguf_weights.h"
#include "infer/weights/random_weights.h"
#include "infer/weights/safetensors_weights.h"
#include "quail/error.h"
#include "session/device_choice.h"
#include "session/known_models.h"
#include "session/self_test.h"
#include "session/statement_doubts.h"
#include "session/user_position.h"
#include "text/chat_template.h"
#include "text/gguf_vocabulary.h"
#include "text/prompt.h"
#include "text/tokenizer_json.h"

namespace quail::session {
namespace {

std::int64_t KvBytesPerToken(const spec::ModelSpec& spec, const infer::BackendInfo& device) {
  return std::int64_t{2} * spec.layers * spec.kv_width() * device.kv_value_bytes;
}

void Append(std::string& words, std::span<const text::PromptPiece> pieces) {
  for (const text::PromptPiece& piece : pieces) {
    words += fmt::format("{}:{}{};", piece.literal.size(), piece.literal, piece.argument);
    for (const base::TokenId token : piece.tokens) words += fmt::format("{},", token.value());
  }
}

/// Of the words, and turns if there are any, around questions and texts.
base::Hash128 HashOfLayouts(const text::AnswerWords& answers, const text::ChatPieces* chat) {
  std::string words;
  for (const char* prompt : {"a {0} b", "{0} {1}"}) {
    auto filter = text::LayOutFilter(text::PromptTemplate::Parse(prompt), answers);
    if (chat != nullptr) text::PutTurnsAround(*chat, filter);
    Append(words, filter.document);
    Append(words, filter.question);
  }
  auto join = text::LayOutJoin(text::PromptTemplate::Parse("{0} {1}"), {true, false}, answers);
  if (chat != nullptr) text::PutTurnsAround(*chat, join);
  for (const auto& pieces : {join.anchor, join.kept, join.partner}) Append(words, pieces);
  return base::HashBytes(words);
}

base::Hash128 HashOf(std::span<const TokenPrompt> prompts) {
  base::Hash128 hash;
  for (const TokenPrompt& prompt : prompts) {
    hash = base::Combine(hash, base::HashBytes(prompt.prompt));
    for (const auto* ids : {&prompt.head, &prompt.tail, &prompt.question, &prompt.partner_head,
                            &prompt.partner_tail}) {
      hash = base::Combine(hash, base::HashBytes(std::as_bytes(std::span(*ids))));
    }
  }
  return hash;
}

}  // namespace

ModelHost::ModelHost(const Config& config, base::ThreadPool& pool)
    : config_(config), pool_(pool), token_prompts_(config.token_prompts) {
  if (config_.layout != "plain" && config_.layout != "chat") {
    throw Error(ErrorCode::kUsage,
                fmt::format("layout '{}' is none of plain, chat", config_.layout));
  }
  const spec::KnownShape* shape = config.random_weights ? spec::FindShape(config.model) : nullptr;
  shape != nullptr ? OpenShape(*shape) : OpenFile();
  backend_ = OpenBackend(config_);
  if (config_.deterministic && !backend_->info().deterministic) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("--deterministic: results of the {} backend may depend on the packing; "
                            "the cpu backend's do not",
                            backend_->info().backend));
  }
  CheckFp8Scales();
  CheckComputeType();
}

/// Only the cpu backend has a choice, and only integers of the file may be rounded to others.
void ModelHost::CheckComputeType() const {
  if (config_.compute_type == ComputeType::kAuto) return;
  if (backend_->info().backend != "cpu") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("--compute-type is the cpu backend's, this is {}: add --backend cpu",
                            backend_->info().backend));
  }
  if (config_.compute_type != ComputeType::kInt8) return;
  constexpr std::string_view kNeeded =
      "--compute-type int8 needs a GGUF file whose layers are quantised (Q8_0, Q4_0 ..)";
  if (!file_ || config_.random_weights) {
    throw Error(ErrorCode::kModel, fmt::format("{}, not {}", kNeeded,
                                               config_.random_weights ? "made-up weights" : path_));
  }
  if (const auto wide = spec::FindUnquantisedLayer(*file_)) {
    throw Error(ErrorCode::kModel, fmt::format("{}: {} of '{}' is not", kNeeded, *wide, path_));
  }
}

/// Where nothing is scaled, asking for another rounding is a mistake. Weights are rounded when they
/// are opened, activations by the backend.
void ModelHost::CheckFp8Scales() const {
  if (config_.fp8_scales == Fp8Scales::kExact) return;
  const bool scaled = spec_.weight_type == spec::WeightType::kFp8Block;
  if (scaled && backend_->info().backend == "cuda") return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("--fp8-scales ue8m0 needs a block-fp8 model on the cuda backend; "
                          "this is {} on {}",
                          spec::NameOf(spec_.weight_type), backend_->info().backend));
}

void ModelHost::OpenFile() {
  const std::filesystem::path path = LocateModel(config_.model);
  path_ = path.string();
  std::filesystem::is_directory(path) ? OpenFolder() : OpenGguf();
  CheckVocabulary();
  answers_ = AboutFile(path_, [&] { return text::ChooseAnswerWords(*tokenizer_); });
  if (config_.layout == "chat") OpenChat();
  if (!config_.random_weights) OpenAdapter();
}

void ModelHost::OpenChat() {
  std::optional<std::string> found;
  if (file_) {
    found = file_->FindString("tokenizer.chat_template");
  } else {
    found = text::LoadChatTemplate(path_);
  }
  if (!found) {
    throw Error(ErrorCode::kModel,
                fmt::format("{}: it has no chat template, so it takes no prompts "
                            "in layout chat",
                            path_));
  }
  chat_ = AboutFile(path_, [&] { return text::ReadChatPieces(*found, *tokenizer_); });
}

void ModelHost::OpenShape(const spec::KnownShape& shape) {
  if (config_.layout == "chat") {
    throw Error(ErrorCode::kUsage, "a shape without files has no chat template for layout chat");
  }
  spec_ = shape.spec;
  answers_.words = {shape.yes_word, shape.no_word};
  for (const std::int32_t id : shape.yes) answers_.yes.emplace_back(id);
  for (const std::int32_t id : shape.no) answers_.no.emplace_back(id);
}

ModelHost::~ModelHost() = default;

const infer::BackendInfo& ModelHost::device() const { return backend_->info(); }

void ModelHost::OpenFolder() {
  const std::filesystem::path folder(path_);
  const auto config = base::MappedFile::Open(folder / "config.json");
  const auto bytes = config.bytes();
  spec_ = spec::ReadModelSpec({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                              (folder / "config.json").string());
  const std::filesystem::path vocabulary = folder / "tokenizer.json";
  tokenizer_ = text::BpeTokenizer::Create(text::LoadTokenizerJson(vocabulary));
  folder_hash_ = base::Combine(base::HashBytes(bytes),
                               base::HashBytes(base::MappedFile::Open(vocabulary).bytes()));
}

/// Rows that the tokenizer does not know are padding; ids without a row cannot be embedded.
void ModelHost::CheckVocabulary() const {
  const std::size_t known = tokenizer_->vocabulary_size();
  if (known > static_cast<std::size_t>(spec_.vocabulary)) {
    throw Error(ErrorCode::kModel, fmt::format("{}: the tokenizer has {} tokens, the model {} rows",
                                               path_, known, spec_.vocabulary));
  }
}

/// The adapter that the user names, else the one that the model has of its own.
void ModelHost::OpenAdapter() {
  if (config_.adapter == "none") return;
  std::optional<std::filesystem::path> path;
  if (!config_.adapter.empty()) path = config_.adapter;
  if (config_.adapter.empty()) path = FindAdapter(path_);
  if (!path) return;
  adapter_ = infer::Adapter::Open(*path);
  const std::string words = fmt::format("{},{}", answers_.words.yes, answers_.words.no);
  const infer::AdapterInfo& info = adapter_->info();
  if (info.words != words || info.layout != config_.layout || !(info.margin_scale > 0)) {
    throw Error(ErrorCode::kModel,
                fmt::format("{} was made for answers {} in layout {}; this model answers {} in "
                            "layout {} (--adapter none runs it without)",
                            path->string(), info.words, info.layout, words, config_.layout));
  }
}

std::string ModelHost::Caution() const {
  if (backend_->info().backend == "counting") {
    return "the counting backend computes nothing: verdicts that are not planted are made up";
  }
  if (config_.random_weights) {
    return "the weights are made up: verdicts that are not planted mean nothing";
  }
  if (adapter_ || !HasOwnAdapter(path_)) return "";
  return "the embedded model runs without its adapter: its verdicts are close to chance; name a "
         "better model with -m";
}

std::vector<std::string> ModelHost::Doubts() const {
  std::vector<std::string> doubts;
  if (evaluator_) doubts.push_back(DoubtOfModel(evaluator_->equal_margins()));
  if (forest_) doubts.push_back(DoubtOfKvRoom(forest_->counters(), forest_->config()));
  std::erase(doubts, "");
  return doubts;
}

void ModelHost::OpenGguf() {
  file_ = spec::GgufFile::Open(path_);
  spec_ = spec::ReadModelSpec(*file_);
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
  tokenizer_ = AboutFile(
      path_, [&] { return text::BpeTokenizer::Create(text::ReadGgufVocabulary(fields)); });
}

/// What the user says, else the device's default; at least two chunks. REQUIRES: the weights are
/// loaded.
std::int64_t ModelHost::KvTokens() const {
  const infer::BackendInfo& device = backend_->info();
  const std::int64_t a_token = KvBytesPerToken(spec_, device);
  std::int64_t tokens = DefaultKvTokens(device, a_token);
  if (config_.kv_memory > 0) tokens = static_cast<std::int64_t>(config_.kv_memory) / a_token;
  if (config_.kv_tokens > 0) tokens = static_cast<std::int64_t>(config_.kv_tokens);
  const std::int64_t least = 2 * std::int64_t{ChunkTokens()};
  if (tokens < least) {
    throw Error(ErrorCode::kUsage,
                fmt::format("a KV memory of {} tokens ({} bytes) is too small; at least {} ({} "
                            "bytes) are needed",
                            tokens, tokens * a_token, least, least * a_token));
  }
  return tokens;
}

std::int32_t ModelHost::ChunkTokens() const {
  const infer::BackendInfo& device = backend_->info();
  if (config_.chunk_tokens > device.max_chunk_tokens) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} takes chunks of at most {} tokens, not {}", device.backend,
                            device.max_chunk_tokens, config_.chunk_tokens));
  }
  return config_.chunk_tokens > 0 ? config_.chunk_tokens : device.preferred_chunk_tokens;
}

std::shared_ptr<const infer::WeightSource> ModelHost::OpenWeights() const {
  const auto weights = OpenStoredWeights();
  return config_.fp8_scales == Fp8Scales::kExact
             ? weights
             : infer::QuantizeToFp8Blocks(weights, infer::BlockScale::kPowerOfTwo);
}

std::shared_ptr<const infer::WeightSource> ModelHost::OpenStoredWeights() const {
  if (config_.random_weights) {
    const auto weights = infer::CreateRandomWeights(spec_, config_.seed);
    const bool fp8 = spec_.weight_type == spec::WeightType::kFp8Block;
    return fp8 ? infer::QuantizeToFp8Blocks(weights) : weights;
  }
  return file_ ? infer::OpenGgufWeights(file_, spec_) : infer::OpenSafetensorsWeights(path_);
}

void ModelHost::Prepare(text::TextStore& texts) {
  evaluator(texts);
  forest_->Clear();
  evaluator_->ForestCleared();
}

infer::RadixMode ModelHost::Radix() const {
  if (config_.radix == "pays") return infer::RadixMode::kWherePays;
  if (config_.radix == "always") return infer::RadixMode::kAlways;
  if (config_.radix == "never") return infer::RadixMode::kNever;
  throw Error(ErrorCode::kUsage,
              fmt::format("radix '{}' is none of pays, always, never", config_.radix));
}

void ModelHost::LoadWeights() {
  weights_ = OpenWeights();
  if (adapter_) weights_ = infer::ApplyAdapter(weights_, adapter_, spec_);
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
  forest.chunk_tokens = ChunkTokens();
  forest.radix = Radix();
  forest.context_tokens = spec_.context;
  forest.true_rows = static_cast<std::int32_t>(answers_.yes.size());
  forest.answer_rows = static_cast<std::int32_t>(request.answer_tokens.size());
  forest_ = config_.baseline ? infer::CreateRequestQueue(*model_, *backend_, forest)
                             : infer::PromptForest::Create(*model_, *backend_, forest);
  TestModel();
}

void ModelHost::TestModel() {
  if (config_.random_weights || tokenizer_ == nullptr) return;
  if (backend_->info().backend == "counting") return;
  const auto test = RunSelfTest({.model = *model_,
                                 .backend = *backend_,
                                 .tokenizer = *tokenizer_,
                                 .words = answers_.words,
                                 .chat = chat(),
                                 .true_rows = static_cast<std::int32_t>(answers_.yes.size()),
                                 .margin_scale = MarginScale()});
  if (test) doubt_of_self_test_ = DoubtOfSelfTest(*test);
}

float ModelHost::MarginScale() const {
  return adapter_ ? static_cast<float>(adapter_->info().margin_scale) : 1.0F;
}

void ModelHost::CheckBackend() const {
  const auto* counting = dynamic_cast<const infer::CountingBackend*>(backend_.get());
  if (counting == nullptr || counting->fault().empty()) return;
  throw Error(ErrorCode::kQuery, fmt::format("counting backend: {}", counting->fault()));
}

exec::Evaluator& ModelHost::evaluator(text::TextStore& texts) {
  if (!forest_) LoadWeights();
  if (!evaluator_) {
    evaluator_ = std::make_unique<exec::ModelEvaluator>(
        exec::ModelParts{.forest = *forest_,
                         .tokenizer = tokenizer_.get(),
                         .texts = texts,
                         .pool = pool_,
                         .words = answers_.words,
                         .chat = chat(),
                         .margin_scale = MarginScale(),
                         .vocabulary = spec_.vocabulary,
                         .token_prompts = &token_prompts_,
                         .asked = config_.check_minimum ? &asked_ : nullptr});
  }
  return *evaluator_;
}

std::string ModelHost::Identity() const {
  const infer::BackendInfo& device = backend_->info();
  return fmt::format(
      "{} {} {} {} {} {} {} {} {} {}", weights_->hash().ToHex(), folder_hash_.ToHex(),
      spec::NameOf(spec_.weight_type), device.backend, spec::NameOf(device.compute_type),
      device.kv_value_bytes, config_.deterministic ? "deterministic" : "packed",
      static_cast<int>(config_.fp8_scales), HashOfLayouts(answers_.words, chat()).ToHex(),
      HashOf(config_.token_prompts).ToHex());
}

spec::ModelSpec ModelHost::SpecOfDevice() const {
  spec::ModelSpec spec = spec_;
  if (backend_->info().backend == "cpu") spec.weight_type = backend_->info().compute_type;
  return spec;
}

RunReport::Model ModelHost::ModelReport() const {
  RunReport::Model model;
  model.name = spec_.name;
  model.path = path_;
  if (config_.random_weights) model.weights = fmt::format("random, seed {}", config_.seed);
  if (weights_) model.hash = weights_->hash().ToHex();
  model.parameters = spec_.block_parameters() +
                     std::int64_t{spec_.vocabulary} * spec_.hidden * (spec_.tied_head ? 1 : 2);
  model.weight_type = spec::NameOf(spec_.weight_type);
  return model;
}

RunReport::Device ModelHost::DeviceReport() const {
  const infer::BackendInfo& info = backend_->info();
  const bool ue8m0 = config_.fp8_scales == Fp8Scales::kUe8m0;
  return {info.device,
          info.backend,
          info.threads,
          info.memory_bytes,
          std::string(spec::NameOf(info.compute_type)),
          ue8m0 ? "ue8m0" : ""};
}

}  // namespace quail::session
