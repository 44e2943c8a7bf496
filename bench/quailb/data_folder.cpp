#include "quailb/data_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace quail::quailb {
namespace {

namespace fs = std::filesystem;
using Cells = std::vector<std::vector<std::optional<std::string>>>;

Cells ReadRows(Session& session, const std::string& sql) {
  Cells all;
  const auto result = session.Run(sql, {sql, 0}, {});
  for (auto rows = result->Next(); !rows.empty(); rows = result->Next()) {
    std::ranges::move(rows, std::back_inserter(all));
  }
  return all;
}

/// Runs a statement for its effect.
void Run(Session& session, const std::string& sql) { session.Run(sql, {sql, 0}, {})->Drain(); }

/// "[1, 2, 3]".
std::vector<std::int32_t> ReadIds(const std::string& text) {
  return nlohmann::json::parse(text).get<std::vector<std::int32_t>>();
}

std::string IdTable(Table table) { return fmt::format("quailb_ids_{}", InfoOf(table).name); }

}  // namespace

std::vector<const Question*> QuestionsOf(const Query& query) {
  std::vector<const Question*> questions;
  const auto add = [&](std::string_view name) {
    const Question& question = FindQuestion(name);
    if (std::ranges::find(questions, &question) == questions.end()) questions.push_back(&question);
  };
  for (const QueryTable& table : query.tables) std::ranges::for_each(table.filters, add);
  for (const QueryJoin& join : query.joins) add(join.question);
  return questions;
}

DataFolder DataFolder::Open(const std::string& path, const std::string& scale,
                            const std::string& duckdb_library) {
  DataFolder folder;
  folder.path_ = path;
  folder.ReadManifest();
  if (!scale.empty() && ReadScale(scale) != folder.scale_) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' was generated at scale {}, not {}", path,
                                               ScaleName(folder.scale_), scale));
  }
  for (std::size_t i = 0; i < kTableCount; ++i) folder.PathOf(InfoOf(static_cast<Table>(i)).name);
  Config config;
  config.duckdb_library = duckdb_library;
  const auto session = Session::Open(config);
  folder.CheckRows(*session);
  folder.ReadPieces(*session);
  return folder;
}

void DataFolder::ReadManifest() {
  const fs::path path = fs::path(path_) / "manifest.json";
  if (fs::exists(fs::path(path_) / "unfinished")) {
    throw Error(ErrorCode::kIo, fmt::format("'{}' is not whole: its generation was interrupted; "
                                            "run quail bench generate again",
                                            path_));
  }
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::kIo, fmt::format("cannot read '{}': is '{}' a folder that quail bench "
                                            "generate wrote?",
                                            path.string(), path_));
  }
  try {
    const auto manifest = nlohmann::json::parse(file);
    if (manifest.at("suite") != "quailb" || manifest.at("format") != 1) {
      throw Error(ErrorCode::kCorrupt, fmt::format("'{}' is not of this suite", path.string()));
    }
    scale_ = ReadScale(manifest.at("scale").get<std::string>());
    seed_ = manifest.at("seed").get<std::uint64_t>();
    for (const auto& [name, table] : manifest.at("tables").items()) {
      rows_[name] = table.at("rows").get<std::uint64_t>();
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}' is broken, or of another version: run quail "
                                                 "bench generate again",
                                                 path.string()));
  }
}

std::string DataFolder::PathOf(std::string_view table) const {
  const fs::path path = fs::path(path_) / fmt::format("{}.parquet", table);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw Error(ErrorCode::kIo, fmt::format("'{}' is missing", path.string()));
  }
  return path.string();
}

void DataFolder::CheckRows(Session& session) const {
  for (const auto& [name, rows] : rows_) {
    session.RegisterFile(name, PathOf(name));
    const auto found = ReadRows(session, fmt::format("SELECT count(*) FROM \"{}\"", name));
    if (found.at(0).at(0) == std::to_string(rows)) continue;
    throw Error(ErrorCode::kCorrupt,
                fmt::format("'{}' has {} rows where the manifest of its folder says {}: it is of "
                            "another scale or seed",
                            PathOf(name), found[0][0].value_or(""), rows));
  }
}

void DataFolder::ReadPieces(Session& session) {
  session.RegisterFile("prompts", PathOf("prompts"));
  for (const auto& row :
       ReadRows(session, "SELECT question, part, template, ids.tokens FROM prompts")) {
    pieces_.push_back({row[0].value_or(""), row[1].value_or(""), row[2].value_or(""),
                       ReadIds(row[3].value_or("[]"))});
  }
}

const std::vector<std::int32_t>& DataFolder::Ids(std::string_view question,
                                                 std::string_view part) const {
  for (const Piece& piece : pieces_) {
    if (piece.question == question && piece.part == part) return piece.ids;
  }
  throw Error(ErrorCode::kCorrupt,
              fmt::format("'{}' has no prompt piece '{}' of '{}'", path_, part, question));
}

std::vector<TokenPrompt> DataFolder::Prompts(PromptLayout layout) const {
  const bool published = layout == PromptLayout::kPublished;
  std::vector<TokenPrompt> prompts;
  for (const Question& question : Questions()) {
    TokenPrompt prompt;
    prompt.prompt = question.text;
    (published ? prompt.tail : prompt.head) = Ids("", "preamble");
    prompt.question = Ids(question.name, question.is_filter() ? "tail" : "frame");
    if (!question.is_filter()) {
      auto& labelled = published ? prompt.partner_tail : prompt.question;
      const auto& label = Ids("", "label");
      labelled.insert(labelled.end(), label.begin(), label.end());
      const auto& cue = Ids("", "cue");
      prompt.partner_tail.insert(prompt.partner_tail.end(), cue.begin(), cue.end());
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

void DataFolder::Register(Session& session) const {
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    session.RegisterFile(InfoOf(table).name, PathOf(InfoOf(table).name));
    Run(session, fmt::format("CREATE TEMP VIEW {} AS SELECT id, quail_token_list_id({}.tokens) AS "
                             "text FROM {}",
                             IdTable(table), InfoOf(table).text_column, InfoOf(table).name));
  }
}

PlantedSet DataFolder::Answers(Session& session, const std::string& set, const Query& query) const {
  session.RegisterFile("quailb_answers", PathOf(set));
  PlantedSet planted;
  planted.name = set;
  for (const Question* question : QuestionsOf(query)) {
    planted.prompts.emplace_back(question->text);
    if (!planted.query.empty()) planted.query += "\nUNION ALL BY NAME ";
    planted.query +=
        fmt::format("SELECT {} AS prompt, d.text AS document", TextLiteral(question->text));
    std::string from =
        fmt::format("quailb_answers a JOIN {} d ON d.id = a.document", IdTable(question->document));
    if (!question->is_filter()) {
      planted.query += ", p.text AS partner";
      from += fmt::format(" JOIN {} p ON p.id = a.partner", IdTable(question->partner));
    }
    planted.query +=
        fmt::format(" FROM {} WHERE a.question = {}", from, TextLiteral(question->name));
  }
  return planted;
}

}  // namespace quail::quailb
