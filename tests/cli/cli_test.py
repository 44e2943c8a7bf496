"""The command line as a user meets it: exit codes, streams, formats, error text, report, Ctrl-C.

    cli_test.py QUAIL [unittest arguments]
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

QUAIL = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path("quail")
ROOT = Path(__file__).resolve().parents[2]
ORACLE = '{"contains": ["snow"], "verdict": true}\n{"contains": ["boom"], "verdict": "error: boom"}\n{"verdict": false}\n'
ROWS = "id,body\n1,snow fell\n2,sunny\n3,\n4,a boom\n"
FILTER = "SELECT id FROM t WHERE AI_FILTER(PROMPT('snow? {0}', body))"


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        (self.path / "oracle.jsonl").write_text(ORACLE)
        (self.path / "t.csv").write_text(ROWS)

    def run_quail(self, *arguments, input=None):
        return subprocess.run([QUAIL, *arguments], cwd=self.path, input=input, text=True,
                              capture_output=True, timeout=120)

    def run_oracle(self, *arguments, input=None):
        return self.run_quail("--oracle", "oracle.jsonl", "-t", "t=t.csv", *arguments, input=input)


class ExitCodes(CliTest):
    def test_success(self):
        done = self.run_oracle("-c", FILTER)
        self.assertEqual((done.returncode, done.stdout), (0, "id\n1\n"))

    def test_failed_query(self):
        self.assertEqual(self.run_oracle("-c", "SELECT nope FROM t").returncode, 1)

    def test_a_file_of_an_option_that_cannot_be_opened_is_wrong_usage(self):
        for option in ("-f", "-t n", "--oracle", "--checkpoint", "-o", "--log", "--report", ""):
            name, _, table = option.partition(" ")
            path = (table and table + "=") + "none/file.csv"
            script = [] if name == "-f" else ["-c", "SELECT 1 AS a"]
            oracle = [] if name == "--oracle" else ["--oracle", "oracle.jsonl"]
            done = self.run_quail(*[name] * bool(name), path, *script, *oracle)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (option, done.stderr))
            self.assertIn("none/file.csv", done.stderr)
        self.assertEqual(self.run_quail("-c", "FROM 'none/file.csv'").returncode, 1)

    def test_unknown_option(self):
        done = self.run_quail("--no-such-option")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-such-option", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bad_values(self):
        for arguments in (["--format", "xml"], ["--format", "parquet", "-c", "SELECT 1"],
                          ["-d", "mysql"], ["-t", "nameless.csv"], ["--set", "quail_no_such=1"],
                          ["--progress", "loud"], ["--kv-memory", "much"], ["-f", "missing.sql"],
                          ["--threads", "many"], ["-c", "SELECT 1", "-f", "x.sql"], ["-f", "."],
                          ["--format", "arrow", "-c", "SELECT 1"], ["-o", "out.csv"]):
            with self.subTest(arguments):
                self.assertEqual(self.run_quail(*arguments, input="").returncode, 2)

    def test_values_that_mean_nothing_are_refused_before_anything_runs(self):
        for arguments, told in ((["--chunk-tokens", "-5"], "--chunk-tokens"), (["--seed", "-1"], "--seed"),
                                (["--kv-tokens", "-1"], "--kv-tokens"), (["--threads", "-1"], "--threads: needs a whole number"),
                                (["--threads", "100000"], "at most 1024"), (["--seed", "x"], "not 'x'"),
                                (["--radix", "foo"], "pays, always, never"), (["--layout", "foo"], "plain, chat"),
                                (["--report", "/nonexistent/r.json"], "r.json"),
                                (["--backend", "foo"], "counting"),
                                (["-t", "t=t.csv", "-t", "T=oracle.jsonl"], "twice")):
            with self.subTest(arguments):
                done = self.run_quail(*arguments, "-c", "SELECT 1")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(told, done.stderr)
                self.assertNotIn("1797693", done.stderr)

    def test_an_option_that_may_come_again_takes_one_value(self):
        for arguments in (["-t", "u=t.csv"], ["--set", "quail_max_pairs=7"]):
            done = self.run_quail(*arguments, "x.db", "-c", "CREATE TABLE kept AS SELECT 1 AS a")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue((self.path / "x.db").exists())
            (self.path / "x.db").unlink()

    def test_bad_values_of_a_benchmark(self):
        for arguments in (["--price", "-5"], ["--price", "nan"], ["--slice", "3/3", "--only", "IMDB-1,BIO-2"]):
            with self.subTest(arguments):
                done = self.run_quail("bench", "run", "--data", "none", "--out", "out", *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertFalse((self.path / "out").exists())
        self.assertEqual(self.run_quail("bench", "generate", "--seed", "-1", "-o", "x").returncode, 2)

    def test_substrait_is_refused_by_name(self):
        for arguments, told in ((["--plan", "x.bin"], "--plan: Substrait plans are not supported yet"),
                                (["--explain=substrait"], "--explain can be text or json, not 'substrait' yet")):
            done = self.run_oracle(*arguments, "-c", FILTER)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(told, done.stderr)

    def test_missing_model(self):
        done = self.run_quail("-m", "missing.gguf", "-t", "t=t.csv", "-c", FILTER)
        self.assertEqual(done.returncode, 3)
        self.assertIn("missing.gguf", done.stderr)

    def test_shapes_are_named_where_a_model_is_missing(self):
        self.assertIn("qwen3-4b-fp8", self.run_quail("models").stdout)
        for name, told in (("nonesuch", "--random-weights also qwen3-4b-fp8"),
                           ("qwen3-0.6b", "only the shape is known, for --random-weights")):
            done = self.run_quail("-m", name, "-t", "t=t.csv", "-c", FILTER)
            self.assertEqual(done.returncode, 3)
            self.assertIn(told, done.stderr)

    def test_file_that_is_no_model(self):
        (self.path / "bad.gguf").write_bytes(b"no model at all")
        done = self.run_quail("-m", "bad.gguf", "-t", "t=t.csv", "-c", FILTER)
        self.assertEqual(done.returncode, 3)
        self.assertIn("bad.gguf", done.stderr)

    def test_case_31_a_tokenizer_with_more_tokens_than_the_model_has_rows(self):
        (self.path / "model").mkdir()
        shape = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
                 "intermediate_size": 8, "vocab_size": 100, "max_position_embeddings": 64}
        (self.path / "model" / "config.json").write_text(json.dumps(shape))
        (self.path / "model" / "tokenizer.json").write_bytes((ROOT / "tests/data/tokenizer/tiny.json").read_bytes())
        done = self.run_quail("-m", "model", "-t", "t=t.csv", "-c", FILTER)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("the tokenizer has 893 tokens, the model 100 rows", done.stderr)

    def test_budget(self):
        done = self.run_oracle("--set", "quail_max_pairs=1", "-c",
                               "SELECT 1 FROM t a JOIN t b ON AI_FILTER(PROMPT('{0} {1}', a.body, b.body))")
        self.assertEqual(done.returncode, 4)
        self.assertIn("pairs", done.stderr)

    def test_no_model_is_loaded_without_ai(self):
        self.assertEqual(self.run_quail("-m", "missing.gguf", "-c", "SELECT 1").returncode, 0)


class Many(CliTest):
    def test_calls_of_one_statement(self):
        pair = " AND ".join(f"AI_FILTER(PROMPT('q{i} {{0}} {{1}}', a.body, b.body))" for i in range(100))
        done = self.run_oracle("-c", f"SELECT count(*) FROM t a, t b WHERE a.id = 1 AND b.id < 3 AND {pair}")
        self.assertEqual((done.returncode, done.stdout.splitlines()[1:]), (0, ["2"]), done.stderr)

    def test_more_calls_than_a_statement_holds(self):
        terms = ", ".join(f"AI_FILTER(PROMPT('q{i}'))" for i in range(4097))
        done = self.run_oracle("-c", f"SELECT {terms}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("at most 4096 different AI calls", done.stderr)


class Formats(CliTest):
    QUERY = "SELECT 1 AS a, 'x, \"y\"' AS b, NULL AS c, '' AS b, [1, 2] AS l"

    def test_csv(self):
        self.assertEqual(self.run_quail("--format", "csv", "-c", self.QUERY).stdout,
                         'a,b,c,b,l\n1,"x, ""y""",,"","[1, 2]"\n')

    def test_a_statement_that_fails_before_its_first_row_writes_nothing(self):
        for form in ("csv", "tsv", "json", "jsonl", "markdown", "table"):
            for query in ("SELECT error('no') AS a", "SELECT CAST(body AS INT) AS a FROM t", FILTER.replace("id", "CAST(body AS INT)", 1)):
                done = self.run_oracle("--format", form, "-c", "SELECT 1 AS one; " + query)
                self.assertEqual(done.returncode, 1)
                alone = self.run_oracle("--format", form, "-c", "SELECT 1 AS one")
                self.assertEqual(done.stdout, alone.stdout)

    def test_csv_is_the_default_in_a_pipe(self):
        self.assertEqual(self.run_quail("-c", "SELECT 1 AS a").stdout, "a\n1\n")

    def test_jsonl(self):
        row = json.loads(self.run_quail("--format", "jsonl", "-c", self.QUERY).stdout)
        self.assertEqual(row, {"a": 1, "b": 'x, "y"', "c": None, "b_1": "", "l": [1, 2]})
        self.assertEqual(self.run_quail("--format", "jsonl", "-c", "SELECT 1 WHERE false").stdout, "")

    def test_json(self):
        self.assertEqual(json.loads(self.run_quail("--format", "json", "-c",
                                                   "SELECT i FROM range(2) r(i)").stdout),
                         [{"i": 0}, {"i": 1}])
        self.assertEqual(json.loads(self.run_quail("--format", "json", "-c",
                                                   "SELECT 1 WHERE false").stdout), [])

    def test_table_and_markdown(self):
        self.assertEqual(self.run_quail("--format", "table", "-c", "SELECT 10 AS n, 'ä' AS t").stdout,
                         " n  | t\n----+---\n 10 | ä\n(1 row)\n")
        self.assertEqual(self.run_quail("--format", "markdown", "-c", "SELECT 1 AS n, 'a|b' AS t").stdout,
                         "| n | t |\n| --- | --- |\n| 1 | a\\|b |\n")

    def test_no_cell_of_a_table_steers_the_terminal(self):
        done = self.run_quail("--format", "table", "-c", "SELECT 'a' || chr(27) || '[31mb' || chr(0) || chr(127) || chr(9) AS t")
        self.assertEqual(done.stdout, " t\n----------------------\n a\\x1b[31mb\\x00\\x7f\\t\n(1 row)\n")

    def test_numbers_that_json_has_not_are_texts(self):
        query = "SELECT 'nan'::DOUBLE AS a, ['inf'::FLOAT, 1.5] AS l, {'x': '-inf'::DOUBLE} AS s, 'NaN \" Infinity' AS t"
        for form in ("json", "jsonl"):
            done = self.run_quail("--format", form, "-c", query)
            refuse = lambda word: self.fail(f"{word} in {done.stdout}")
            row = json.loads(done.stdout, parse_constant=refuse)
            row = row[0] if form == "json" else row
            self.assertEqual(row, {"a": "NaN", "l": ["Infinity", 1.5], "s": {"x": "-Infinity"}, "t": 'NaN " Infinity'})

    def test_tsv(self):
        self.assertEqual(self.run_quail("--format", "tsv", "-c", "SELECT 'a\tb' AS a, 'c,d' AS b, NULL AS c").stdout,
                         'a\tb\tc\n"a\tb"\tc,d\t\n')

    def test_json_of_several_statements_is_a_document_each(self):
        done = self.run_quail("--format", "json", "-c", "SELECT 1 AS a; SELECT 2 AS b")
        decoder, documents, text = json.JSONDecoder(), [], done.stdout
        while text.strip():
            document, end = decoder.raw_decode(text.lstrip())
            documents.append(document)
            text = text.lstrip()[end:]
        self.assertEqual(documents, [[{"a": 1}], [{"b": 2}]])

    def test_the_ending_of_the_file_chooses_the_format(self):
        for name, text in (("x.csv", "a,b\n1,2\n"), ("x.tsv", "a\tb\n1\t2\n"), ("x.json", '[\n{"a":1,"b":2}\n]\n'),
                           ("x.JSONL", '{"a":1,"b":2}\n'), ("x.md", "| a | b |\n| --- | --- |\n| 1 | 2 |\n")):
            done = self.run_quail("-o", name, "-c", "SELECT 1 AS a, 2 AS b")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual((self.path / name).read_text(), text)
        self.run_quail("-o", "x.parquet", "-c", "SELECT 1 AS a, 2 AS b")
        self.assertEqual((self.path / "x.parquet").read_bytes()[:4], b"PAR1")
        done = self.run_quail("-o", "x.dat", "-c", "SELECT 1 AS a")
        self.assertIn("notice: 'x.dat' is written as csv", done.stderr)
        self.assertEqual(self.run_quail("-o", "x.md", "--format", "csv", "-c", "SELECT 1 AS a").stderr, "")
        self.assertEqual((self.path / "x.md").read_text(), "a\n1\n")

    def test_a_statement_can_read_the_file_that_it_writes(self):
        for name in ("t.csv", "t.parquet"):
            self.run_quail("-o", name, "-c", "SELECT 1 AS a")
            for _ in range(2):
                done = self.run_quail("-o", name, "-c", f"SELECT * FROM '{name}' UNION ALL SELECT 2")
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.run_quail("-c", f"SELECT sum(a) AS s, count(*) AS n FROM '{name}'").stdout, "s,n\n5,3\n")

    def test_structs_without_names_come_back_with_names(self):
        query = "SELECT ROW(1, 'a') AS r, [ROW(2, ROW(3))] AS l, MAP([1], [ROW(4)]) AS m"
        self.assertEqual(self.run_quail("-o", "r.arrow", "-c", query).returncode, 0)
        done = self.run_quail("--format", "jsonl", "-c", "FROM 'r.arrow'")
        self.assertEqual(done.stdout, '{"r":{"v1":1,"v2":"a"},"l":[{"v1":2,"v2":{"v1":3}}],"m":{"1":{"v1":4}}}\n', done.stderr)

    def test_a_failed_statement_leaves_the_old_file(self):
        (self.path / "kept.csv").write_text("old")
        os.chmod(self.path / "kept.csv", 0o640)
        os.symlink("kept.csv", self.path / "link.csv")
        for name in ("kept.csv", "link.csv"):
            for query in ("SELECT nope", "SELECT 1 AS a; SELECT CAST('x' AS INT)", "SELECT error('no') FROM range(9)"):
                self.assertEqual(self.run_quail("-o", name, "-c", query).returncode, 1)
                self.assertEqual((self.path / "kept.csv").read_text(), "old")
        self.assertEqual(self.run_quail("-o", "link.csv", "-c", "SELECT 1 AS a").returncode, 0)
        self.assertEqual((self.path / "kept.csv").read_text(), "a\n1\n")
        self.assertTrue((self.path / "link.csv").is_symlink())
        self.assertEqual((self.path / "kept.csv").stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(os.listdir(self.path)), ["kept.csv", "link.csv", "oracle.jsonl", "t.csv"])

    def test_what_is_no_regular_file_is_written_as_it_is(self):
        # Like /dev/stdout, which a test must not put at risk.
        os.symlink("/proc/self/fd/1", self.path / "stdout")
        os.symlink("stdout", self.path / "again")
        for name in ("stdout", "again"):
            done = self.run_quail("-o", name, "-c", "SELECT 1 AS a")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "a\n1\n", ""))
            for form, begin in (("csv", b"a\n1\n"), ("parquet", b"PAR1")):
                with open(self.path / "to", "wb") as file:
                    subprocess.run([QUAIL, "-o", name, "--format", form, "-c", "SELECT 1 AS a"], cwd=self.path, stdout=file)
                    file.seek(0, os.SEEK_END)
                    file.write(b"more")
                written = (self.path / "to").read_bytes()
                self.assertEqual((written[:len(begin)], written[-4:]), (begin, b"more"))
            self.assertTrue((self.path / name).is_symlink())
        self.assertEqual(self.run_quail("-o", ".", "-c", "SELECT 1 AS a").returncode, 2)
        os.symlink("none", self.path / "nowhere.csv")
        self.assertIn("leads to no file", self.run_quail("-o", "nowhere.csv", "-c", "SELECT 1 AS a").stderr)

    def test_parquet_takes_the_rows_of_one_statement(self):
        for query in ("SELECT 1 AS a; SELECT 2 AS b", "EXPLAIN SELECT 1; SELECT 2 AS b", "CREATE TABLE x (a INT)"):
            done = self.run_quail("my.duckdb", "-o", "x.parquet", "-c", "CREATE TABLE ran (a INT); " + query)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertFalse((self.path / "x.parquet").exists())
        self.assertEqual(self.run_quail("my.duckdb", "-c", "SELECT count(*) AS n FROM duckdb_tables()").stdout, "n\n0\n")
        done = self.run_quail("-o", "x.parquet", "-c", "CREATE TABLE x AS SELECT 3 AS a; SELECT a FROM x; DROP TABLE x")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_quail("-c", "SELECT * FROM 'x.parquet'").stdout, "a\n3\n")
        self.assertEqual(self.run_quail("-o", "y.parquet", "--explain", "-c", "SELECT 1 AS a").returncode, 2)

    def test_parquet_with_ai(self):
        done = self.run_oracle("--format", "parquet", "-o", "out.parquet", "-c", FILTER)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(self.run_quail("-c", "SELECT * FROM 'out.parquet'").stdout, "id\n1\n")

    def test_arrow_files_are_written_and_read(self):
        rows = "SELECT id, body, {'n': [id, NULL]} AS s FROM t"
        for name in ("a.arrow", "b.feather", "c.ipc"):
            self.assertEqual(self.run_oracle("-c", rows, "-o", name).returncode, 0)
        expected = self.run_oracle("-c", rows).stdout
        for name in ("a.arrow", "b.feather", "c.ipc"):
            self.assertEqual(self.run_quail("-t", f"x={name}", "-c", "FROM x").stdout, expected)
        self.assertEqual(self.run_quail("-c", "FROM '[ab].*' UNION ALL FROM 'a.arrow' LIMIT 0").returncode, 1)
        self.assertEqual(self.run_quail("-t", "x=*.arrow", "-c", "SELECT count(*) AS n FROM x").stdout, "n\n4\n")
        self.run_oracle("-c", FILTER, "-o", "chosen.arrow")
        self.assertEqual(self.run_oracle("-c", FILTER.replace("FROM t", "FROM 'a.arrow' x JOIN 'chosen.arrow' USING (id)")).stdout,
                         "id\n1\n")

    def test_what_arrow_does_not_carry_is_written_as_text(self):
        values = ("'b,c''d'::ENUM('a', 'b,c''d') AS e, '101'::BIT AS b, '01:02:03+01'::TIMETZ AS z, {'bit': ['a'::ENUM('a')], "
                  "'TIME WITH TIME ZONE': 1} AS s, MAP {'101'::BIT: 'a'::ENUM('a')} AS m, 2 AS \"BIT\"")
        done = self.run_oracle("-o", "v.arrow", "-c", f"SELECT {values} FROM t WHERE AI_FILTER(PROMPT('snow? {{0}}', body))")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        done = self.run_quail("--format", "jsonl", "-c", "FROM 'v.arrow'; SELECT typeof(COLUMNS(*)) FROM 'v.arrow'")
        rows, types = map(json.loads, done.stdout.splitlines())
        self.assertEqual(rows, {"e": "b,c'd", "b": "101", "z": "01:02:03+01", "s": {"bit": ["a"], "TIME WITH TIME ZONE": 1},
                                "m": {"101": "a"}, "BIT": 2})
        self.assertEqual(list(types.values()), ["VARCHAR"] * 3 + ['STRUCT("bit" VARCHAR[], "TIME WITH TIME ZONE" INTEGER)',
                                                "MAP(VARCHAR, VARCHAR)", "INTEGER"])

    def test_arrow_takes_the_rows_of_one_statement(self):
        result = self.run_oracle("-c", "SELECT 1; SELECT 2", "-o", "x.arrow")
        self.assertEqual((result.returncode, (self.path / "x.arrow").exists()), (2, False))
        self.assertIn("format arrow writes the rows of one statement", result.stderr)
        failed = self.run_oracle("-c", "SELECT error('no')", "-o", "x.arrow")
        self.assertEqual((failed.returncode, (self.path / "x.arrow").exists()), (1, False))

    def test_output_file(self):
        done = self.run_oracle("-o", "out.csv", "-c", FILTER)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual((self.path / "out.csv").read_text(), "id\n1\n")

    def test_statements_without_rows_print_nothing(self):
        done = self.run_quail("-c", "CREATE TABLE x (a INT); INSERT INTO x VALUES (1); SELECT a FROM x")
        self.assertEqual(done.stdout, "a\n1\n")

    def test_every_type_that_a_statement_returns_is_written_as_a_query_writes_it(self):
        values = ("1::HUGEINT AS h, 1.5::DECIMAL(30,2) AS d, DATE '2024-02-03' AS a, TIME '01:02:03' AS b, "
                  "TIMESTAMP '2024-02-03 04:05:06' AS c, TIMESTAMPTZ '2024-02-03 04:05:06+00' AS z, INTERVAL 3 MONTH AS v, "
                  "uuid() AS u, unhex('AA') AS o, [1, NULL] AS l, {'x': 1, 'the y': 'z'} AS s, MAP {'k': [2]} AS m, "
                  "'b'::ENUM('a', 'b') AS e, union_value(n := 1) AS w, '101'::BIT AS t, NULL AS nothing, [1, 2]::INT[2] AS f, "
                  "TRUE AS q, 2.5::FLOAT AS g, '{\"a\": 1}'::JSON AS j")
        script = (f"CREATE TABLE x AS SELECT {values} LIMIT 0; INSERT INTO x SELECT {values} RETURNING *; FROM x; "
                  "PREPARE p AS FROM x; EXECUTE p")
        for form, row in (("csv", 1), ("jsonl", 0)):
            done = self.run_quail("--format", form, "-c", script)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            part = len(lines) // 3
            self.assertIn("2024-02-03", lines[row])
            self.assertEqual(lines[:part], lines[part:2 * part])
            self.assertEqual(lines[:part], lines[2 * part:])

    def test_statements_that_list_things_show_every_column(self):
        for statement, told in (("SHOW ALL TABLES", "[id, body]"), ("SUMMARIZE t", "approx_unique"),
                                ("PRAGMA table_info('t')", "body"), ("CALL pragma_version()", "library_version"),
                                ("CREATE TABLE u AS FROM t; DELETE FROM u WHERE id = 1 RETURNING [id] AS ids", "[1]")):
            with self.subTest(statement):
                done = self.run_oracle("-c", statement)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(told, done.stdout)
                if statement.startswith("PRAGMA"):
                    continue
                done = self.run_oracle("-o", "x.parquet", "-c", statement)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.run_quail("-c", "SELECT count(*) > 0 FROM 'x.parquet'").stdout.splitlines()[1], "true")

    def test_explain(self):
        done = self.run_oracle("--explain", "--format", "jsonl", "-c", FILTER)
        self.assertIn("AI_FILTER", done.stdout)
        json.loads(self.run_oracle("--explain=json", "-c", FILTER).stdout)


