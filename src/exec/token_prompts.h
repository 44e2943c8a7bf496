#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quail/config.h"
#include "text/prompt.h"

namespace quail::exec {

/// Prompts whose constant pieces are given as token ids, by template. Layouts point to the ids kept
/// here.
class TokenPrompts {
 public:
  /// Throws Error{kUsage} for a template with other than one or two slots, or given twice.
  explicit TokenPrompts(std::span<const TokenPrompt> prompts);
  TokenPrompts(const TokenPrompts&) = delete;
  TokenPrompts& operator=(const TokenPrompts&) = delete;

  struct Pieces {
    std::vector<base::TokenId> head;
    std::vector<base::TokenId> tail;
    std::vector<base::TokenId> question;
    std::vector<base::TokenId> partner_head;
    std::vector<base::TokenId> partner_tail;
  };
  /// nullptr: the template's pieces are text.
  const Pieces* Find(std::string_view prompt) const;

 private:
  std::map<std::string, Pieces, std::less<>> prompts_;
};

/// As text::LayOutFilter and LayOutJoin, of pieces that outlive the layout.
text::FilterPrompt LayOutFilter(const TokenPrompts::Pieces& pieces);
/// REQUIRES: two arguments, one on each side.
text::JoinPrompt LayOutJoin(const TokenPrompts::Pieces& pieces, const std::vector<bool>& is_anchor);

}  // namespace quail::exec
