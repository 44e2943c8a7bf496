#include "session/arrow_type.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace quail::session {
namespace {

/// In a type's name members' names are in lower case or in quotes.
constexpr std::array<std::string_view, 4> kAsText = {"ENUM(", "BIT", "TIME WITH TIME ZONE",
                                                     "VARIANT"};

/// Bytes of the quoted text or name at the beginning of `text`; a doubled quote makes it two.
std::size_t QuotedSize(std::string_view text) {
  const std::size_t end = text.find(text[0], 1);
  return end == text.npos ? text.size() : end + 1;
}

bool IsOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool BeginsWith(std::string_view text, std::string_view name) {
  if (!text.starts_with(name)) return false;
  return name.ends_with('(') || text.size() == name.size() || !IsOfWord(text[name.size()]);
}

/// Bytes of the values of an ENUM, with the parenthesis behind them.
std::size_t ValuesSize(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && text[size] != ')') {
    size += text[size] == '\'' ? QuotedSize(text.substr(size)) : 1;
  }
  return std::min(size + 1, text.size());
}

}  // namespace

std::string TypeInArrow(std::string_view type) {
  std::string carried;
  bool in_word = false;
  for (std::size_t i = 0; i < type.size();) {
    const std::string_view rest = type.substr(i);
    const auto* const text = std::ranges::find_if(
        kAsText, [&](std::string_view name) { return !in_word && BeginsWith(rest, name); });
    std::size_t size = rest[0] == '"' ? QuotedSize(rest) : 1;
    if (text != kAsText.end()) {
      size = text->size();
      if (text->ends_with('(')) size += ValuesSize(rest.substr(size));
      carried += "VARCHAR";
    } else {
      carried += rest.substr(0, size);
    }
    in_word = IsOfWord(rest[size - 1]);
    i += size;
  }
  return carried;
}

}  // namespace quail::session
