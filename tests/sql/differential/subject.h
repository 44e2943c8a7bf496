#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quail/error.h"
#include "quail/session.h"
#include "query_generator.h"
#include "world.h"

namespace quail::test {

/// Rows as lines, or why there are none.
struct Answer {
  std::vector<std::string> lines;
  std::optional<Error> error;

  void AddRow(const std::vector<std::optional<std::string>>& row);

  std::string Text() const;
};

Config Threads(std::uint32_t threads);

/// Quail over a world, with its oracle.
class Subject {
 public:
  /// `folder` exists; the oracle's file is written there. `config` says what else is to be.
  Subject(const World& world, const std::filesystem::path& folder, Config config);

  Answer Rows(const std::string& sql);
  /// Of the query behind the statements that it needs; the first error of any of them.
  Answer Rows(const RandomQuery& query);

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace quail::test
