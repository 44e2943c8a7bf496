#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quail/session.h"
#include "record.h"

namespace quail::test {

/// Runs the records of one file on sessions without a model.
class Runner {
 public:
  explicit Runner(std::filesystem::path scratch);
  ~Runner();

  /// Nothing, or why the record failed. With `actual`, a query's rows go there instead of being
  /// compared.
  std::optional<std::string> Run(const Record& record, std::vector<std::string>* actual);

 private:
  void AddTable(const Record& record);
  Session& Open();
  std::optional<std::string> RunStatement(const Record& record);
  std::optional<std::string> RunQuery(const Record& record, std::vector<std::string>* actual);
  std::optional<std::string> CheckCounters(const Record& record) const;
  std::optional<std::string> CheckNotice(const Record& record) const;
  std::vector<std::string> Rows(const std::string& sql, std::string* types);

  std::filesystem::path scratch_;
  std::vector<std::string> tables_;  ///< SQL that makes them
  std::string oracle_;
  Dialect dialect_ = Dialect::kSnowflake;
  std::vector<std::string> notices_;
  std::unique_ptr<Session> session_;
};

}  // namespace quail::test
