#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quailb/corpus.h"
#include "quailb/table_stream.h"

namespace quail::quailb {

/// A file of the generated suite.
struct SuiteTable {
  std::string name;
  std::string token_column;             ///< empty: none
  std::function<TableSource()> source;  ///< made when it is written; borrows the corpus
};

/// The tables of documents with their attributes, `prompts` (the pieces) and the planted answers
/// `truth` and `flow4b`: (question, document, partner), one row for each TRUE answer, partner NULL
/// for filters; whatever has no row is FALSE. Ids are row numbers from 0.
std::vector<SuiteTable> SuiteTables(const Corpus& corpus);

}  // namespace quail::quailb
