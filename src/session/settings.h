#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optimizer/optimizer.h"

namespace quail::session {

/// The settings of sql.md, as SET changes them.
struct Settings {
  bool fail_on_error = false;  ///< quail_on_error: 'null' or 'fail'
  optimizer::AnchorRule anchor = optimizer::AnchorRule::kData;  ///< quail_anchor
  std::uint64_t max_pairs = 100'000'000;                        ///< quail_max_pairs
  std::optional<std::uint64_t> max_tokens;                      ///< quail_max_tokens
  std::optional<double> max_seconds;                            ///< quail_max_seconds

  /// Sets one by its name in lower case. Throws Error{kUsage} for an unknown name (listing those
  /// known) or a value that it cannot have, Error{kUnsupported} for one that is known and not
  /// implemented. 'none' takes a budget away.
  void Set(std::string_view name, std::string_view value);
  /// Sets one to its value in `before`. Throws Error{kUsage} for an unknown name.
  void Reset(std::string_view name, const Settings& before);
  /// Names and values, as Set takes them.
  std::vector<std::pair<std::string, std::string>> List() const;
};

}  // namespace quail::session
