#include "plan/unnamed_structs.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "fmt/format.h"

namespace quail::plan {

namespace {

constexpr std::string_view kStruct = "STRUCT(";
constexpr std::string_view kMap = "MAP(";

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

/// A type of values in a row: T[] or T[3].
struct Sequence {
  std::string_view element;
  std::string_view brackets;
  std::size_t size = 0;  ///< 0: a list
};
std::optional<Sequence> ReadSequence(std::string_view type) {
  if (!type.ends_with(']')) return std::nullopt;
  const std::size_t open = type.rfind('[');
  Sequence out{type.substr(0, open), type.substr(open)};
  std::from_chars(out.brackets.data() + 1, out.brackets.data() + out.brackets.size(), out.size);
  return out;
}

/// Of "STRUCT(" or "MAP(", which has a key and a value; empty where the type is no such one.
std::vector<Member> MembersOf(std::string_view type, std::string_view head = kStruct) {
  std::vector<Member> members;
  if (!type.starts_with(head) || !type.ends_with(')')) return members;
  std::string_view rest = type.substr(head.size(), type.size() - head.size() - 1);
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

std::string WithoutNames(const std::string& value, std::string_view type, std::size_t depth);

std::string EachWithoutNames(const std::string& list, std::string_view element, std::size_t depth) {
  const std::string name = fmt::format("quail_element_{}", depth);
  return fmt::format("list_transform({}, lambda {}: {})", list, name,
                     WithoutNames(name, element, depth + 1));
}

/// No cast makes an array of a list of such structs, and no CASE chooses among arrays.
std::string ArrayWithoutNames(const std::string& value, const Sequence& type, std::size_t depth) {
  std::string list;
  for (std::size_t i = 1; i <= type.size; ++i) {
    list += fmt::format("{}{}", i == 1 ? "" : ", ",
                        WithoutNames(fmt::format("({})[{}]", value, i), type.element, depth));
  }
  return fmt::format("list_value(array_value({}))[CASE WHEN ({}) IS NULL THEN NULL ELSE 1 END]",
                     list, value);
}

std::string MapWithoutNames(const std::string& value, const std::vector<Member>& types,
                            std::size_t depth) {
  const auto part = [&](const char* function, std::string_view type) {
    return EachWithoutNames(fmt::format("{}({})", function, value), type, depth);
  };
  return fmt::format("CASE WHEN ({}) IS NULL THEN NULL ELSE map({}, {}) END", value,
                     part("map_keys", types.at(0).type), part("map_values", types.at(1).type));
}

std::string WithoutNames(const std::string& value, std::string_view type, std::size_t depth) {
  if (!HasUnnamedStruct(type)) return value;
  if (const auto sequence = ReadSequence(type)) {
    return sequence->size == 0 ? EachWithoutNames(value, sequence->element, depth)
                               : ArrayWithoutNames(value, *sequence, depth);
  }
  if (const auto map = MembersOf(type, kMap); !map.empty()) {
    return MapWithoutNames(value, map, depth);
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
  if (const auto sequence = ReadSequence(type)) return HasUnnamedStruct(sequence->element);
  const auto holds = [](const Member& member) { return HasUnnamedStruct(member.type); };
  const std::vector<Member> map = MembersOf(type, kMap);
  if (!map.empty()) return std::any_of(map.begin(), map.end(), holds);
  const std::vector<Member> members = MembersOf(type);
  return std::any_of(members.begin(), members.end(), [&holds](const Member& member) {
    return member.name.empty() || holds(member);
  });
}

std::string NamedType(std::string_view type) {
  if (!HasUnnamedStruct(type)) return std::string(type);
  if (const auto sequence = ReadSequence(type)) {
    return fmt::format("{}{}", NamedType(sequence->element), sequence->brackets);
  }
  if (const auto map = MembersOf(type, kMap); !map.empty()) {
    return fmt::format("{}{}, {})", kMap, NamedType(map.at(0).type), NamedType(map.at(1).type));
  }
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
