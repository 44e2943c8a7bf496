#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "model_fixture.h"

namespace quail::parity {

using Tokens = std::vector<std::int32_t>;

inline constexpr auto kArena = infer::KeySpan::Place::kArena;
inline constexpr auto kChunk = infer::KeySpan::Place::kChunk;

inline Tokens Join(std::initializer_list<Tokens> parts) {
  Tokens all;
  for (const Tokens& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// What a model answered at the ends of paths that share their beginnings, row i for path i.
struct PathAnswers {
  std::vector<Tokens> paths;
  LoadedModel::Result result;
};

/// root -> a (in the arena, in two pieces) -> b (in this chunk) -> c, d; e continues a alone.
inline PathAnswers AnswerSplitPaths(LoadedModel& model) {
  const Tokens a1 = MakeTokens(37, 1), a2 = MakeTokens(50, 2), b = MakeTokens(41, 3);
  const Tokens c = MakeTokens(5, 4), d = MakeTokens(66, 5), e = MakeTokens(9, 6);
  BatchBuilder anchor;
  anchor.Add(a1, {}, {.first_slot = 7, .answer = false});
  anchor.Add(a2, {{0, 37, kChunk}}, {.first_position = 37, .first_slot = 900, .answer = false});
  model.Run(anchor.batch());

  const infer::KeySpan s1{7, 37, kArena}, s2{900, 50, kArena};
  BatchBuilder builder;
  const std::int32_t b_row = builder.Add(b, {s1, s2}, {.first_position = 87, .answer = false});
  const infer::KeySpan s3{b_row, 41, kChunk};
  builder.Add(c, {s1, s2, s3}, {.first_position = 128});
  builder.Add(d, {s1, s2, s3}, {.first_position = 128});
  builder.Add(e, {s1, s2}, {.first_position = 87});
  return {{Join({a1, a2, b, c}), Join({a1, a2, b, d}), Join({a1, a2, e})},
          model.Run(builder.batch())};
}

/// One anchor of 200 tokens in the arena, and partners of 1 to 17.
inline PathAnswers AnswerPartners(LoadedModel& model, std::uint32_t partners) {
  const Tokens anchor = MakeTokens(200, 1);
  BatchBuilder first;
  first.Add(anchor, {}, {.first_slot = 0, .answer = false});
  model.Run(first.batch());
  BatchBuilder builder;
  PathAnswers answers;
  for (std::uint32_t i = 0; i < partners; ++i) {
    const Tokens partner = MakeTokens(1 + i % 17, 50 + i);
    builder.Add(partner, {{0, 200, kArena}}, {.first_position = 200});
    answers.paths.push_back(Join({anchor, partner}));
  }
  answers.result = model.Run(builder.batch());
  return answers;
}

}  // namespace quail::parity
