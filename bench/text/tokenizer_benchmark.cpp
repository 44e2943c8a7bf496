// Tokenizer throughput on one core, in MB/s of text.
//
// usage: tokenizer_benchmark TOKENIZER.json TEXTS
//   TEXTS: a file of texts, a NUL byte after each. `cold` makes a tokenizer with empty caches for
//   each run, `warm` encodes again with the same one, `create` is the time to read the file. Best
//   of several runs, by the thread's CPU time.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "text/bpe_tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

using quail::text::BpeTokenizer;
using quail::text::TokenId;

constexpr int kRuns = 7;

struct Corpus {
  std::vector<std::string> texts;
  double megabytes = 0;
};

Corpus ReadCorpus(const char* path) {
  Corpus corpus;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line, '\0');) {
    corpus.megabytes += static_cast<double>(line.size()) * 1e-6;
    corpus.texts.push_back(std::move(line));
  }
  if (corpus.texts.empty()) throw std::runtime_error(std::string("no texts in ") + path);
  return corpus;
}

/// CPU seconds of this thread so far.
double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Seconds for all texts; `tokens` receives their number.
double EncodeSeconds(const BpeTokenizer& tokenizer, const Corpus& corpus, std::size_t& tokens) {
  const double start = CpuSeconds();
  std::vector<TokenId> ids;
  tokens = 0;
  for (const std::string& text : corpus.texts) {
    ids.clear();
    if (tokenizer.Encode(text, ids)) throw std::runtime_error("a text is not UTF-8");
    tokens += ids.size();
  }
  return CpuSeconds() - start;
}

void Measure(const char* vocabulary_path, const Corpus& corpus) {
  double create = 1e9;
  double cold = 1e9;
  double warm = 1e9;
  std::size_t tokens = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double start = CpuSeconds();
    const auto tokenizer = BpeTokenizer::Create(quail::text::LoadTokenizerJson(vocabulary_path));
    create = std::min(create, CpuSeconds() - start);
    cold = std::min(cold, EncodeSeconds(*tokenizer, corpus, tokens));
    warm = std::min(warm, EncodeSeconds(*tokenizer, corpus, tokens));
  }
  std::printf("%zu texts, %.2f MB, %zu tokens\n", corpus.texts.size(), corpus.megabytes, tokens);
  std::printf("create %6.0f ms\ncold   %6.1f MB/s\nwarm   %6.1f MB/s\n", create * 1e3,
              corpus.megabytes / cold, corpus.megabytes / warm);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenizer_benchmark TOKENIZER.json TEXTS\n");
    return 2;
  }
  try {
    Measure(argv[1], ReadCorpus(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer_benchmark: %s\n", error.what());
    return 1;
  }
  return 0;
}
