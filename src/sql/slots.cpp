#include "sql/slots.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"
#include "sql/lexer.h"

namespace quail::sql {

namespace {

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The text between `{` at `begin` and its `}`, if that follows without another brace.
std::optional<std::string_view> Inside(std::string_view pattern, std::size_t begin) {
  const std::size_t end = pattern.find_first_of("{}", begin + 1);
  if (end == std::string_view::npos || pattern[end] == '{') return std::nullopt;
  return pattern.substr(begin + 1, end - begin - 1);
}

bool IsNumber(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  return std::all_of(text.begin(), text.end(), IsDigit);
}

/// name or table.name; empty if it is neither.
std::vector<std::string> ReadPath(std::string_view text) {
  std::vector<std::string> path;
  while (path.size() < 2) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view name = text.substr(0, dot);
    const bool good =
        !name.empty() && IsNameStart(name[0]) &&
        std::all_of(name.begin(), name.end(), [](char c) { return IsNameStart(c) || IsDigit(c); });
    if (!good) return {};
    path.emplace_back(name);
    if (dot == text.size()) return path;
    text.remove_prefix(dot + 1);
  }
  return {};
}

bool SamePath(const NamedSlot& a, const NamedSlot& b) {
  return std::equal(a.path.begin(), a.path.end(), b.path.begin(), b.path.end(), SameWord);
}

}  // namespace

SlotList FindSlots(std::string_view pattern) {
  SlotList slots;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{' && pattern[at] != '}') continue;
    if (pattern.substr(at + 1, 1) == pattern.substr(at, 1)) {
      ++at;
      continue;
    }
    if (pattern[at] == '}') continue;
    const auto inside = Inside(pattern, at);
    if (!inside) continue;
    if (IsNumber(*inside)) {
      slots.numbered.push_back(at);
    } else if (auto path = ReadPath(*inside); !path.empty()) {
      slots.named.push_back({at, inside->size() + 2, std::move(path)});
    } else {
      continue;
    }
    at += inside->size() + 1;
  }
  return slots;
}

NumberedTemplate NumberSlots(std::string_view pattern, const std::vector<NamedSlot>& named) {
  NumberedTemplate out;
  std::size_t at = 0;
  for (const NamedSlot& slot : named) {
    out.pattern += pattern.substr(at, slot.begin - at);
    at = slot.begin + slot.size;
    const auto found =
        std::find_if(out.columns.begin(), out.columns.end(),
                     [&slot](const NamedSlot& seen) { return SamePath(seen, slot); });
    out.pattern += fmt::format("{{{}}}", found - out.columns.begin());
    if (found == out.columns.end()) out.columns.push_back(slot);
  }
  out.pattern += pattern.substr(at);
  return out;
}

}  // namespace quail::sql
