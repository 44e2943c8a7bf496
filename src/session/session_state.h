#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "exec/checkpoint_file.h"
#include "exec/function_evaluator.h"
#include "exec/lookup_functions.h"
#include "exec/planted_evaluator.h"
#include "plan/ai_views.h"
#include "quail/config.h"
#include "relational/connection.h"
#include "session/connection_catalog.h"
#include "session/model_host.h"
#include "session/settings.h"
#include "session/user_position.h"
#include "text/text_store.h"

namespace quail::session {

/// What the statements of a session share.
struct SessionState {
  explicit SessionState(const Config& session_config)
      : config(session_config), pool(session_config.threads) {}

  /// The model's host, opened the first time. REQUIRES: no oracle.
  ModelHost& Model() {
    if (!model) {
      model = Recoded([this] { return std::make_unique<ModelHost>(config, pool); }, OfModel);
    }
    return *model;
  }

  /// The model as an evaluator; its weights are read the first time. REQUIRES: no oracle.
  exec::Evaluator& Judge() {
    return *Recoded([this] { return &Model().evaluator(texts); }, OfModel);
  }

  /// A model file that cannot be read or is not supported is a model that cannot be used: no text
  /// of a statement is to blame.
  static ErrorCode OfModel(ErrorCode code) {
    const bool file =
        code == ErrorCode::kIo || code == ErrorCode::kCorrupt || code == ErrorCode::kUnsupported;
    return file ? ErrorCode::kModel : code;
  }

  /// REQUIRES: no statement has ids of them.
  void ForgetTexts() {
    std::destroy_at(&texts);  // others hold its address
    std::construct_at(&texts);
  }

  Config config;
  Settings settings;
  double boot_seconds = 0;
  base::CancelFlag cancel;
  base::ThreadPool pool;
  text::TextStore texts;
  std::optional<plan::AiViews> views;  ///< see KnownViews; empty when there may be others
  KnownFunctions functions;            ///< macros are forgotten where there may be others
  bool in_transaction = false;         ///< that the user began
  exec::LookupSource lookups;
  std::unique_ptr<ModelHost> model;
  std::unique_ptr<exec::FunctionEvaluator> oracle;  ///< stands in for the model
  /// Stand in for the model's answers; `name` is empty where there are none.
  struct {
    std::string name;
    std::unique_ptr<const exec::PlantedSource> answers;
  } planted;
  std::string oracle_hash;
  std::unique_ptr<exec::CheckpointFile> checkpoint;
  std::string report;              ///< of the last statement with AI calls
  bool stopped_by_budget = false;  ///< the last statement with AI calls
  /// Rows of quail_errors(), of the last statement with AI calls.
  std::vector<std::vector<relational::TableFunction::Cell>> errors;
  std::unique_ptr<relational::Connection> connection;  ///< goes first: its functions read the above
};

}  // namespace quail::session
