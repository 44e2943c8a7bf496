// Encodes length-prefixed texts from standard input with the tokenizer.json named by the first
// argument, for comparison with other implementations. In: u32 size, bytes; out: i32 count, count x
// i32 ids, or i32 -1 - offset of the bad byte. Little-endian.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "text/bpe_tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

using quail::text::BpeTokenizer;
using quail::text::TokenId;

template <typename T>
void Write(const T* values, std::size_t count) {
  if (count > 0) std::fwrite(values, sizeof(T), count, stdout);  // an empty vector has no data
}

void EncodeAll(const BpeTokenizer& tokenizer) {
  std::uint32_t size = 0;
  std::string text;
  std::vector<TokenId> ids;
  while (std::fread(&size, sizeof(size), 1, stdin) == 1) {
    text.resize(size);
    if (std::fread(text.data(), 1, size, stdin) != size) throw std::runtime_error("input is cut");
    ids.clear();
    const auto bad = tokenizer.Encode(text, ids);
    const auto head =
        bad ? -1 - static_cast<std::int32_t>(*bad) : static_cast<std::int32_t>(ids.size());
    Write(&head, 1);
    if (!bad) Write(ids.data(), ids.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: encode_tool TOKENIZER.json < texts > ids\n");
    return 2;
  }
  try {
    EncodeAll(*BpeTokenizer::Create(quail::text::LoadTokenizerJson(argv[1])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encode_tool: %s\n", error.what());
    return 1;
  }
  return 0;
}
