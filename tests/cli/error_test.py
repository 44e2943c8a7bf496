"""Errors on the command line: what they say, and where they point.

    error_test.py QUAIL [unittest arguments]
"""

import json
import os
import subprocess
import unittest

import cli_test


class Errors(cli_test.CliTest):
    def test_errors_of_rewritten_statements_point_to_the_statement(self):
        done = self.run_oracle("--report", "r.json", "-c", "SELECT 1;\n SELECT CAST(x AS INTEGER) "
                               "FROM (VALUES ('seven')) t(x) WHERE AI_FILTER('warm? ' || x) IS NOT NULL")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[0].split("'")[1], "seven")
        self.assertIn("\nline 2, column 2\n", done.stderr)
        error = json.loads((self.path / "r.json").read_text())["error"]
        self.assertEqual((error["line"], error["column"]), (2, 2))

    def test_a_byte_order_mark_has_no_column(self):
        (self.path / "s.sql").write_bytes(b"\xef\xbb\xbfSELECT zz;\r\n")
        self.assertIn("\nline 1, column 8\nSELECT zz;\n       ^\n", self.run_quail("-f", "s.sql").stderr)
        self.assertIn("\nline 1, column 8\nSELECT zz;\n", self.run_quail(input="\ufeffSELECT zz;\n").stderr)
        self.assertIn(".tables", self.run_quail(input="\ufeff.help\n").stdout)

    def test_what_an_option_says_is_no_texts_fault(self):
        done = self.run_quail("--kv-memory", "1K", "-c", "SELECT 1; SELECT AI_FILTER('warm?')")
        if "no embedded model" in done.stderr or done.returncode == 3:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a KV memory of 0 tokens", done.stderr)
        self.assertNotIn("line ", done.stderr)

    def test_files_that_cannot_be_read_or_written_are_pointed_at(self):
        (self.path / "bad.parquet").write_bytes(b"no parquet file at all")
        (self.path / "bad.arrow").write_bytes(b"ARROW1")
        for query, column in (("SELECT * FROM 'bad.parquet'", 15), ("SELECT * FROM 'bad.arrow'", 15),
                              ("SELECT * FROM t, 'bad.arrow' WHERE AI_FILTER(body)", 18),
                              ("COPY (SELECT 1) TO 'none/x.csv'", 20)):
            with self.subTest(query):
                done = self.run_oracle("-c", "SELECT 1;\n" + query)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"line 2, column {column}\n", done.stderr)

    def test_a_copy_that_may_not_be_written_asks_nothing(self):
        for name in ("locked", "open"):
            (self.path / name).mkdir()
            os.chmod(self.path / name, 0o555 if name == "locked" else 0o777)
        os.chmod(self.path, 0o755)
        (self.path / "open" / "kept.csv").write_text("old")
        os.chmod(self.path / "open" / "kept.csv", 0o444)
        as_user = {"user": 65534} if os.geteuid() == 0 else {}
        copy = "COPY (SELECT id FROM t WHERE AI_FILTER(body)) TO '{}'{}"
        run = lambda query: subprocess.run(
            [cli_test.QUAIL, "--oracle", "oracle.jsonl", "-t", "t=t.csv", "--report", "-", "-c", query],
            cwd=self.path, text=True, capture_output=True, **as_user)
        try:
            plain = run("SELECT 1")
        except PermissionError as error:
            self.skipTest(f"the program cannot be run without root's rights here: {error}")
        if plain.returncode != 0:
            self.skipTest(f"the program cannot be run without root's rights here: {plain.stderr}")
        for file, options in (("locked/x.csv", ""), ("locked/x.parquet", ""),
                              ("locked", " (FORMAT csv, PARTITION_BY (id), WRITE_PARTITION_COLUMNS)"),
                              ("locked/x", " (FORMAT csv, PER_THREAD_OUTPUT)")):
            with self.subTest(file):
                done = run(copy.format(file, options))
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"cannot write '{file}': Permission denied\nline 1, column 50\n", done.stderr)
                self.assertRegex(done.stderr, r'"asked": 0\b')
        # A new file takes the old one's place.
        self.assertEqual(run(copy.format("open/kept.csv", "")).returncode, 0)
        self.assertEqual((self.path / "open" / "kept.csv").read_text().splitlines()[0], "id")

    def test_caret_under_the_place(self):
        done = self.run_oracle("-c", "SELECT id,\n  'ä' || nope AS x\nFROM t")
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertTrue(lines[0].startswith("error: "))
        place = lines.index("line 2, column 10")
        self.assertEqual(lines[place + 1], "  'ä' || nope AS x")
        self.assertEqual(lines[place + 2], "         ^")
        self.assertEqual(done.stdout, "")

    def test_line_counts_over_the_whole_text(self):
        done = self.run_oracle("-c", "SELECT 1;\nSELECT 2;\nSELECT AI_FILTER(PROMPT('{1}', body)) FROM t")
        self.assertIn("line 3, column 25", done.stderr)
        self.assertEqual(done.stdout, "1\n1\n2\n2\n")

    def test_missing_table_file(self):
        done = self.run_quail("-t", "t=missing.csv", "-c", "SELECT 1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("missing.csv", done.stderr)

    def test_files_that_are_no_table(self):
        (self.path / "folder").mkdir()
        for path, told in (("*.nope", "no file matches '*.nope'"), ("*.parquet", "no file matches '*.parquet'"),
                           ("folder", "it is a folder")):
            done = self.run_quail("-t", f"x={path}", "-c", "SELECT 1")
            self.assertEqual(done.returncode, 2)
            self.assertIn(told, done.stderr)

    def test_a_line_that_the_csv_reader_refuses_is_not_printed_whole(self):
        (self.path / "long.csv").write_text("id,body\n1,a\n2," + "x" * 2_500_000 + "\n")
        done = self.run_quail("-t", "long=long.csv", "-c", "SELECT count(*) FROM long")
        self.assertEqual(done.returncode, 1)
        self.assertLess(len(done.stderr), 2000)
        for told in ("Maximum line size", "max_line_size", "JSONL", "Parquet", "long.csv"):
            self.assertIn(told, done.stderr)

    def test_another_dialects_comment_is_named(self):
        done = self.run_quail("-c", "SELECT 1 # one\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dialect bigquery has #", done.stderr)
        self.assertIn("line 1, column 10", done.stderr)
        self.assertEqual(self.run_quail("-d", "bigquery", "-c", "SELECT 1 AS a # one\n").stdout, "a\n1\n")
        self.assertEqual(self.run_quail("-c", "SELECT 2 AS a ORDER BY #1").stdout, "a\n2\n")

    def test_a_database_that_is_read_only_is_named(self):
        self.assertEqual(self.run_quail("kept.db", "-c", "CREATE TABLE t AS SELECT 'a' AS body").returncode, 0)
        attach = "ATTACH 'kept.db' AS kept (READ_ONLY); "
        for change in ("INSERT INTO kept.t SELECT body FROM kept.t WHERE AI_FILTER(body)", "DELETE FROM kept.t WHERE AI_FILTER(body)",
                       "UPDATE kept.t SET body = '' WHERE AI_FILTER(body)", "CREATE TABLE kept.u AS FROM kept.t WHERE AI_FILTER(body)"):
            done = self.run_oracle("-c", attach + change)
            self.assertEqual(done.returncode, 1)
            self.assertIn('error: cannot change database "kept" which is attached in read-only mode!\nline 1, column ', done.stderr)

    def test_a_report_that_cannot_be_written_is_told_of_once(self):
        done = self.run_quail("--report", "/dev/full", "-c", "SELECT 1")
        self.assertEqual((done.returncode, done.stderr.count("error:")), (1, 1), done.stderr)
        done = self.run_quail("--report", "/dev/full", "-c", "SELECT nope")
        self.assertEqual((done.returncode, done.stderr.count("cannot write the report")), (1, 1), done.stderr)

    def test_an_unreadable_calibration_is_told_of(self):
        (self.path / "quail").mkdir()
        (self.path / "quail" / "device.json").write_text("{broken")
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.path)}
        for arguments in (["doctor"], ["--oracle", "oracle.jsonl", "-t", "t=t.csv", "-c", cli_test.FILTER]):
            done = subprocess.run([cli_test.QUAIL, *arguments], cwd=self.path, env=environment, text=True, capture_output=True)
            self.assertRegex(done.stdout + done.stderr, "device.json' is unreadable .*quail calibrate")

    def test_oracle_fault_names_file_and_line(self):
        (self.path / "bad.jsonl").write_text('{"verdict": true}\n{"verdict": 3}\n')
        done = self.run_quail("--oracle", "bad.jsonl", "-c", "SELECT 1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bad.jsonl, line 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
