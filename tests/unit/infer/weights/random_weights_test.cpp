#include "infer/weights/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test_paths.h"

namespace quail::infer {
namespace {

spec::ModelSpec SmallSpec() {
  spec::ModelSpec spec;
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.ffn = 96;
  spec.vocabulary = 100;
  return spec;
}

TEST(RandomWeights, FollowTheDocumentedFormula) {
  const auto tensor = CreateRandomWeights(SmallSpec(), 0)->Find("model.norm.weight");
  ASSERT_NE(tensor, nullptr);
  float value = 0;
  tensor->ReadRows(0, 1, std::vector<float>(64).data());
  std::vector<float> row(64);
  tensor->ReadRows(0, 1, row.data());
  std::uint64_t key = 0xCBF29CE484222325U;
  for (const char c : std::string("model.norm.weight")) {
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  std::uint64_t z = key + 8 * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  value = 1.0F + 0.25F * (static_cast<float>(z >> 40) / 8388608.0F - 1.0F);
  EXPECT_EQ(row[7], value);
}

/// Values that tools/random_weights.py gives.
TEST(RandomWeights, AreThoseOfThePythonGenerator) {
  std::ifstream file(QUAIL_SOURCE_DIR "/tests/data/random_weights.json");
  const auto golden = nlohmann::json::parse(file);
  spec::ModelSpec spec = SmallSpec();
  spec.qk_norm = true;
  for (const auto& tensor : golden.at("tensors")) {
    const std::string name = tensor.at("name");
    const auto found = CreateRandomWeights(spec, tensor.at("seed"))->Find(name);
    ASSERT_NE(found, nullptr) << name;
    ASSERT_EQ(found->rows(), tensor.at("rows")) << name;
    ASSERT_EQ(found->columns(), tensor.at("columns")) << name;
    std::vector<float> values(static_cast<std::size_t>(found->rows() * found->columns()));
    found->ReadRows(0, found->rows(), values.data());
    for (const auto& [index, value] : tensor.at("values").items()) {
      EXPECT_EQ(values[std::stoul(index)], std::strtof(value.get<std::string>().c_str(), nullptr))
          << name << " " << index;
    }
  }
}

TEST(RandomWeights, RowsAreTheSameHoweverTheyAreRead) {
  const auto tensor =
      CreateRandomWeights(SmallSpec(), 5)->Find("model.layers.1.mlp.up_proj.weight");
  std::vector<float> all(96 * 64);
  tensor->ReadRows(0, 96, all.data());
  std::vector<float> one(64);
  tensor->ReadRows(37, 38, one.data());
  EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 37 * 64));
  double squares = 0;
  for (const float value : all) squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(squares / static_cast<double>(all.size()), 1.0 / 64, 0.001);
}

TEST(RandomWeights, HaveTheTensorsOfTheSpecOnly) {
  spec::ModelSpec spec = SmallSpec();
  EXPECT_NE(CreateRandomWeights(spec, 1)->Find("lm_head.weight"), nullptr);
  EXPECT_EQ(CreateRandomWeights(spec, 1)->Find("model.layers.2.mlp.up_proj.weight"), nullptr);
  EXPECT_EQ(CreateRandomWeights(spec, 1)->Find("model.layers.0.self_attn.q_norm.weight"), nullptr);
  spec.tied_head = true;
  EXPECT_EQ(CreateRandomWeights(spec, 1)->Find("lm_head.weight"), nullptr);
}

}  // namespace
}  // namespace quail::infer
