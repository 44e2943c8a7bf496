#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quail/session.h"
#include "record.h"

namespace quail::test {

/// A way to run sessions. All but "oracle" let a prompt forest over the counting backend do the
/// work, with the embedded model's tokenizer, and plant the oracle's answers.
struct Setup {
  std::string name = "oracle";
  Config config;
  std::string setting;  ///< SQL that every session begins with
};

/// Throws std::runtime_error for an unknown name, and where the embedded model is missing.
Setup SetupOf(const std::string& name);

/// Runs the records of one file.
class Runner {
 public:
  Runner(std::filesystem::path scratch, Setup setup);
  ~Runner();

  /// Nothing, or why the record failed. With `actual`, a query's rows go there instead of being
  /// compared.
  std::optional<std::string> Run(const Record& record, std::vector<std::string>* actual);

 private:
  void AddTable(const Record& record);
  std::optional<std::string> ChooseDialect(std::string_view name);
  Session& Open();
  std::optional<std::string> RunStatement(const Record& record);
  std::optional<std::string> RunQuery(const Record& record, std::vector<std::string>* actual);
  std::optional<std::string> CheckCounters(const Record& record) const;
  std::optional<std::string> CheckNotice(const Record& record) const;
  std::vector<std::string> Rows(const std::string& sql, std::string* types);

  std::filesystem::path scratch_;
  Setup setup_;
  std::vector<std::string> tables_;  ///< SQL that makes them
  std::string oracle_;
  Dialect dialect_ = Dialect::kSnowflake;
  std::vector<std::string> notices_;
  std::unique_ptr<Session> session_;
};

}  // namespace quail::test
