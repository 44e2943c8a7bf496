"""--checkpoint on the command line: what is kept, reused, refused.

    checkpoint_test.py QUAIL [unittest arguments]
"""

import json
import signal
import subprocess
import unittest

import cli_test


class Checkpoints(cli_test.CliTest):
    ROWS = 60000
    RULES = "".join(json.dumps({"contains": [f"never {i}"], "verdict": True}) + "\n" for i in range(100))

    def setUp(self):
        super().setUp()
        # Slow enough to be killed on its way.
        (self.path / "rules.jsonl").write_text(
            self.RULES + '{"contains": ["boom"], "verdict": "error: boom"}\n'
            '{"contains": ["7"], "verdict": true}\n{"contains": ["8"], "margin": -0.25}\n{"verdict": false}\n')
        self.query = (f"SELECT i, AI_FILTER(PROMPT('x {{0}}', 'text ' || CASE i % 1000 WHEN 3 THEN 'boom' || i "
                      f"ELSE i::VARCHAR END)) AS p FROM range({self.ROWS}) r(i) ORDER BY i")

    def run_kept(self, *arguments):
        return self.run_quail("--oracle", "rules.jsonl", "--checkpoint", "kept.bin", *arguments, "-c", self.query)

    def kill_once_it_keeps(self, size):
        process = subprocess.Popen([cli_test.QUAIL, "--oracle", "rules.jsonl", "--checkpoint", "kept.bin", "-c", self.query],
                                   cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            kept = self.path / "kept.bin"
            if kept.exists() and kept.stat().st_size > size:
                process.send_signal(signal.SIGKILL)
                break
        process.wait()

    def test_killed_twice_it_gives_the_same_rows(self):
        plain = self.run_quail("--oracle", "rules.jsonl", "-c", self.query)
        for size in (1000, 700000):
            self.kill_once_it_keeps(size)
        done = self.run_kept("--report", "report.json")
        self.assertEqual(done.stdout, plain.stdout)
        self.assertRegex(done.stderr, r"\d+ verdicts came from the checkpoint")
        calls = json.loads((self.path / "report.json").read_text())["calls"]
        self.assertEqual((calls["distinct"], calls["error"]), (self.ROWS, self.ROWS // 1000))

    def test_a_cut_record_is_dropped_and_failures_are_asked_again(self):
        plain = self.run_kept()
        kept = self.path / "kept.bin"
        self.assertEqual(kept.stat().st_size, 8 + 32 * (self.ROWS - self.ROWS // 1000))
        with open(kept, "r+b") as file:
            file.truncate(kept.stat().st_size - 5)
        done = self.run_kept()
        self.assertEqual(done.stdout, plain.stdout)
        self.assertIn("27 bytes of an unfinished record", done.stderr)
        self.assertIn(f"{self.ROWS - self.ROWS // 1000 - 1} verdicts came", done.stderr)

    def test_a_damaged_record_costs_no_other(self):
        plain = self.run_kept()
        kept = self.path / "kept.bin"
        whole = kept.read_bytes()
        for places, told in (([8 + 32 * 100 + 20], "1 damaged record of the checkpoint was taken out"),
                             ([8 + 32 * 100 + 20, 8 + 32 * 7, len(whole) - 1], "3 damaged records of the checkpoint were")):
            damaged = bytearray(whole)
            for place in places:
                damaged[place] ^= 1
            kept.write_bytes(damaged)
            done = self.run_kept()
            self.assertEqual(done.stdout, plain.stdout)
            self.assertIn(told, done.stderr)
            self.assertNotIn("unfinished", done.stderr)
            self.assertIn(f"{self.ROWS - self.ROWS // 1000 - len(places)} verdicts came", done.stderr)
            again = self.run_kept()
            self.assertNotIn("damaged", again.stderr)
            self.assertIn(f"{self.ROWS - self.ROWS // 1000} verdicts came", again.stderr)
            self.assertEqual((again.stdout, kept.stat().st_size), (plain.stdout, len(whole)))

    def test_another_oracle_takes_nothing_from_it(self):
        self.run_kept()
        rules = self.path / "rules.jsonl"
        rules.write_text(rules.read_text().replace('"7"', '"5"'))
        done = self.run_kept()
        self.assertNotIn("came from the checkpoint", done.stderr)
        self.assertEqual(done.stdout, self.run_quail("--oracle", "rules.jsonl", "-c", self.query).stdout)

    def test_how_a_long_text_is_cut_is_part_of_the_question(self):
        query = "SELECT AI_FILTER(PROMPT('x {0}', 'text 7'), {'on_long': '%s'}) AS p"
        for kept, on_long in enumerate(["error", "head", "tail", "middle"]):
            for reused in (False, True):
                done = self.run_quail("--oracle", "rules.jsonl", "--checkpoint", "kept.bin", "-c", query % on_long)
                self.assertEqual(done.stdout, "p\ntrue\n", done.stderr)
                self.assertEqual("came from the checkpoint" in done.stderr, reused)
            self.assertEqual((self.path / "kept.bin").stat().st_size, 8 + 32 * (kept + 1))

    def test_a_file_of_another_kind_is_refused_and_left_alone(self):
        (self.path / "kept.bin").write_text("my own notes")
        done = self.run_kept()
        self.assertEqual(done.returncode, 1)
        self.assertIn("is no checkpoint", done.stderr)
        self.assertEqual((self.path / "kept.bin").read_text(), "my own notes")


if __name__ == "__main__":
    unittest.main()
