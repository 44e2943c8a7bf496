#include "quailb/suite_tables.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "quailb/answers.h"
#include "quailb/latents.h"

namespace quail::quailb {
namespace {

Column IntegerColumn(std::string name, Column::Integer value) {
  return {std::move(name), std::move(value)};
}

Column LatentColumn(std::string name, Latent latent, const Corpus& corpus) {
  const CounterRandom random = LatentStream(latent, corpus.seed);
  return {std::move(name), Column::Real([random](std::uint64_t row) { return random.Unit(row); })};
}

/// The latent of the row that another row links to.
Column LinkedColumn(std::string name, Latent latent, const Corpus& corpus,
                    const std::vector<std::uint32_t>& links) {
  const CounterRandom random = LatentStream(latent, corpus.seed);
  return {std::move(name),
          Column::Real([random, &links](std::uint64_t row) { return random.Unit(links[row]); })};
}

Column LinkColumn(std::string name, const std::vector<std::uint32_t>& links) {
  return IntegerColumn(std::move(name), [&links](std::uint64_t row) { return links[row]; });
}

/// Attributes of a table's rows: what the planted answers follow from.
std::vector<Column> AttributesOf(Table table, const Corpus& corpus) {
  switch (table) {
    case Table::kReviews:
      return {LatentColumn("valence", Latent::kValence, corpus),
              LatentColumn("ending", Latent::kEnding, corpus),
              LatentColumn("actor", Latent::kActor, corpus),
              LatentColumn("talkative", Latent::kTalkative, corpus)};
    case Table::kAspects:
      return {};
    case Table::kReports:
      return {LatentColumn("severity", Latent::kSeverity, corpus)};
    case Table::kTerms:
      return {LatentColumn("neurological", Latent::kOrganNeuro, corpus),
              LatentColumn("cardiovascular", Latent::kOrganCardio, corpus)};
    case Table::kClaims:
      return {LinkColumn("evidence_wiki_url", corpus.page_of_claim),
              LinkedColumn("topic", Latent::kTopic, corpus, corpus.page_of_claim),
              LatentColumn("polarity", Latent::kPolarity, corpus),
              LatentColumn("dated", Latent::kDate, corpus)};
    case Table::kEvidence:
      return {LatentColumn("topic", Latent::kTopic, corpus),
              LatentColumn("person", Latent::kPersonPage, corpus)};
    case Table::kContexts:
      return {LinkColumn("passage_id", corpus.passage_of_excerpt),
              LinkedColumn("subject", Latent::kSubject, corpus, corpus.passage_of_excerpt),
              LatentColumn("stance", Latent::kStance, corpus),
              LatentColumn("procedure", Latent::kProcedure, corpus)};
    case Table::kPassages:
      return {LatentColumn("subject", Latent::kSubject, corpus),
              LatentColumn("rule", Latent::kRule, corpus)};
    case Table::kTraces:
      return {
          IntegerColumn("trajectory",
                        [&corpus](std::uint64_t row) { return corpus.snapshots[row].trajectory; }),
          IntegerColumn("turn", [&corpus](std::uint64_t row) {
            return 5 * (std::int64_t{corpus.snapshots[row].step} + 1);
          })};
  }
  return {};
}

SuiteTable DocumentTable(Table table, const Corpus& corpus) {
  const TableInfo& info = InfoOf(table);
  return {std::string(info.name), std::string(info.text_column), [table, &corpus] {
            TableSource source{{}, corpus.rows(table)};
            source.columns.push_back(IntegerColumn(
                "id", [](std::uint64_t row) { return static_cast<std::int64_t>(row); }));
            source.columns.push_back({std::string(InfoOf(table).text_column),
                                      Column::Tokens([table, &corpus](std::uint64_t row) {
                                        return DocumentIds(corpus, table,
                                                           static_cast<std::uint32_t>(row));
                                      })});
            for (Column& column : AttributesOf(table, corpus)) {
              source.columns.push_back(std::move(column));
            }
            return source;
          }};
}

SuiteTable PromptTable(const Corpus& corpus) {
  return {"prompts", "ids", [seed = corpus.seed] {
            const auto pieces = std::make_shared<const std::vector<Piece>>(PromptPieces(seed));
            const auto text = [pieces](std::string Piece::*member) {
              return Column::Text(
                  [pieces, member](std::uint64_t row) { return (*pieces)[row].*member; });
            };
            const Column::Tokens ids = [pieces](std::uint64_t row) { return (*pieces)[row].ids; };
            return TableSource{{{"question", text(&Piece::question)},
                                {"part", text(&Piece::part)},
                                {"template", text(&Piece::text)},
                                {"ids", ids}},
                               pieces->size()};
          }};
}

/// A TRUE answer.
struct AnswerRow {
  std::string_view question;
  std::uint32_t document = 0;
  std::optional<std::uint32_t> partner;
};

std::vector<AnswerRow> RowsOfAnswers(const Answers& answers) {
  std::vector<AnswerRow> rows;
  for (const auto& [name, values] : answers.filters) {
    for (std::uint32_t row = 0; row < values.size(); ++row) {
      if (values[row]) rows.push_back({FindQuestion(name).name, row, std::nullopt});
    }
  }
  for (const auto& [name, pairs] : answers.joins) {
    for (const auto& [document, partner] : pairs) {
      rows.push_back({FindQuestion(name).name, document, partner});
    }
  }
  return rows;
}

SuiteTable AnswerTable(std::string name, const Corpus& corpus, Answers (*plant)(const Corpus&)) {
  return {std::move(name), "", [&corpus, plant] {
            const auto rows =
                std::make_shared<const std::vector<AnswerRow>>(RowsOfAnswers(plant(corpus)));
            const Column::Text question = [rows](std::uint64_t row) {
              return std::string((*rows)[row].question);
            };
            return TableSource{
                {{"question", question},
                 IntegerColumn("document", [rows](std::uint64_t i) { return (*rows)[i].document; }),
                 IntegerColumn("partner",
                               [rows](std::uint64_t i) -> std::optional<std::int64_t> {
                                 return (*rows)[i].partner;
                               })},
                rows->size()};
          }};
}

}  // namespace

std::vector<SuiteTable> SuiteTables(const Corpus& corpus) {
  std::vector<SuiteTable> tables;
  for (std::size_t i = 0; i < kTableCount; ++i) {
    tables.push_back(DocumentTable(static_cast<Table>(i), corpus));
  }
  tables.push_back(PromptTable(corpus));
  tables.push_back(AnswerTable("truth", corpus, &PlantTruth));
  tables.push_back(AnswerTable("flow4b", corpus, &PlantFlow4b));
  return tables;
}

}  // namespace quail::quailb
