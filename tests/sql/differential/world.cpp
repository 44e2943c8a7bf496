#include "world.h"

#include <fmt/format.h>

namespace quail::test {
namespace {

const std::vector<std::string> kWords = {"red", "blue", "red hat", "NULL", "", "it''s", "{0}"};

std::string Unquoted(const std::string& word) {
  return word == "it''s" ? std::string("it's") : word;
}

std::string TextOrNull(Dice& dice) {
  return dice.OneIn(5) ? "NULL" : fmt::format("'{}'", dice.Pick(kWords));
}

std::string NumberOrNull(Dice& dice, std::size_t below) {
  return dice.OneIn(6) ? "NULL" : std::to_string(dice.Below(below));
}

std::string Verdict(Dice& dice) {
  constexpr std::size_t kSides = 10;
  switch (dice.Below(kSides)) {
    case 0:
      return R"("verdict": null)";
    case 1:
      return R"("verdict": "error: planted")";
    case 2:
      return R"("margin": 0.25)";
    case 3:
      return R"("margin": -2)";
    default:
      return dice.OneIn(2) ? R"("verdict": true)" : R"("verdict": false)";
  }
}

}  // namespace

const std::vector<std::string>& Templates(std::size_t arguments) {
  static const std::vector<std::vector<std::string>> kTemplates = {
      {"good? {0}", "{0} warm?", "new"}, {"{0} has {1}", "{1} before {0}"}, {"{0} {1} {2}"}};
  return kTemplates.at(arguments - 1);
}

World World::Random(Dice& dice) {
  World world;
  for (std::size_t t = 0; t < 4; ++t) {
    const std::string name = fmt::format("t{}", t);
    world.tables.push_back(name);
    world.setup.push_back(fmt::format(
        "CREATE TABLE {} (id INTEGER, k INTEGER, n INTEGER, x VARCHAR, y VARCHAR)", name));
    const std::size_t rows = dice.OneIn(8) ? 0 : 1 + dice.Below(7);
    std::string values;
    for (std::size_t row = 0; row < rows; ++row) {
      values +=
          fmt::format("{}({}, {}, {}, {}, {})", row == 0 ? "" : ", ", row, NumberOrNull(dice, 3),
                      NumberOrNull(dice, 5), TextOrNull(dice), TextOrNull(dice));
    }
    if (rows > 0) world.setup.push_back(fmt::format("INSERT INTO {} VALUES {}", name, values));
  }
  for (const std::string& word : kWords) {
    for (const std::string& pattern : Templates(1)) {
      if (dice.OneIn(2)) continue;
      world.oracle += fmt::format("{{\"template\": \"{}\", \"args\": [\"{}\"], {}}}\n", pattern,
                                  Unquoted(word), Verdict(dice));
    }
    for (const std::string& other : kWords) {
      for (const std::string& pattern : Templates(2)) {
        if (dice.OneIn(2)) continue;
        world.oracle += fmt::format("{{\"template\": \"{}\", \"args\": [\"{}\", \"{}\"], {}}}\n",
                                    pattern, Unquoted(word), Unquoted(other), Verdict(dice));
      }
    }
  }
  world.oracle += R"({"contains": ["re"], "verdict": true})"
                  "\n"
                  R"({"contains": ["1"], "margin": 3})"
                  "\n"
                  R"({"contains": ["2"], "verdict": null})"
                  "\n"
                  R"({"verdict": false})"
                  "\n";
  return world;
}

}  // namespace quail::test
