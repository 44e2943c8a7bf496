#pragma once

#include <optional>
#include <string>
#include <vector>

#include "world.h"

namespace quail::test {

/// One statement in two spellings: with AI calls, and with the reference's scalar function in their
/// places.
struct Twin {
  std::string ai;
  std::string plain;
};

/// A random query over a world's tables. `ordered`: its ORDER BY is total, so rows compare in
/// order.
struct RandomQuery {
  std::vector<Twin> before;  ///< statements that it needs; each makes its table or view anew
  Twin sql;
  bool ordered = false;
};

/// REQUIRES: the same dice give the same query.
RandomQuery MakeQuery(const World& world, Dice& dice);

/// A query whose rows come from the rows of one table one by one: `before` + table + `after`.
struct RowQuery {
  std::string before;
  std::string table;
  std::string after;
};
RowQuery MakeRowQuery(const World& world, Dice& dice);

}  // namespace quail::test
