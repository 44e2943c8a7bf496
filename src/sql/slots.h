#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quail::sql {

/// `{name}` or `{table.name}` in a template.
struct NamedSlot {
  std::size_t begin = 0;  ///< of the brace, bytes in the template
  std::size_t size = 0;   ///< braces included
  std::vector<std::string> path;
};

/// What the braces of a template are; doubled ones and plain text are left out.
struct SlotList {
  std::vector<NamedSlot> named;
  std::vector<std::size_t> numbered;  ///< where a `{n}` begins
};
SlotList FindSlots(std::string_view pattern);

/// A template with its named slots numbered `{0}`.. in order of first appearance (names compare
/// without case).
struct NumberedTemplate {
  std::string pattern;
  std::vector<NamedSlot> columns;  ///< the first appearance of each
};
NumberedTemplate NumberSlots(std::string_view pattern, const std::vector<NamedSlot>& named);

}  // namespace quail::sql
