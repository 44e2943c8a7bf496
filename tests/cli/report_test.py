"""The run report (--report): every field, on every way that a statement's rows go, and on failure.

    report_test.py QUAIL [unittest arguments]
"""

import json
import unittest

import cli_test


class Report(cli_test.CliTest):
    def report(self, *arguments):
        self.run_oracle("--report", "report.json", *arguments)
        return json.loads((self.path / "report.json").read_text())

    def test_counters(self):
        report = self.report("--seed", "7", "-c", cli_test.FILTER)
        self.assertEqual(report["calls"], {"asked": 4, "distinct": 3, "true": 1, "false": 1, "null": 0,
                                           "null_input": 1, "error": 1, "unjudged": 0, "labels": {}})
        self.assertEqual(report["errors"], [{"reason": "boom", "count": 1, "rows": 1}])
        self.assertEqual((report["rows"], report["seed"], report["dialect"]), (1, 7, "snowflake"))
        self.assertEqual(report["query"], cli_test.FILTER)
        self.assertEqual(report["steps"][0]["kind"], "filter")
        self.assertGreaterEqual(report["seconds"]["total"], 0)
        self.assertNotIn("model", report)
        self.assertNotIn("error", report)

    def test_every_field_of_a_statement_without_a_model(self):
        report = self.report("-c", "SELECT a.id FROM t a, t b WHERE AI_FILTER(PROMPT('{0} {1}', a.body, b.body))")
        self.assertEqual(set(report), {"query", "dialect", "seed", "started_at", "version", "seconds", "rows", "calls",
                                       "errors", "tokens", "pairs", "peak_memory_bytes", "steps", "notices"})
        self.assertRegex(report["started_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(report["version"], r"^\d+\.\d+")
        self.assertEqual(set(report["seconds"]), {"total", "boot", "plan", "relational", "result"})
        self.assertLessEqual(report["seconds"]["result"], report["seconds"]["total"])
        self.assertEqual(report["tokens"], {"requested": 0, "fresh": 0, "cached": 0})
        self.assertEqual(report["pairs"], report["calls"]["asked"])
        self.assertEqual(set(report["peak_memory_bytes"]), {"host"})
        self.assertEqual(set(report["steps"][0]), {"name", "kind", "tables", "anchor", "selectivity", "asked", "distinct",
                                                   "true", "false", "null", "null_input", "error", "unjudged", "seconds",
                                                   "estimated_seconds"})

    def test_rows_and_time_of_every_way_that_rows_go(self):
        for query, rows in (("EXPLAIN ANALYZE " + cli_test.FILTER, 1), (cli_test.FILTER, 1),
                            (f"COPY ({cli_test.FILTER}) TO 'out.csv' (RETURN_FILES)", 1),
                            (f"CREATE TABLE u AS {cli_test.FILTER}; INSERT INTO u {cli_test.FILTER} RETURNING id, id", 1),
                            (f"CREATE TABLE u AS FROM t; INSERT INTO u FROM t WHERE AI_FILTER(body)", 1),
                            (f"CREATE TABLE u AS FROM t; DELETE FROM u WHERE NOT AI_FILTER(body)", 1),
                            (f"COPY (SELECT * FROM t WHERE AI_FILTER(body) IS NULL) TO 'out.csv'", 2),
                            (f"CREATE TABLE u AS {cli_test.FILTER}", None)):
            with self.subTest(query):
                report = self.report("-c", query)
                self.assertEqual(report.get("rows"), rows)
                self.assertGreater(report["seconds"]["result"], 0)
        for form in ("parquet", "arrow"):
            report = self.report("--format", form, "-o", "out." + form, "-c", cli_test.FILTER)
            self.assertEqual((report["rows"], report["seconds"]["result"] > 0), (1, True))

    def test_a_failure_has_a_report_whichever_way_it_goes(self):
        for arguments in (["--format", "parquet", "-o", "o.parquet", "-c", "SELECT AI_NOPE(1)"],
                          ["--format", "arrow", "-o", "o.arrow", "-c", "SELECT AI_NOPE(1)"],
                          ["-c", "CREATE VIEW v AS SELECT AI_FILTER('x' || nope) FROM t"]):
            with self.subTest(arguments):
                (self.path / "report.json").unlink(missing_ok=True)
                report = self.report(*arguments)
                self.assertEqual(report["error"]["line"], 1)

    def test_failure_has_its_place(self):
        for query in ("SELECT AI_FILTER('x' || nope) FROM t", "SELECT AI_NOPE(1)"):
            report = self.report("-c", query)
            self.assertEqual(report["error"]["line"], 1)
            self.assertGreater(report["error"]["column"], 7)
            self.assertTrue(report["error"]["message"])

    def test_on_standard_error(self):
        done = self.run_oracle("-q", "--report", "-", "-c", cli_test.FILTER)
        self.assertEqual(done.stdout, "id\n1\n")
        self.assertEqual(json.loads(done.stderr)["calls"]["asked"], 4)


if __name__ == "__main__":
    unittest.main()
