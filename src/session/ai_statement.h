#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "exec/budget_evaluator.h"
#include "exec/statement_verdicts.h"
#include "exec/step_counters.h"
#include "plan/explain.h"
#include "plan/logical.h"
#include "plan/physical.h"
#include "quail/session.h"
#include "session/report.h"
#include "session/session_state.h"
#include "spec/device_spec.h"
#include "spec/model_spec.h"
#include "sql/statement.h"

namespace quail::session {

/// One statement with AI calls on its way: bound, its relations made, planned, its steps run, its
/// final SQL read. Leaves the report behind, also where it failed.
class AiStatement : public std::enable_shared_from_this<AiStatement> {
 public:
  /// `text` is the statement as the user wrote it, a part of `script`.
  AiStatement(SessionState& state, std::string_view script, const Session::Statement& text,
              sql::Statement statement);
  ~AiStatement();

  /// The statement's rows, or nothing for a statement with an effect.
  std::unique_ptr<Result> Run(const RunOptions& options);
  /// COPY of the rows to a file. `copy_options` stands in parentheses behind the path.
  std::uint64_t RunToFile(std::string_view path, std::string_view copy_options);

 private:
  void Plan();
  void ApplyHints();
  void ChooseDevice();
  void MakeRelations();
  void MeasureArguments();
  plan::ArgumentStatistics Measure(const plan::Relation& relation, const std::string& column);
  bool IsOfEffect();
  void RunSteps();
  void CheckLookups();
  std::string NoLight() const;
  plan::ExplainHead Head() const;
  void PriceOnDemand();
  std::unique_ptr<Result> ExplainResult(bool json);
  std::unique_ptr<Result> AnalyzeResult();
  std::unique_ptr<relational::ResultStream> Change();
  std::unique_ptr<Result> FinalResult(const RunOptions& options);
  std::unique_ptr<Result> DescribeResult(CellForm form);

  template <typename Call>
  auto Noted(Call call);
  Error Placed(const Error& error) const;
  void Fail(const Error& error);
  void Notice(const std::string& text);
  void TellOfBudget(const exec::BudgetEvaluator& limited);
  void Fill(const std::vector<exec::StepCounters>& steps);
  std::string Decider() const;
  std::int64_t LongestPrompt() const;
  void TellOfElse();
  void TellOfFailures();
  void TellOfCuts();
  void FillFailures();
  void FillModel();
  void FillRoofline(const spec::Workload& work);
  void FillPower();
  double CheckSeconds() const;
  void Close();

  SessionState& state_;
  std::string script_;
  Session::Statement text_;
  Dialect dialect_;  ///< of the text: the session's may change while rows are read
  sql::Statement statement_;
  RunReport report_;
  base::Stopwatch total_;
  base::Stopwatch steps_watch_;                     ///< since the steps began
  std::optional<infer::DeviceUsage> usage_before_;  ///< when the steps began
  plan::LogicalPlan logical_;
  std::vector<plan::ArgumentStatistics> statistics_;
  spec::ModelSpec model_spec_;
  spec::DeviceSpec device_spec_;
  plan::PhysicalPlan plan_;
  std::unique_ptr<exec::StatementVerdicts> verdicts_;
  bool closed_ = false;
  bool light_refuted_ = false;  ///< the model was faster than the device's rates allow
  bool more_may_follow_ = false;
  bool can_check_ = false;  ///< the lookups: another run of the statement changes nothing
};

}  // namespace quail::session
