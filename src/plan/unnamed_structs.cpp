#include "plan/unnamed_structs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "fmt/format.h"

namespace quail::plan {

namespace {

constexpr std::string_view kStruct = "STRUCT(";
constexpr std::string_view kList = "[]";

/// A member of a struct's type.
struct Member {
  std::string_view name;  ///< as it is written, empty where it has none
  std::string_view type;
};

/// Calls at(i) for each character outside of quotes and brackets until it says so; where it did.
std::size_t FindAtTop(std::string_view text, const std::function<bool(std::size_t)>& at) {
  std::size_t depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (depth == 0 && at(i)) return i;
    if (c == '"' || c == '\'') quote = c;
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
  return text.npos;
}

/// The engine names all members or none. Types alone have no blank, but for those of time zones.
Member ReadMember(std::string_view text) {
  const std::size_t blank = FindAtTop(text, [&](std::size_t i) { return text[i] == ' '; });
  const bool of_zone = text == "TIME WITH TIME ZONE" || text == "TIMESTAMP WITH TIME ZONE";
  if (blank == text.npos || of_zone) return {"", text};
  return {text.substr(0, blank), text.substr(blank + 1)};
}

bool IsList(std::string_view type) { return type.ends_with(kList); }
std::string_view ElementOf(std::string_view type) {
  return type.substr(0, type.size() - kList.size());
}

/// Empty where the type is no struct.
std::vector<Member> MembersOf(std::string_view type) {
  std::vector<Member> members;
  if (!type.starts_with(kStruct) || !type.ends_with(')')) return members;
  std::string_view rest = type.substr(kStruct.size(), type.size() - kStruct.size() - 1);
  while (!rest.empty()) {
    const std::size_t comma = FindAtTop(rest, [&](std::size_t i) { return rest[i] == ','; });
    members.push_back(ReadMember(rest.substr(0, comma)));
    rest = comma == rest.npos ? "" : rest.substr(std::min(comma + 2, rest.size()));
  }
  return members;
}

std::string NameOf(const Member& member, std::size_t index) {
  return member.name.empty() ? fmt::format("v{}", index + 1) : std::string(member.name);
}

std::string WithoutNames(const std::string& value, std::string_view type, std::size_t depth) {
  if (!HasUnnamedStruct(type)) return value;
  if (IsList(type)) {
    const std::string element = fmt::format("quail_element_{}", depth);
    return fmt::format("list_transform({}, lambda {}: {})", value, element,
                       WithoutNames(element, ElementOf(type), depth + 1));
  }
  std::string list;
  std::size_t index = 0;
  bool named = false;
  for (const Member& member : MembersOf(type)) {
    const std::string name = NameOf(member, index);
    const std::string part = fmt::format("({}).{}", value, name);
    named = !member.name.empty();
    list += fmt::format("{}{}{}", index++ == 0 ? "" : ", ", named ? name + " := " : "",
                        WithoutNames(part, member.type, depth));
  }
  return fmt::format("CASE WHEN ({}) IS NULL THEN NULL ELSE {}({}) END", value,
                     named ? "struct_pack" : "row", list);
}

}  // namespace

bool HasUnnamedStruct(std::string_view type) {
  if (IsList(type)) return HasUnnamedStruct(ElementOf(type));
  const std::vector<Member> members = MembersOf(type);
  return std::any_of(members.begin(), members.end(), [](const Member& member) {
    return member.name.empty() || HasUnnamedStruct(member.type);
  });
}

std::string NamedType(std::string_view type) {
  if (!HasUnnamedStruct(type)) return std::string(type);
  if (IsList(type)) return NamedType(ElementOf(type)) + std::string(kList);
  std::string list;
  std::size_t index = 0;
  for (const Member& member : MembersOf(type)) {
    list += fmt::format("{}{} {}", index == 0 ? "" : ", ", NameOf(member, index),
                        NamedType(member.type));
    ++index;
  }
  return fmt::format("{}{})", kStruct, list);
}

std::string WithoutNames(const std::string& value, std::string_view type) {
  return WithoutNames(value, type, 0);
}

}  // namespace quail::plan
