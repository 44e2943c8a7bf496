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

    def test_standard_streams_that_are_closed_or_full(self):
        def run(redirections, *arguments):
            return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirections}', QUAIL, "--oracle", "oracle.jsonl",
                                   "-t", "t=t.csv", *arguments],
                                  cwd=self.path, text=True, capture_output=True, timeout=60)
        for redirections in ("2>&-", "2>/dev/full", "<&- 2>&-"):
            with self.subTest(redirections):  # There is a notice that cannot be told.
                done = run(redirections, "-v", "-c", FILTER)
                self.assertEqual((done.returncode, done.stdout), (0, "id\n1\n"))
                self.assertEqual(run(redirections, "-c", "SELECT nope").returncode, 1)
                self.assertEqual(run(redirections, "--report", "-", "-c", FILTER).returncode, 1)
        self.assertEqual(run("<&-").returncode, 0)
        # The database that is opened must not be what the rows are written to.
        for redirections in (">&-", "<&- >&-", ">/dev/full"):
            with self.subTest(redirections):
                done = run(redirections, "kept.db", "-c", "CREATE OR REPLACE TABLE k AS SELECT 7 AS a; FROM k")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(self.run_quail("kept.db", "-c", "FROM k").stdout, "a\n7\n")
                self.assertEqual(run(redirections, "models").returncode, 1)
        self.assertIn("the log cannot be written", run("", "--log", "/dev/full", "-c", FILTER).stderr)

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

    def test_a_pattern_of_files_is_a_table_of_that_name(self):
        for name, rows in (("y=1", "1,snow\n2,sun\n"), ("y=2", "3,snow\n")):
            (self.path / name).mkdir()
            (self.path / name / "f.csv").write_text("id,body\n" + rows)
        for query in ("SELECT filename, count(*) FROM '*/f.csv' WHERE {} GROUP BY filename ORDER BY 1",
                      "SELECT \"*/f.csv\".filename, y FROM '*/f.csv' WHERE {} ORDER BY 2",
                      "SELECT filename, id FROM '*/f.csv' WHERE filename <> '' AND {} ORDER BY filename DESC",
                      "SELECT a.id, y FROM '*/[f].csv' JOIN 't.csv' a USING (id) WHERE y > 1 AND {}"):
            with self.subTest(query):
                call = "AI_FILTER(PROMPT('snow? {0}', \"*/f.csv\".body))"
                if "[f]" in query:
                    call = call.replace("*/f", "*/[f]")
                done = self.run_oracle("-c", query.format(call))
                plain = self.run_quail("-c", query.format(call.replace("AI_FILTER(PROMPT(", "contains(").replace(
                    "'snow? {0}', ", "").replace("body))", "body, 'snow')")))
                self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr + plain.stderr)

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

    def test_a_comment_behind_a_semicolon_does_not_hold_the_statement(self):
        for script in ("SELECT 1 AS a; -- one\n.dialect\n", "SELECT 1 AS a; /* ; */ // ;\n.dialect\n",
                       "-- ; first\n/* a\n.dialect\n*/\nSELECT 1 AS a;\n-- then\n.dialect\n"):
            done = self.run_quail(input=script)
            self.assertEqual((done.stdout, done.stderr), ("a\n1\nsnowflake\n", ""), script)
        done = self.run_quail(input="SELECT ';' AS a, -- ;\n2 /* ;\n */ AS b\n; -- end")
        self.assertEqual(done.stdout, "a,b\n;,2\n")

    def test_a_text_that_is_wrong_does_not_hold_what_follows(self):
        for wrong in ("SELECT 'it''s';", "SELECT '\\q'\n;", "SELECT '\0';"):
            done = self.run_quail("-d", "bigquery", input=wrong + "\nSELECT 2 AS a;\n.dialect\n")
            self.assertEqual((done.stdout, done.returncode), ("a\n2\nbigquery\n", 1), wrong)
            self.assertTrue(done.stderr.startswith("error: "), done.stderr)

    def test_commands_take_no_more_than_they_say(self):
        for command in (".tables t", ".report run.json", ".help .report", ".quit 1"):
            done = self.run_quail(input=command + "\nSELECT 2 AS a;\n")
            self.assertEqual((done.stdout, done.returncode), ("a\n2\n", 1))
            self.assertIn("takes no argument", done.stderr)
        self.assertEqual(self.run_quail(input=".report\n").stderr, "error: no statement with AI calls has been run yet\n")
        self.assertEqual(self.run_quail(input=".timer\ton\n.timer\n").stdout, "on\n")

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
        self.assertIn('"CREATE VIEW v AS SELECT body, ai_filter(prompt(\'snow? {0}\', body)) AS p FROM t;"', done.stdout)
        done = self.run_quail("-t", "t=t.csv", input="ATTACH ':memory:' AS o; CREATE TABLE o.t(a INT); CREATE SCHEMA s; "
                              "CREATE TABLE s.t(a INT); CREATE VIEW u AS SELECT 1;\n.tables\n")
        self.assertEqual(done.stdout, "name,type\no.main.t,BASE TABLE\ns.t,BASE TABLE\nt,VIEW\nu,VIEW\n")
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
