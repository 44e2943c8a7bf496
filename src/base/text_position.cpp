#include "base/text_position.h"

#include <fmt/format.h>

#include <algorithm>

namespace quail::base {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string_view LineAround(std::string_view text, std::size_t offset) {
  const std::size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  std::size_t end = std::min(text.find('\n', offset), text.size());
  if (end > begin && text[end - 1] == '\r') --end;
  return text.substr(begin, end - begin);
}

/// White space as wide as `text`, whose tabs stay tabs.
std::string BlankAs(std::string_view text) {
  std::string blank;
  for (const char c : text) {
    if (!IsContinuation(c)) blank += c == '\t' ? '\t' : ' ';
  }
  return blank;
}

}  // namespace

TextPosition Locate(std::string_view text, std::size_t offset) {
  TextPosition position;
  position.offset = std::min(offset, text.size());
  for (std::size_t i = 0; i < position.offset; ++i) {
    if (text[i] == '\n') {
      ++position.line;
      position.column = 1;
    } else if (!IsContinuation(text[i])) {
      ++position.column;
    }
  }
  return position;
}

std::string Describe(const Error& error, std::string_view text) {
  std::string message = fmt::format("error: {}", error.what());
  if (!error.position()) return message;
  const TextPosition& position = *error.position();
  const std::size_t offset = std::min(position.offset, text.size());
  const std::string_view line = LineAround(text, offset);
  const std::size_t before = offset - static_cast<std::size_t>(line.data() - text.data());
  message += fmt::format("\nline {}, column {}\n{}\n{}^", position.line, position.column, line,
                         BlankAs(line.substr(0, before)));
  return message;
}

}  // namespace quail::base
