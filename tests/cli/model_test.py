"""The embedded model through the command line: what a verdict costs, long texts, files that are none.

    model_test.py QUAIL [unittest arguments]

Exit code 77, skipped, where the embedded model has not been fetched.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

QUAIL = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path("quail")
SKIPPED = 77
QUESTION = "AI_FILTER(PROMPT('Is this about the weather? {0}', body))"
PAIR = "AI_FILTER(PROMPT('The person in {0} likes {1}.', l.body, r.body))"

NOT_SANITIZED = unittest.skipIf("QUAIL_TEST_SANITIZED" in os.environ, "texts as long as the context take many minutes")


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def write_rows(self, name, bodies):
        with open(self.path / name, "w", encoding="utf-8") as file:
            for i, body in enumerate(bodies):
                file.write(json.dumps({"id": i, "body": body}) + "\n")

    def run_quail(self, sql, *arguments):
        threads = [] if "--threads" in arguments else ["--threads", "2"]
        return subprocess.run([QUAIL, *threads, "--format", "jsonl", "--report", "report.json", *arguments,
                               "-c", sql], cwd=self.path, text=True, capture_output=True, timeout=300)

    def rows(self, sql, *arguments):
        done = self.run_quail(sql, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def report(self):
        return json.loads((self.path / "report.json").read_text())

    def test_a_join_computes_the_minimum(self):
        self.write_rows("l.jsonl", [f"{name} enjoys long walks, {name} keeps two dogs." for name in ("Ana", "Ben", "Cy")])
        self.write_rows("r.jsonl", ["rain coats", "a dog lead", "chess", "an opera"])
        rows = self.rows(f"SELECT count(*) AS n FROM 'l.jsonl' l, 'r.jsonl' r WHERE {PAIR} IS NOT NULL")
        self.assertEqual(rows, [{"n": 12}])
        report = self.report()
        self.assertEqual(report["calls"]["distinct"], 12)
        tokens = report["tokens"]
        self.assertEqual(tokens["fresh"], tokens["minimum"])
        self.assertEqual(tokens["regret"], 0)
        self.assertGreater(tokens["requested"], 2 * tokens["fresh"])

    def test_equal_texts_are_computed_once(self):
        self.write_rows("t.jsonl", ["It rains."] * 50 + ["He sings."])
        rows = self.rows(f"SELECT id, {QUESTION} AS p FROM 't.jsonl' ORDER BY id")
        self.assertEqual(len(rows), 51)
        self.assertEqual(len({row["p"] for row in rows[:50]}), 1)
        report = self.report()
        self.assertEqual((report["calls"]["asked"], report["calls"]["distinct"]), (51, 2))
        self.assertEqual(report["tokens"]["fresh"], report["tokens"]["minimum"])

    def test_the_report_says_what_ran(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        self.rows(f"SELECT id FROM 't.jsonl' WHERE {QUESTION}", "--backend", "cpu")
        report = self.report()
        self.assertEqual(report["device"]["backend"], "cpu")
        self.assertEqual(report["device"]["threads"], 2)
        self.assertGreater(report["model"]["parameters"], 134_000_000)
        self.assertGreater(report["rates"]["fresh_tokens_per_s"], 0)
        self.assertGreater(report["peak_memory_bytes"]["host"], 100_000_000)
        self.assertEqual(report["chunks"]["count"], 1)
        self.assertEqual(report["chunks"]["max_tokens"], report["tokens"]["fresh"])

    def test_a_bound_needs_a_calibration(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        sql = f"EXPLAIN ANALYZE SELECT id FROM 't.jsonl' WHERE {QUESTION}"
        (self.path / "quail").mkdir()
        with patch.dict(os.environ, XDG_CACHE_HOME=str(self.path)):
            text = self.run_quail(sql).stdout
            self.assertIn("speed of light not calibrated", text)
            self.assertNotIn("% of light", text)
            self.assertNotIn("roofline", json.dumps(self.report()))
            (self.path / "quail" / "device.json").write_text(json.dumps({"name": "a CPU", "f32_rate": 1e12, "bandwidth": 1e11}))
            text = self.run_quail(sql).stdout
            self.assertIn("% of light", text)
            self.assertGreater(self.report()["roofline"]["seconds"], 0)
            self.assertGreater(self.report()["steps"][0]["roofline_seconds"], 0)

    def test_a_calibration_that_the_run_refutes_is_no_bound(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        (self.path / "quail").mkdir()
        (self.path / "quail" / "device.json").write_text(json.dumps({"name": "a busy CPU", "f32_rate": 1e6, "bandwidth": 1e6}))
        with patch.dict(os.environ, XDG_CACHE_HOME=str(self.path)):
            done = self.run_quail(f"EXPLAIN ANALYZE SELECT id FROM 't.jsonl' WHERE {QUESTION}")
        self.assertIn("speed of light none: the device's rates are too low", done.stdout)
        self.assertNotIn("% of light", done.stdout)
        self.assertNotIn('"roofline', json.dumps(self.report()))
        self.assertRegex(done.stderr, r"notice: the model took \S+ s for what needs \S+ s at the rates of a busy CPU")

    def test_a_broken_head_is_told_of_with_file_and_reason(self):
        found = re.search(r"\S+\.gguf", subprocess.run([QUAIL, "models"], capture_output=True, text=True).stdout)
        shutil.copy(found.group(), self.path / "m.gguf")
        with open(self.path / "m.gguf", "r+b") as file:
            for at, value in ((24, 255), (57, 255), (66, 27), (69, 255)):
                file.seek(at)
                kept = file.read(1)
                file.seek(at)
                file.write(bytes([value]))
                file.flush()
                done = self.run_quail(f"EXPLAIN SELECT {QUESTION} FROM (SELECT 'x' AS body)", "-m", "m.gguf", "-q")
                self.assertEqual(done.returncode, 3)
                self.assertRegex(done.stderr, r"^error: 'm.gguf': [^\x00-\x1f\x7f]{10,}\n$")
                file.seek(at)
                file.write(kept)

    def test_rounded_scales_are_refused_where_nothing_is_scaled(self):
        self.write_rows("t.jsonl", ["It rains."])
        done = self.run_quail(f"SELECT id FROM 't.jsonl' WHERE {QUESTION}", "--backend", "cpu",
                              "--fp8-scales", "ue8m0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("needs a block-fp8 model on the cuda backend; this is", done.stderr)
        done = self.run_quail("SELECT 1", "--fp8-scales", "e5m2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--fp8-scales cannot be 'e5m2' (known: exact, ue8m0)", done.stderr)

    def test_int8_is_told_of_and_its_verdicts_are_kept_apart(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        sql = f"SELECT id, AI_PROB(PROMPT('Is this about the weather? {{0}}', body)) AS p FROM 't.jsonl' ORDER BY id"
        exact = self.rows(sql, "--backend", "cpu", "--compute-type", "f32", "--checkpoint", "kept.bin")
        self.assertEqual(self.report()["device"]["compute_type"], "f32")
        bytewise = self.rows(sql, "--backend", "cpu", "--compute-type", "int8", "--checkpoint", "kept.bin")
        self.assertEqual(self.report()["device"]["compute_type"], "int8")
        self.assertNotIn("came from the checkpoint", json.dumps(self.report()["notices"]))
        for a, b in zip(exact, bytewise):
            self.assertNotEqual(a["p"], b["p"])
            self.assertAlmostEqual(a["p"], b["p"], delta=0.2)
        again = self.rows(sql, "--backend", "cpu", "--compute-type", "int8", "--checkpoint", "kept.bin")
        self.assertEqual(again, bytewise)
        self.assertIn("2 verdicts came from the checkpoint", json.dumps(self.report()["notices"]))

    def test_int8_is_refused_where_nothing_is_quantised(self):
        self.write_rows("t.jsonl", ["It rains."])
        sql = f"SELECT id FROM 't.jsonl' WHERE {QUESTION}"
        done = self.run_quail(sql, "--backend", "cpu", "--compute-type", "int8", "--random-weights")
        self.assertEqual(done.returncode, 3)
        self.assertIn("--compute-type int8 needs a GGUF file whose layers are quantised", done.stderr)
        done = self.run_quail(sql, "--backend", "counting", "--compute-type", "int8")
        self.assertEqual(done.returncode, 3)
        self.assertIn("--compute-type is the cpu backend's, this is counting", done.stderr)
        done = self.run_quail("SELECT 1", "--compute-type", "int4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--compute-type cannot be 'int4' (known: auto, bf16, f32, int8)", done.stderr)

    def test_a_text_beyond_the_context_is_an_error_row_with_its_length(self):
        self.write_rows("t.jsonl", ["It rains.", "It rains and rains. " * 4000, "It pours " * 1_100_000])
        rows = self.rows(f"SELECT id, {QUESTION} IS NULL AS failed FROM 't.jsonl' ORDER BY id")
        self.assertEqual([row["failed"] for row in rows], [False, True, True])
        report = self.report()
        self.assertEqual(report["calls"]["error"], 2)
        for error in report["errors"]:
            self.assertRegex(error["reason"], r"\d{5,} tokens")

    # The model's context is 8,192 tokens; the KV memory holds little more than half of it, so that this is quick.
    SHORT = ("--kv-memory", "192M", "--compute-type", "f32")

    @NOT_SANITIZED
    def test_on_long_asks_about_a_part_of_the_text(self):
        self.write_rows("t.jsonl", ["It rains.", "It rains and rains. " * 4000])
        asked = [f"{QUESTION[:-1]}, {{'on_long': '{how}'}}) IS NULL AS {how}" for how in ("error", "head", "tail", "middle")]
        rows = self.rows(f"SELECT {', '.join(asked)} FROM 't.jsonl' ORDER BY id", *self.SHORT)
        self.assertEqual([list(row.values()) for row in rows], [[False] * 4, [True, False, False, False]])
        report = self.report()
        self.assertEqual(report["tokens"]["cut_asks"], 3)
        self.assertEqual(report["calls"]["error"], 1)
        self.assertRegex("|".join(report["notices"]), r"3 prompts were longer than the \d+ tokens that fit")

    @NOT_SANITIZED
    def test_the_verdict_is_that_of_the_part_that_stays(self):
        text = "".join(f"Line {i} of it. " for i in range(2000))
        self.write_rows("t.jsonl", [text])
        self.write_rows("r.jsonl", ["dogs", "a cat", "many a very long list of things"])
        join = f"{PAIR[:-1]}, {{'on_long': 'head', 'anchor': 'l'}})"
        rows = self.rows(f"SELECT count({join}) AS n FROM 't.jsonl' l, 'r.jsonl' r", *self.SHORT)
        self.assertEqual(rows, [{"n": 3}])
        tokens = self.report()["tokens"]
        self.assertEqual((tokens["cut_asks"], tokens["regret"]), (3, 0))
        self.assertGreater(tokens["requested"], 2 * tokens["fresh"])

    @NOT_SANITIZED
    def test_a_cut_text_is_asked_as_its_part_is(self):
        probability = "AI_PROB(PROMPT('Is this about the weather? {0}', body), {'on_long': 'head'}) AS p"
        self.write_rows("t.jsonl", [" rain"])
        self.rows(f"SELECT {probability} FROM 't.jsonl'", *self.SHORT)
        fixed = self.report()["tokens"]["requested"] - 1
        self.write_rows("t.jsonl", [" rain" * 9000])
        cut = self.rows(f"SELECT {probability} FROM 't.jsonl'", *self.SHORT)
        limit = self.report()["tokens"]["requested"]
        self.write_rows("t.jsonl", [" rain" * (limit - fixed)])
        part = self.rows(f"SELECT {probability} FROM 't.jsonl'", *self.SHORT)
        tokens = self.report()["tokens"]
        self.assertEqual((tokens["cut_asks"], tokens["requested"]), (0, limit))
        self.assertEqual(cut, part)

    def test_rows_do_not_depend_on_chunks_threads_hints_and_the_order_of_the_input(self):
        bodies = [f"{name} says that {what} in {where}." for name in ("Ana", "Ben") for what in ("it snows", "a dog barks", "rain fell")
                  for where in ("Rome", "the far north")]
        query = ("SELECT l.body, r.body AS other, AI_PROB(PROMPT('Is this about the weather? {0}', l.body)) AS p, "
                 "AI_PROB(PROMPT('{0} is said where {1}', l.body, r.body)) AS q FROM 'l.jsonl' l, 'r.jsonl' r "
                 "WHERE AI_FILTER(PROMPT('Is it {0}?', l.body)%s) IS NOT NULL ORDER BY ALL")
        self.write_rows("r.jsonl", ["one lives", "nobody is"])
        seen = {}
        for name, hint, order, arguments in (
                ("plain", "", 1, []), ("small chunks", "", 1, ["--chunk-tokens", "64"]), ("reversed", "", -1, []),
                ("one thread", "", 1, ["--threads", "1"]), ("a hint", ", {'selectivity': 0.9}", 1, ["--chunk-tokens", "300"])):
            self.write_rows("l.jsonl", bodies[::order])
            seen[name] = self.rows(query % hint, "--deterministic", *arguments)
        self.assertEqual(len(seen["plain"]), 24)
        for name, rows in seen.items():
            with self.subTest(name):
                self.assertEqual(rows, seen["plain"])

    def test_an_adapter_for_other_weights_is_refused(self):
        self.write_rows("t.jsonl", ["It rains."])
        query = f"SELECT id FROM 't.jsonl' WHERE {QUESTION} IS NOT NULL"
        self.rows(query)
        model = Path(self.report()["model"]["path"])
        other = self.path / model.name  # its adapter is found by this name
        weights = bytearray(model.read_bytes())
        weights[-1] ^= 1
        other.write_bytes(weights)
        done = self.run_quail(query, "-m", other)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("trained for the weights of SmolLM2-135M-Instruct", done.stderr)
        self.assertIn("--adapter none", done.stderr)
        self.assertEqual(self.rows(query, "-m", other, "--adapter", "none"), [{"id": 0}])

    def test_a_checkpoint_is_of_one_model_adapter_and_numeric_mode(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        query = f"SELECT id FROM 't.jsonl' WHERE {QUESTION} IS NOT NULL"
        for arguments in ([], ["--adapter", "none"], ["--deterministic"]):
            for reused in (False, True):
                done = self.run_quail(query, "--backend", "cpu", "--checkpoint", "kept.bin", *arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("2 verdicts came from the checkpoint" in done.stderr, reused, arguments)

    def test_case_34_a_model_that_cannot_judge_fails_its_self_test(self):
        self.write_rows("t.jsonl", ["It rains."])
        query = f"SELECT id FROM 't.jsonl' WHERE {QUESTION} IS NOT NULL"
        for arguments, fails in (([], False), (["--adapter", "none"], True)):
            self.assertEqual(self.rows(query, *arguments), [{"id": 0}])
            self.assertEqual("fails the self-test" in "|".join(self.report()["notices"]), fails, arguments)
            self.assertEqual(self.report()["calls"]["asked"], 1, "it is none of the statement's questions")

    def test_empty_and_one_letter_texts_are_judged_beside_others(self):
        self.write_rows("t.jsonl", ["", "a", "It rains and rains."])
        rows = self.rows(f"SELECT id, {QUESTION.replace('AI_FILTER', 'AI_PROB')} AS p FROM 't.jsonl' ORDER BY id")
        self.assertEqual(len({row["p"] for row in rows}), 3)
        self.assertNotIn(None, [row["p"] for row in rows])
        self.assertEqual(self.report()["calls"]["error"], 0)
        self.assertEqual(self.report()["tokens"]["regret"], 0)

    def test_layout_chat_puts_the_same_words_into_the_models_turns(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings.", "It rains."])
        sql = f"SELECT id, {QUESTION.replace('AI_FILTER', 'AI_PROB')} AS p FROM 't.jsonl' ORDER BY id"
        seen, requested = {}, {}
        for layout in ("plain", "chat"):
            seen[layout] = self.rows(sql, "--layout", layout, "--adapter", "none", "--checkpoint", "kept")
            requested[layout] = self.report()["tokens"]["requested"]
        self.assertNotEqual(seen["plain"], seen["chat"], "the checkpoint tells the layouts apart")
        around = (requested["chat"] - requested["plain"]) / 2
        self.assertTrue(20 < around < 50, around)
        self.assertIn("in layout chat", self.run_quail(f"EXPLAIN {sql}", "--layout", "chat", "--adapter", "none").stdout)
        done = self.run_quail(sql, "--layout", "chat")
        self.assertEqual(done.returncode, 3)
        self.assertIn("in layout chat (--adapter none runs it without)", done.stderr)
        done = self.run_quail(sql, "--layout", "poem")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--layout cannot be 'poem'", done.stderr)

    def test_a_later_statement_reads_what_an_earlier_one_computed(self):
        self.write_rows("t.jsonl", [f"{name} says that it rains in the far north, and has said so for years." for name in "abcdef"])
        other = QUESTION.replace("the weather", "music")
        self.rows(f"SELECT count(*) AS n FROM 't.jsonl' WHERE {other}; SELECT id FROM 't.jsonl' WHERE {QUESTION}")
        both = self.report()["tokens"]
        self.rows(f"SELECT id FROM 't.jsonl' WHERE {QUESTION}")
        alone = self.report()["tokens"]
        self.assertEqual(both["requested"], alone["requested"])
        self.assertLess(both["fresh"], 0.7 * alone["fresh"])
        self.assertLess(both["regret"], 0)
        self.assertEqual(alone["regret"], 0)

    def test_an_empty_table_asks_nothing(self):
        (self.path / "t.csv").write_text("id,body\n")
        self.assertEqual(self.rows(f"SELECT id FROM 't.csv' WHERE {QUESTION}"), [])
        self.assertEqual(self.report()["calls"]["asked"], 0)

    def test_counted_tokens_are_no_step_of_their_own(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        rows = self.rows(f"SELECT AI_COUNT_TOKENS('ai_filter', body) AS n, CASE WHEN {QUESTION} THEN 1 ELSE 0 END AS f "
                         "FROM 't.jsonl' ORDER BY id")
        self.assertEqual([row["n"] for row in rows], [3, 3])
        self.assertEqual([step["name"] for step in self.report()["steps"]], ["column AI_FILTER"])
        self.assertGreater(self.report()["steps"][0]["estimated_seconds"], 0)

    def test_explain_runs_no_forward_pass(self):
        self.write_rows("t.jsonl", ["It rains.", "He sings."])
        done = self.run_quail(f"EXPLAIN SELECT id FROM 't.jsonl' WHERE {QUESTION}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("True / False", done.stdout)
        self.assertNotIn("chunks", self.report())

    def test_broken_encodings_are_errors_that_name_the_file(self):
        (self.path / "t.csv").write_bytes("id,body\n1,caf\u00e9 in latin\n".encode("latin-1"))
        done = self.run_quail(f"SELECT id FROM 't.csv' WHERE {QUESTION}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("t.csv", done.stderr)

    def test_cut_files_are_errors(self):
        self.write_rows("t.jsonl", ["It rains."] * 1000)
        self.rows("COPY (SELECT * FROM 't.jsonl') TO 't.parquet'")
        whole = (self.path / "t.parquet").read_bytes()
        for i in range(0, 8):
            (self.path / "cut.parquet").write_bytes(whole[:len(whole) * i // 8])
            done = self.run_quail(f"SELECT id FROM 'cut.parquet' WHERE {QUESTION}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cut.parquet", done.stderr)


if __name__ == "__main__":
    probe = subprocess.run([QUAIL, "-c", "SELECT AI_COUNT_TOKENS('x')"], capture_output=True, text=True)
    if probe.returncode == 3 and "quail download" in probe.stderr:
        print("skipped: no embedded model")
        sys.exit(SKIPPED)
    unittest.main()
