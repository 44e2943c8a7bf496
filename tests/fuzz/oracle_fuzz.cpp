// Any bytes as an oracle file: refused with quail::Error that names a line of it, or rules whose
// answers agree with themselves: TRUE is a margin > 0, an error has a reason.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "exec/oracle.h"
#include "quail/error.h"

namespace {

using quail::exec::Oracle;
using quail::exec::PlantedAnswer;
using quail::exec::Verdict;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckAnswer(const PlantedAnswer& answer) {
  const bool judged = answer.verdict == Verdict::kTrue || answer.verdict == Verdict::kFalse;
  Require(answer.verdict != Verdict::kUndecided && std::isfinite(answer.margin));
  Require(!judged || (answer.margin > 0) == (answer.verdict == Verdict::kTrue));
  Require((answer.verdict == Verdict::kError) == !answer.reason.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view lines(reinterpret_cast<const char*>(data), size);
  try {
    const Oracle oracle = Oracle::Parse(lines, "fuzzed");
    const std::vector<std::string_view> texts = {"snow", lines.substr(0, 40), ""};
    for (std::size_t count = 0; count <= texts.size(); ++count) {
      for (const std::string_view prompt :
           {std::string_view("snow? {0}"), lines.substr(size / 2)}) {
        CheckAnswer(oracle.Decide(prompt, std::span(texts).first(count)));
      }
    }
  } catch (const quail::Error& error) {
    Require(error.code() == quail::ErrorCode::kCorrupt);
    Require(std::string_view(error.what()).find("oracle fuzzed, line ") != std::string_view::npos);
  }
  return 0;
}
