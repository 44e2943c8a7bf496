"""Which trainings a plan begins first and which becomes the judge: judge_choice_test.py [unittest arguments]"""

import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/judge"))
NEEDED = ("numpy", "safetensors", "tokenizers", "xxhash")


@unittest.skipUnless(all(map(importlib.util.find_spec, NEEDED)), "needs what ./dev judge-eval installs")
class ChoiceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        for part in ("sources", "data", "runs", "pack"):
            (self.work / part).mkdir()
        for name in ("data/train.jsonl", "pack/weights-0.bin", "pack/rows.bin", "runs/raw.npz"):
            (self.work / name).touch()
        for split in ("word", "kind", "dom"):
            lines = [json.dumps({"truth": truth}) + "\n" for truth in (True, True, False, False)]
            (self.work / f"data/{split}.jsonl").write_text("".join(lines))

    def save(self, name, *margins):
        """Margins of the four rows of each split: word, kind, dom."""
        import numpy as np

        np.savez(self.work / f"runs/{name}.npz", margins=np.concatenate(margins))

    def table_arguments(self, *options):
        import train

        with mock.patch.object(train, "run") as run, mock.patch.object(sys, "argv", ["train.py", str(self.work), *options]):
            train.main()
        script, *arguments = run.call_args.args
        self.assertEqual(script, "judge_table.py")
        return [str(argument) for argument in arguments]

    def test_the_seed_that_is_best_on_unseen_kinds_and_never_the_mean(self):
        right, half, wrong = [2, 1, -1, -2], [2, -1, 1, -2], [-2, -1, 1, 2]
        self.save("s0", right, wrong, right)
        self.save("s1", wrong, half, wrong)
        self.save("mean", right, right, right)
        arguments = self.table_arguments("--seeds", "0", "1")
        self.assertEqual([Path(path).name for path in arguments[1:4]], ["s1.npz", "s0.npz", "mean.npz"])
        self.assertEqual(Path(arguments[arguments.index("--adapter") + 1]).name, "s1.safetensors")

    def test_one_seed_has_no_mean(self):
        self.save("s0", [1, 1, -1, -1], [1, 1, -1, -1], [1, 1, -1, -1])
        self.assertNotIn("mean.npz", [Path(path).name for path in self.table_arguments()])


@unittest.skipUnless(all(map(importlib.util.find_spec, NEEDED)), "needs what ./dev judge-eval installs")
class OrderTest(unittest.TestCase):
    def test_both_seeds_begin_as_soon_as_the_teachers_have_ended(self):
        with mock.patch.dict(sys.modules, judge_model=mock.Mock()):  # which needs PyTorch, unlike the order
            import judge_plan

        class OneAtATime(judge_plan.Scheduler):
            """Runs begin at once, and the oldest of them ends with every look."""

            def start(self, run, slot):
                started.append(run.name)
                self.running[run.name] = slot

            def reap(self):
                for name in list(self.running)[:1]:
                    self.slots.append(self.running.pop(name))
                    (self.work / f"{name}.npz").touch()

        started = []
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(judge_plan, "PAUSE", 0):
            arguments = SimpleNamespace(gpus=[0], beside=2, seconds=1e6)
            OneAtATime(Path(folder), Path(folder), arguments).run(judge_plan.recipe_runs("", [0, 1]))
        self.assertEqual(started[:4], ["fold0", "fold1", "s0", "s1"])
        self.assertEqual(set(started[4:]), {"mean", "shipped"})


if __name__ == "__main__":
    unittest.main()
