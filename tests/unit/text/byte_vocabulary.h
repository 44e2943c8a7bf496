#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "text/bpe_tokenizer.h"

namespace quail::text {

/// Every byte is the token of its value; merged pairs follow from id 256 on, in order.
inline BpeVocabulary ByteVocabulary(
    std::initializer_list<std::pair<std::string_view, std::string_view>> merges = {}) {
  BpeVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  const auto id_of = [&](std::string_view token) {
    for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      if (vocabulary.tokens[i] == token) return TokenId(static_cast<std::int32_t>(i));
    }
    throw std::logic_error("no such token");
  };
  for (const auto& [left, right] : merges) {
    vocabulary.merges.emplace_back(id_of(left), id_of(right));
    vocabulary.tokens.push_back(std::string(left) + std::string(right));
  }
  vocabulary.is_control.assign(vocabulary.tokens.size(), false);
  return vocabulary;
}

}  // namespace quail::text
