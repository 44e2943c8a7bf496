#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash128.h"
#include "base/thread_pool.h"
#include "exec/model_evaluator.h"
#include "infer/backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/adapter.h"
#include "quail/config.h"
#include "session/report.h"
#include "spec/gguf_file.h"
#include "spec/known_shapes.h"
#include "spec/model_spec.h"
#include "text/answer_words.h"
#include "text/bpe_tokenizer.h"
#include "text/text_store.h"

namespace quail::session {

/// The model of a session: shape and tokenizer are read when it is opened, the weights when
/// something is first asked. With made-up weights of a known shape there is no tokenizer.
class ModelHost {
 public:
  /// Throws Error{kModel | kIo | kCorrupt | kUnsupported | kDevice}.
  ModelHost(const Config& config, base::ThreadPool& pool);
  ~ModelHost();

  const spec::ModelSpec& spec() const { return spec_; }
  /// The spec with the weights as the device computes with them.
  spec::ModelSpec SpecOfDevice() const;
  /// nullptr: texts cannot be asked about, only token ids.
  const text::BpeTokenizer* tokenizer() const { return tokenizer_.get(); }
  const exec::TokenPrompts& token_prompts() const { return token_prompts_; }
  const text::AnswerChoice& answers() const { return answers_; }
  /// nullptr: layout plain.
  const text::ChatPieces* chat() const { return chat_ ? &*chat_ : nullptr; }
  const infer::BackendInfo& device() const;
  /// What the device used up to now; nullopt where that is not measured.
  std::optional<infer::DeviceUsage> usage() { return backend_->usage(); }

  /// Loads the weights the first time. The texts of all calls are those of one store.
  exec::Evaluator& evaluator(text::TextStore& texts);
  /// See PromptForest::KeepForLater. REQUIRES: the weights are loaded.
  void KeepForLater(bool keep) { forest_->KeepForLater(keep); }
  /// Counters and sizes of the forest since its last reset; nullptr before the weights are loaded.
  const infer::PromptForest* forest() const { return forest_.get(); }
  /// The paths of the asks since the last statement began, where Config::check_minimum wants them.
  const exec::AskedPaths* asked() const { return config_.check_minimum ? &asked_ : nullptr; }
  /// Throws Error{kQuery} with what a counting backend found wrong (Config::check_kv).
  void CheckBackend() const;
  /// Loads the weights where that is still to be done, and drops the KV that later statements could
  /// reuse. REQUIRES: no statement runs.
  void Prepare(text::TextStore& texts);

  /// What a verdict depends on beside its question: model, adapter and tokenizer, numeric mode,
  /// prompt layout. REQUIRES: the weights are loaded.
  std::string Identity() const;
  /// What a user must know about this model before trusting it; empty if nothing.
  std::string Caution() const;
  /// What the built-in question says against this model, asked when the weights were loaded; empty
  /// if nothing, or if it was not asked: where nothing is computed, or with made-up weights.
  const std::string& doubt_of_self_test() const { return doubt_of_self_test_; }
  /// What the figures of the last statement say against this model or its room, for notices.
  std::vector<std::string> Doubts() const;
  RunReport::Model ModelReport() const;
  RunReport::Device DeviceReport() const;

 private:
  void OpenFile();
  void OpenFolder();
  void OpenShape(const spec::KnownShape& shape);
  void OpenGguf();
  void OpenAdapter();
  void OpenChat();
  void CheckVocabulary() const;
  void CheckFp8Scales() const;
  void CheckComputeType() const;
  std::shared_ptr<const infer::WeightSource> OpenWeights() const;
  std::shared_ptr<const infer::WeightSource> OpenStoredWeights() const;
  void LoadWeights();
  void TestModel();
  float MarginScale() const;
  std::int32_t ChunkTokens() const;
  infer::RadixMode Radix() const;
  std::int64_t KvTokens() const;

  Config config_;
  base::ThreadPool& pool_;
  std::string path_;
  std::shared_ptr<const spec::GgufFile> file_;  ///< null: a folder with safetensors
  std::shared_ptr<const infer::Adapter> adapter_;
  spec::ModelSpec spec_;
  base::Hash128 folder_hash_;  ///< of a folder's files beside the weights
  std::shared_ptr<const text::BpeTokenizer> tokenizer_;
  exec::TokenPrompts token_prompts_;
  exec::AskedPaths asked_;
  text::AnswerChoice answers_;
  std::optional<text::ChatPieces> chat_;
  std::unique_ptr<infer::Backend> backend_;
  std::shared_ptr<const infer::WeightSource> weights_;
  std::unique_ptr<infer::Model> model_;
  std::unique_ptr<infer::PromptForest> forest_;
  std::unique_ptr<exec::ModelEvaluator> evaluator_;
  std::string doubt_of_self_test_;
};

}  // namespace quail::session
