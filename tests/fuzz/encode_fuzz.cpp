// Encode against invariants. The first byte chooses the scheme and whether to normalise; the rest
// is the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../unit/text/byte_vocabulary.h"
#include "base/check.h"
#include "base/utf8.h"
#include "text/nfc.h"

namespace {

using namespace quail::text;

/// Pairs that meet in words, in white space, inside characters and across repeats.
BpeVocabulary Vocabulary(SplitScheme scheme, bool nfc) {
  BpeVocabulary vocabulary = ByteVocabulary({{"a", "b"},
                                             {"a", "a"},
                                             {" ", " "},
                                             {"ab", "a"},
                                             {"\xCC", "\x81"},
                                             {" ", "a"},
                                             {"  ", "  "},
                                             {"aa", "aa"},
                                             {"1", "2"},
                                             {"\n", "\n"},
                                             {"'", "s"}});
  vocabulary.tokens.push_back("<|end|>");
  vocabulary.is_control.push_back(true);
  vocabulary.scheme = scheme;
  vocabulary.nfc = nfc;
  return vocabulary;
}

const BpeTokenizer& Tokenizer(unsigned choice) {
  static const std::vector<std::shared_ptr<const BpeTokenizer>> tokenizers = [] {
    std::vector<std::shared_ptr<const BpeTokenizer>> all;
    for (const bool nfc : {false, true}) {
      for (const SplitScheme scheme :
           {SplitScheme::kGpt2, SplitScheme::kSmolLm, SplitScheme::kLlama3, SplitScheme::kQwen2}) {
        all.push_back(BpeTokenizer::Create(Vocabulary(scheme, nfc)));
      }
    }
    return all;
  }();
  return *tokenizers[choice % tokenizers.size()];
}

/// The offset is that of the first character without which the text is well-formed.
void CheckRefusal(std::string_view text, std::size_t offset) {
  QUAIL_CHECK_LT(offset, text.size());
  QUAIL_CHECK(!quail::base::FirstInvalidUtf8(text.substr(0, offset)));
  QUAIL_CHECK(quail::base::FirstInvalidUtf8(text.substr(offset)) == std::size_t{0});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0] % 8;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<TokenId> ids;
  std::size_t unknown = 0;
  if (const auto bad = Tokenizer(choice).Encode(text, ids, &unknown)) {
    QUAIL_CHECK(ids.empty());
    CheckRefusal(text, *bad);
    return 0;
  }
  QUAIL_CHECK_EQ(unknown, std::size_t{0});
  const std::string expected = choice < 4 ? std::string(text) : ToNfc(text);
  QUAIL_CHECK(Tokenizer(choice).Decode(ids) == expected);
  QUAIL_CHECK(std::ranges::count(ids, TokenId(267)) == 0);
  if (choice >= 4) QUAIL_CHECK(ToNfc(expected) == expected);

  std::vector<TokenId> again;
  QUAIL_CHECK(!Tokenizer(choice).Encode(text, again));
  QUAIL_CHECK(again == ids);
  return 0;
}
