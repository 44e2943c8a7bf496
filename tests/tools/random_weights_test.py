"""tools/random_weights.py against tests/data/random_weights.json, which the C++ generator is held to as well."""

import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import random_weights  # noqa: E402

GOLDEN = json.loads((ROOT / "tests/data/random_weights.json").read_text())


class RandomWeightsTest(unittest.TestCase):
    def test_values(self):
        for case in GOLDEN["tensors"]:
            with self.subTest(case["name"]):
                rows, columns, values = random_weights.tensor(
                    GOLDEN["spec"], case["name"], case["seed"])
                self.assertEqual([rows, columns], [case["rows"], case["columns"]])
                for index, value in case["values"].items():
                    self.assertEqual(values[int(index)].hex(), float.fromhex(value).hex())

    def test_unknown_tensors(self):
        spec = dict(GOLDEN["spec"], tied_head=True)
        for name in ("lm_head.weight", "model.layers.2.mlp.up_proj.weight",
                     "model.layers.0.self_attn.q_proj.bias"):
            self.assertIsNone(random_weights.shape_of(spec, name))


if __name__ == "__main__":
    unittest.main()
