// A tokenizer.json from anywhere is refused with quail::Error or gives a tokenizer whose ids decode
// to the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "quail/error.h"
#include "text/bpe_tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

using quail::text::BpeTokenizer;
using quail::text::TokenId;

constexpr std::string_view kText = "ab aab\n\n  it's 12345 <|end|> caf\u00E9 e\u0301 \U0001F600";

void EncodeWith(quail::text::BpeVocabulary vocabulary) {
  const bool nfc = vocabulary.nfc;
  const auto tokenizer = BpeTokenizer::Create(std::move(vocabulary));
  std::vector<TokenId> ids;
  std::size_t unknown = 0;
  QUAIL_CHECK(!tokenizer->Encode(kText, ids, &unknown));
  for (const TokenId id : ids) {
    QUAIL_CHECK(id.value() >= 0 &&
                static_cast<std::size_t>(id.value()) < tokenizer->vocabulary_size());
  }
  if (unknown == 0 && !nfc) QUAIL_CHECK(tokenizer->Decode(ids) == kText);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    EncodeWith(quail::text::ReadTokenizerJson({reinterpret_cast<const char*>(data), size}));
  } catch (const quail::Error& error) {
    QUAIL_CHECK(error.code() == quail::ErrorCode::kModel);
  }
  return 0;
}
