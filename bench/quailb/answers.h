#pragma once

#include <map>
#include <string>
#include <vector>

#include "quailb/corpus.h"
#include "quailb/selection.h"

namespace quail::quailb {

/// The planted answers of a corpus: for each filter a value a row, for each join the TRUE pairs
/// (anchor row, partner row); all others are FALSE. Rows of the corpus's scale only.
struct Answers {
  std::map<std::string, std::vector<bool>, std::less<>> filters;
  std::map<std::string, std::vector<Pair>, std::less<>> joins;
};

/// At the published label rates.
Answers PlantTruth(const Corpus& corpus);
/// With the survivor counts measured for the 4B model, and with the survivors' token totals that
/// the published token counts imply.
Answers PlantFlow4b(const Corpus& corpus);

}  // namespace quail::quailb
