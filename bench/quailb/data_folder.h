#pragma once

#include <map>
#include <string>
#include <vector>

#include "quail/session.h"
#include "quailb/catalogue.h"

namespace quail::quailb {

/// A folder that `quail bench generate` wrote.
class DataFolder {
 public:
  /// Throws Error{kIo} where there is no such folder or a file of it is missing or unfinished,
  /// Error{kCorrupt} for a manifest that is not ours or not of these files, Error{kUsage} where
  /// `scale` (may be empty) is not the folder's.
  static DataFolder Open(const std::string& path, const std::string& scale,
                         const std::string& duckdb_library);

  Scale scale() const { return scale_; }
  std::uint64_t seed() const { return seed_; }

  std::vector<TokenPrompt> Prompts(PromptLayout layout) const;
  /// Makes the folder's tables those of a session.
  void Register(Session& session) const;
  /// The answers `set` (truth, flow4b) to the questions of a query. REQUIRES: Register.
  PlantedSet Answers(Session& session, const std::string& set, const Query& query) const;

 private:
  struct Piece {
    std::string question;
    std::string part;
    std::string prompt;
    std::vector<std::int32_t> ids;
  };

  void ReadManifest();
  /// Every file must be the one that the manifest counts.
  void CheckRows(Session& session) const;
  void ReadPieces(Session& session);
  std::string PathOf(std::string_view table) const;
  const std::vector<std::int32_t>& Ids(std::string_view question, std::string_view part) const;

  std::string path_;
  Scale scale_ = Scale::k01;
  std::uint64_t seed_ = 0;
  std::map<std::string, std::uint64_t> rows_;  ///< of the files, by the manifest
  std::vector<Piece> pieces_;
};

/// The questions that a query asks, each once.
std::vector<const Question*> QuestionsOf(const Query& query);

}  // namespace quail::quailb