class Options(CliTest):
    """Lines of the command line's description that no other test has."""

    def test_explain_and_analyze_stand_before_every_statement(self):
        for form in ("csv", "json", "jsonl", "markdown", "table"):
            explain = self.run_oracle("--format", form, "--explain", "-c", FILTER).stdout
            self.assertRegex(explain, r"^model oracle(.|\n)*filter t ")
            self.assertEqual(explain, self.run_oracle("--format", form, "-c", "EXPLAIN " + FILTER).stdout)
            analyze = self.run_oracle("--format", form, "--analyze", "--report", "report.json", "-c", FILTER).stdout
            self.assertRegex(analyze, r"^model oracle(.|\n)*filter t ")
            self.assertEqual(json.loads((self.path / "report.json").read_text())["calls"]["asked"], 4)

    def test_explain_and_analyze_exclude_each_other(self):
        done = self.run_oracle("--explain", "--analyze", "-c", FILTER)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--explain excludes --analyze", done.stderr)

    def test_a_table_is_named_up_to_the_first_sign(self):
        (self.path / "a=b.csv").write_text(ROWS)
        count = "SELECT count(*) AS n FROM x"
        self.assertEqual(self.run_quail("-t", "x=a=b.csv", "-c", count).stdout, "n\n4\n")
        self.assertEqual(self.run_quail("-t", "x=[at]*.csv", "-c", count).stdout, "n\n8\n")

    def test_a_setting_is_a_literal_or_a_word(self):
        for value in ("fail", "'fail'", "FAIL"):
            self.assertEqual(self.run_oracle("--set", "quail_on_error=" + value, "-c", FILTER).returncode, 1, value)
        self.assertEqual(self.run_oracle("--set", "quail_on_error=null", "-c", FILTER).returncode, 0)

    def test_a_file_of_statements_and_the_report_of_the_last_that_asks(self):
        (self.path / "q.sql").write_text(f"SELECT 1 AS a;\n{FILTER}; -- done\nCREATE TABLE u (i INT); SELECT 2 AS b;;\n")
        done = self.run_oracle("-f", "q.sql", "--report", "report.json")
        self.assertEqual((done.returncode, done.stdout), (0, "a\n1\nid\n1\nb\n2\n"))
        self.assertEqual(json.loads((self.path / "report.json").read_text())["query"], FILTER)
        (self.path / "q.sql").write_text("SELECT 1;\n\nSELECT ä FROM t")
        self.assertIn("line 3, column 8\nSELECT ä FROM t\n       ^\n", self.run_oracle("-f", "q.sql").stderr)

    def test_progress_and_quiet(self):
        self.assertRegex(self.run_oracle("--progress", "always", "-c", FILTER).stderr,
                         r"(?m)^filter t: 3/3 asks, \d+ asks/s, 50 % true, 0 s left$")
        self.assertNotIn("asks", self.run_oracle("--progress", "never", "-c", FILTER).stderr)
        self.assertEqual(self.run_oracle("-q", "--progress", "never", "-c", FILTER).stderr, "")

    def test_the_shells_commands(self):
        done = self.run_oracle(input=f".help\n.explain {FILTER}\n{FILTER};\n.report\n.schema t\n.dialect bigquery\n"
                                     "SELECT \"a\" AS x;\n.quit\nSELECT 9 AS never;\n")
        for told in (".timer [on|off]", "filter t", '"distinct": 3', "CREATE", "x\na\n"):
            self.assertIn(told, done.stdout)
        self.assertNotIn("never", done.stdout)

    def test_commands_without_an_argument(self):
        done = self.run_oracle(input=".dialect\n.dialect bigquery\n.dialect\n.timer\n.timer on\n.timer\n.timer off\n"
                                     ".explain\n.timer maybe\n")
        self.assertEqual(done.stdout.splitlines(), ["snowflake", "bigquery", "off", "on"])
        self.assertEqual(done.stderr.splitlines(), ["error: which query? .explain QUERY",
                                                    "error: .timer cannot be 'maybe': .timer on or .timer off"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.run_oracle("-d", "bigquery", input=".dialect\n").stdout, "bigquery\n")


class Streams(CliTest):
    def test_notices_and_progress_stay_off_standard_output(self):
        query = "SELECT id FROM t WHERE AI_FILTER('Is there snow?')"
        done = self.run_oracle("--progress", "always", "-c", query)
        self.assertEqual(done.stdout, "id\n")
        self.assertIn("notice: ", done.stderr)
        self.assertIn("asks", done.stderr)
        self.assertNotIn("notice", self.run_oracle("-q", "-c", query).stderr)

    def test_what_follows_an_error_on_its_line_runs(self):
        done = self.run_quail(input="SELECT 1 AS a; SELEC 2; SELECT nope; SELECT 3 AS a;\nSELECT 4 AS a;\n")
        self.assertEqual((done.returncode, done.stdout), (1, "a\n1\na\n3\na\n4\n"))
        self.assertEqual(done.stderr.count("error:"), 2)
        self.assertIn("line 1, column 32\n", done.stderr)

    def test_shell_reads_until_the_semicolon(self):
        done = self.run_oracle(input="SELECT ';' AS a,\n 2 AS b;\n.tables\nSELECT nope;\nSELECT 3 AS c")
        self.assertEqual(done.stdout, "a,b\n;,2\nname,type\nt,VIEW\nc\n3\n")
        self.assertIn("nope", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_database_file_keeps_tables(self):
        self.run_quail("my.duckdb", "-c", "CREATE TABLE kept AS SELECT 5 AS v")
        self.assertEqual(self.run_quail("my.duckdb", "-c", "SELECT v FROM kept").stdout, "v\n5\n")

    def test_a_view_with_ai_calls_is_kept_in_the_file(self):
        create = "CREATE TABLE t AS SELECT 'snow' AS body; CREATE VIEW v AS SELECT body, AI_FILTER(PROMPT('snow? {0}', body)) AS p FROM t"
        self.assertEqual(self.run_quail("--oracle", "oracle.jsonl", "my.duckdb", "-c", create).stderr, "")
        done = self.run_quail("--oracle", "oracle.jsonl", "my.duckdb", "-c", "SELECT * FROM v; SHOW v")
        self.assertEqual(done.stdout.replace("\n\n", "\n"), "body,p\nsnow,true\ncolumn_name,column_type,null,key,default,extra\n"
                         "body,VARCHAR,YES,,,\np,BOOLEAN,YES,,,\n")
        done = self.run_quail("--oracle", "oracle.jsonl", "my.duckdb", input=".tables\n.schema v\n")
        self.assertIn("v,VIEW\n", done.stdout)
        self.assertIn("CREATE VIEW v AS ", done.stdout)
        other = ("ATTACH 'my.duckdb' AS my; CREATE TABLE t AS SELECT 'sun' AS body; SELECT body FROM my.v", "snow")
        self.assertEqual(self.run_quail("--oracle", "oracle.jsonl", "-c", other[0]).stdout, f"body\n{other[1]}\n")

    def test_the_first_query_of_the_readme_runs_over_the_examples(self):
        query = re.search(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
        done = subprocess.run([QUAIL, "--oracle", self.path / "oracle.jsonl", "-c", query], cwd=ROOT / "examples",
                              text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "name,name"), done.stderr)

    def test_without_a_model_there_is_no_speed_of_light(self):
        done = self.run_oracle("--report", "report.json", "-c", "EXPLAIN ANALYZE " + FILTER)
        self.assertIn("speed of light none without a model", done.stdout)
        self.assertNotIn("% of light", done.stdout)
        self.assertNotIn("roofline", (self.path / "report.json").read_text())

    def test_models_and_version(self):
        self.assertIn("smollm2-135m", self.run_quail("models").stdout)
        self.assertRegex(self.run_quail("--version").stdout, r"^quail \d+\.\d+\.\d+\n$")


class Shell(CliTest):
    """The shell on a terminal."""

    def setUp(self):
        super().setUp()
        self.terminal, other = pty.openpty()
        self.errors = open(self.path / "errors", "wb+")
        self.process = subprocess.Popen([QUAIL, "--oracle", "oracle.jsonl", "--format", "csv"], cwd=self.path, stdin=other,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, preexec_fn=self.own_terminal)
        os.close(other)
        self.wait_for("quail> ", 1)

    @staticmethod
    def own_terminal():
        os.setsid()
        os.close(os.open(os.ttyname(0), os.O_RDWR))

    def tearDown(self):
        self.process.kill()
        self.process.communicate()
        self.errors.close()
        os.close(self.terminal)

    def shown(self):
        return (self.path / "errors").read_text()

    def wait_for(self, text, count):
        until = time.monotonic() + 60
        while self.shown().count(text) < count:
            self.assertLess(time.monotonic(), until, self.shown())
            time.sleep(0.01)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def end(self, keys="\x04"):
        self.type(keys)
        output = self.process.communicate(timeout=60)[0]
        return output, self.process.returncode

    def test_control_c_drops_an_unfinished_statement_and_prompts_again(self):
        self.type("CREATE TABLE x AS\n")
        self.wait_for("...> ", 1)
        self.type("\x03")
        self.wait_for("quail> ", 2)
        self.type("\x03")
        self.wait_for("quail> ", 3)
        self.type("SELECT 'half of a line\x03")
        self.wait_for("quail> ", 4)
        self.type("\x03")
        self.wait_for("quail> ", 5)
        self.type("SELECT count(*) AS n FROM duckdb_tables();\n")
        self.wait_for("quail> ", 6)
        self.assertEqual(self.end(), ("n\n0\n", 0))

    def test_the_end_of_the_input_drops_an_unfinished_statement(self):
        self.type("SELECT 1 AS a\n")
        self.wait_for("...> ", 1)
        self.assertEqual(self.end(), ("", 0))
        self.assertIn("unfinished statement was dropped", self.shown())

    def test_control_c_stops_a_statement_and_the_shell_goes_on(self):
        self.type("SELECT count(*) FROM range(100000000) a, range(100000) b;\n")
        time.sleep(0.3)
        self.type("\x03")
        self.wait_for("interrupted", 1)
        self.type("SELECT 5 AS five;\n")
        self.wait_for("quail> ", 3)
        output, code = self.end()
        self.assertTrue(output.endswith("five\n5\n"), output)
        self.assertEqual(code, 0)

    def test_sigterm_ends_it(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(timeout=60), 143)

    def test_commands_that_name_nothing_are_errors(self):
        self.type(".schema nope\n.dialect mysql\n.nope\nCREATE TABLE t1 (a INT);\n.schema T1\n"
                  ".dialect bigquery\n.schema it's\n")
        self.wait_for("quail> ", 8)
        self.assertIn("CREATE TABLE t1", self.end()[0])
        for told in ("no table or view 'nope'", "no dialect 'mysql'", "no command .nope", "no table or view 'it's'"):
            self.assertIn(told, self.shown())


class Logs(CliTest):
    def test_log_and_verbose(self):
        result = self.run_oracle("-c", f"SELECT 1 AS a; {FILTER}", "-v", "--log", "log.txt")
        log = (self.path / "log.txt").read_text()
        for told in ("SELECT 1 AS a", FILTER, "asked 4, distinct 3, true 1, false 1", " s\n"):
            self.assertIn(told, result.stderr)
            self.assertIn(told, log)
        self.assertRegex(log, r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ SELECT 1 AS a$")
        self.run_oracle("-c", "SELECT nope", "--log", "log.txt")
        self.assertTrue((self.path / "log.txt").read_text().startswith(log))
        self.assertIn("nope", (self.path / "log.txt").read_text()[len(log):])
        self.assertEqual(self.run_oracle("-c", "SELECT 1", "--log", "no/log.txt").returncode, 2)


class Interrupts(CliTest):
    def interrupt(self, *arguments):
        process = subprocess.Popen([QUAIL, *arguments], cwd=self.path, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # The first progress line says that the statement runs.
        line = process.stderr.readline()
        self.assertIn("asks", line)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors, time.monotonic() - begin

    def test_control_c_keeps_counts(self):
        (self.path / "rules.jsonl").write_text("".join(
            json.dumps({"contains": [f"never {i}"], "verdict": True}) + "\n" for i in range(400)) +
            '{"verdict": false}\n')
        code, errors, seconds = self.interrupt(
            "--oracle", "rules.jsonl", "--progress", "always", "--report", "report.json", "-c",
            "SELECT count(*) FROM range(2000000) r(i) WHERE AI_FILTER(PROMPT('x {0}', 'text ' || i))")
        self.assertEqual(code, 130, errors)
        self.assertLess(seconds, 10)
        report = json.loads((self.path / "report.json").read_text())
        self.assertIn("interrupted", report["error"]["message"])
        self.assertGreater(report["calls"]["distinct"], 0)
        self.assertLess(report["calls"]["distinct"], 2000000)


    def test_sigterm_has_its_own_code(self):
        process = subprocess.Popen(
            [QUAIL, "-c", "SELECT 1 AS a; SELECT count(*) FROM range(100000000) a, range(100000) b"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        read = b""
        while not read.endswith(b"1\n"):  # the first statement's row: signals are handled by now
            read += os.read(process.stdout.fileno(), 100)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)

    def test_control_c_ends_a_script_on_standard_input(self):
        process = subprocess.Popen([QUAIL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write("SELECT 1 AS a;\n")
        process.stdin.flush()
        read = b""
        while not read.endswith(b"1\n"):
            read += os.read(process.stdout.fileno(), 100)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60), ("", "error: interrupted\n"))
        self.assertEqual(process.returncode, 130)

    def test_control_c_leaves_no_half_benchmark_data(self):
        process = subprocess.Popen([QUAIL, "bench", "generate", "--sf", "0.5", "-o", "data"], cwd=self.path,
                                   stderr=subprocess.PIPE, text=True)
        while "writing agent_traces" not in process.stderr.readline():
            pass
        self.assertTrue((self.path / "data.partial").exists())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("error: interrupted: 'data' was not written", errors)
        self.assertEqual([p for p in os.listdir(self.path) if p.startswith("data")], [])


class Budgets(CliTest):
    def test_a_budget_that_ends_a_statement_is_exit_code_4_with_rows(self):
        query = "SELECT id, AI_FILTER(PROMPT('snow? {0}', body)) AS p FROM t ORDER BY id"
        done = self.run_oracle("--set", "quail_max_seconds=0", "--report", "report.json", "-c", query)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stdout, "id,p\n1,\n2,\n3,\n4,\n")
        self.assertIn("notice: a budget ended the statement: 3 rows without a verdict, NULL", done.stderr)
        report = json.loads((self.path / "report.json").read_text())
        self.assertEqual(report["calls"]["error"], 3)
        self.assertEqual(report["errors"], [{"reason": "budget: quail_max_seconds is 0", "count": 3, "rows": 3}])

    def test_a_budget_leaves_the_old_file_of_o_as_it_was(self):
        query = "SELECT id, AI_FILTER(PROMPT('snow? {0}', body)) AS p FROM t ORDER BY id"
        for name in ("t.csv", "old.jsonl", "old.parquet", "old.arrow"):
            for script in (query, f"{query}; SET quail_max_seconds = 9; CREATE TABLE done AS SELECT AI_FILTER('snow') AS x"):
                with self.subTest(name, script=script):
                    old = self.path / name
                    old.write_text(ROWS)
                    done = self.run_oracle("--set", "quail_max_seconds=0", "-c", script, "-o", name)
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertIn(f"a budget left rows undecided, so '{name}' was left as it was", done.stderr)
                    self.assertEqual(old.read_text(), ROWS)
        self.assertEqual([p.name for p in self.path.iterdir() if "partial" in p.name], [])

    def test_a_budget_writes_what_was_decided_to_a_new_file(self):
        query = "SELECT id, AI_FILTER(PROMPT('snow? {0}', body)) AS p FROM t ORDER BY id"
        done = self.run_oracle("--set", "quail_max_seconds=0", "-c", query, "-o", "new.csv")
        self.assertEqual(done.returncode, 4)
        self.assertEqual((self.path / "new.csv").read_text(), "id,p\n1,\n2,\n3,\n4,\n")

    def test_a_budget_changes_nothing(self):
        (self.path / "out.csv").write_text("old")
        call = "AI_FILTER(PROMPT('snow? {0}', body))"
        for change in (f"CREATE TABLE c AS SELECT * FROM t WHERE {call}", f"INSERT INTO u SELECT id, body FROM t WHERE {call}",
                       f"UPDATE u SET body = 'x' WHERE NOT coalesce({call}, FALSE)", f"DELETE FROM u WHERE NOT coalesce({call}, FALSE)",
                       f"COPY (SELECT * FROM t WHERE {call}) TO 'out.csv'"):
            with self.subTest(change):
                done = self.run_oracle("--set", "quail_max_seconds=0", "-c", f"CREATE TABLE u AS FROM t; {change}")
                self.assertEqual(done.returncode, 4)
                self.assertIn("quail_max_seconds is 0: 3 inputs were left undecided", done.stderr)
                self.assertNotIn("is NULL", done.stderr)
                self.assertEqual((self.path / "out.csv").read_text(), "old")


if __name__ == "__main__":
    unittest.main()
