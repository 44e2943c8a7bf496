#include "relational/quote.h"

#include <algorithm>

namespace quail::relational {
namespace {

std::string Quote(std::string_view text, char quote) {
  std::string quoted;
  quoted.reserve(text.size() + 2);
  quoted += quote;
  for (const char c : text) {
    if (c == quote) quoted += quote;
    quoted += c;
  }
  quoted += quote;
  return quoted;
}

bool IsPlain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

std::string QuoteText(std::string_view text) { return Quote(text, '\''); }

std::string QuoteName(std::string_view name) { return Quote(name, '"'); }

std::string QuoteNameIfNeeded(std::string_view name) {
  const bool plain = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                     std::all_of(name.begin(), name.end(), IsPlain);
  return plain ? std::string(name) : QuoteName(name);
}

}  // namespace quail::relational
