#include "plan/source_text.h"

#include <algorithm>

namespace quail::plan {

namespace {

std::optional<std::size_t> FirstLocation(const sql::Json& node) {
  if (const auto location = sql::LocationOf(node)) return location;
  std::optional<std::size_t> first;
  if (!node.is_structured()) return first;
  for (const sql::Json& child : node) {
    const auto location = FirstLocation(child);
    if (location) first = std::min(first.value_or(*location), *location);
  }
  return first;
}

}  // namespace

std::optional<TextPosition> SourceText::PlaceOf(const sql::Json& node) const {
  const auto location = FirstLocation(node);
  if (!location || *location > statement_.query.size()) return std::nullopt;
  return statement_.Locate(script_, *location);
}

Error SourceText::Moved(const Error& error) const {
  if (!error.position() || error.position()->offset > statement_.query.size()) {
    return {error.code(), error.what()};
  }
  return {error.code(), error.what(), statement_.Locate(script_, error.position()->offset)};
}

}  // namespace quail::plan
