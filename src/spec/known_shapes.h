#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"

namespace quail::spec {

/// A published model's shape without its files, for made-up weights.
struct KnownShape {
  ModelSpec spec;
  /// The words that its prompts name, and the ids of their single-token spellings.
  std::string yes_word;
  std::string no_word;
  std::vector<std::int32_t> yes;
  std::vector<std::int32_t> no;
};

std::span<const KnownShape> KnownShapes();
/// nullptr if there is none of that name.
const KnownShape* FindShape(std::string_view name);

}  // namespace quail::spec
