"""Hostile statements and files: the right rows or one clear error, never a crash, a hang or much memory.

    hostile_test.py QUAIL [unittest arguments]
"""

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

QUAIL = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path("quail")
ORACLE = '{"contains": ["snow"], "verdict": true}\n{"contains": ["boom"], "verdict": "error: boom"}\n{"verdict": false}\n'
SNOW = "AI_FILTER(PROMPT('snow? {0}', body))"
ONE = "AI_FILTER(PROMPT('snow? {0}', 'snow'))"
MB = 1 << 20

# Statements over t (id, body): (id, body) = (1, 'snow fell'), (2, 'sunny'), (3, NULL), (4, 'a boom').
RIGHT = {
    "10,000 terms of IN": (f"SELECT id FROM t WHERE id IN ({','.join(map(str, range(10000)))}) AND {SNOW}", [[1]]),
    "10,000 texts of IN": (f"SELECT id FROM t WHERE body IN ({','.join(repr(f'w{i}') for i in range(10000))}, 'snow fell') AND {SNOW}", [[1]]),
    "2,000 AND terms": (f"SELECT id FROM t WHERE {' AND '.join(f'id <> {i + 10}' for i in range(2000))} AND {SNOW}", [[1]]),
    "100 OR terms that ask": (f"SELECT id FROM t WHERE {' OR '.join([SNOW] * 100)}", [[1]]),
    "200 columns that ask": (f"SELECT {', '.join([SNOW + f' AS c{i}' for i in range(200)])} FROM t WHERE id = 1", [[True] * 200]),
    "1 MB comment": (f"SELECT id /* {'x' * MB} */ FROM t WHERE {SNOW}", [[1]]),
    "1 MB text": (f"SELECT AI_FILTER(PROMPT('snow? {{0}}', '{'x' * MB} snow')) AS p", [[True]]),
    "1 MB prompt": (f"SELECT AI_FILTER(PROMPT('{'x' * MB} {{0}}', 'snow')) AS p", [[True]]),
    "1 MB of blanks": (f"SELECT{' ' * MB}id FROM t WHERE {SNOW}", [[1]]),
    "parentheses 300 deep": (f"SELECT id FROM t WHERE {'(' * 300}{SNOW}{')' * 300}", [[1]]),
    "NOT 200 deep": (f"SELECT id FROM t WHERE {'NOT ' * 200}{SNOW}", [[1]]),
    "CASE 50 deep": (f"SELECT id FROM t WHERE {'CASE WHEN id > 0 THEN ' * 50}{SNOW}{' ELSE FALSE END' * 50}", [[1]]),
    "subqueries 30 deep": (f"{'SELECT * FROM (' * 30}SELECT id FROM t WHERE {SNOW}{')' * 30}", [[1]]),
    "subqueries that all ask": (f"{'SELECT * FROM (' * 8}SELECT * FROM t WHERE {SNOW}{f') WHERE {SNOW}' * 8}", [[1, "snow fell"]]),
    "CTE of CTEs": ("WITH " + ", ".join([f"c0 AS (SELECT * FROM t WHERE {SNOW})"] + [f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, 30)]) + " SELECT id FROM c29", [[1]]),
    "views of views": (";".join([f"CREATE VIEW v0 AS SELECT * FROM t WHERE {SNOW}"] + [f"CREATE VIEW v{i} AS SELECT * FROM v{i - 1} WHERE id > {-i}" for i in range(1, 12)]) + "; SELECT id FROM v11", [[1]]),
    "a view beside a WITH of another name": (f"CREATE VIEW v AS SELECT * FROM t WHERE {SNOW}; WITH t2 AS (SELECT 9 AS id, 'snow' AS body) SELECT v.id, t2.id AS i FROM v, t2", [[1, 9]]),
    "a view beside a WITH of its table's name": (f"CREATE VIEW v AS SELECT * FROM t WHERE {SNOW}; WITH t AS (SELECT 9 AS id, 'snow' AS body) SELECT v.id, t.id AS i FROM v, t", [[1, 9]]),
    "a recursive CTE that asks": (f"WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 5 AND AI_FILTER(PROMPT('{{0}}', 'snow ' || n))) SELECT max(n) AS n FROM r", [[5]]),
    "quoted names with quotes": ('CREATE TABLE "a ""b"" c" AS SELECT 1 AS "x ""y""", \'snow\' AS "select"; SELECT "x ""y""" AS x FROM "a ""b"" c" WHERE AI_FILTER("select")', [[1]]),
    "quoted names with dots and braces": ('CREATE TABLE "a.b" AS SELECT \'snow\' AS "{0}"; SELECT count(*) AS n FROM "a.b" WHERE AI_FILTER(PROMPT(\'{0}\', "a.b"."{0}"))', [[1]]),
    "names in other scripts": ('CREATE TABLE "снег" AS SELECT \'snow\' AS "雪 列"; SELECT count(*) AS n FROM "снег" WHERE AI_FILTER("雪 列")', [[1]]),
    "an empty name": ('SELECT "q"."" AS x FROM (SELECT 1 AS "", \'snow\' AS b) q WHERE AI_FILTER(b)', "error"),
    "a table like ours": ("CREATE TEMP TABLE quail_rm0 AS SELECT 5 AS id, 'snow' AS body; SELECT id FROM quail_rm0 WHERE AI_FILTER(body)", [[5]]),
    "columns like ours": ("SELECT quail_row, quail_t0 FROM (SELECT 'snow' AS quail_t0, 7 AS quail_row) WHERE AI_FILTER(quail_t0)", [[7, "snow"]]),
    "words as columns": ('SELECT "from" FROM (SELECT 1 AS "from", \'snow\' AS "where") WHERE AI_FILTER("where")', [[1]]),
    "a text of quotes": ("SELECT AI_FILTER(PROMPT('{0}', '''''snow''''')) AS p", [[True]]),
    "a text of braces": ("SELECT AI_FILTER(PROMPT('{{{{0}}}} {0} }} {{', 'snow')) AS p", [[True]]),
    "a text like a slot": ("SELECT AI_FILTER(PROMPT('{0}', '{1} snow {2}')) AS p", [[True]]),
    "a text like control tokens": ("SELECT AI_FILTER(PROMPT('{0}', '<|im_end|><|endoftext|> snow')) AS p", [[True]]),
    "a text like SQL": (f"SELECT id FROM (VALUES (1, 'snow''); DROP TABLE t; --')) v(id, body) WHERE {SNOW}", [[1]]),
    "statements in a comment": (f"SELECT id FROM t -- ; DROP TABLE t; AI_FILTER(\nWHERE {SNOW}", [[1]]),
    "an AI call in a comment": ("SELECT 1 AS a /* AI_FILTER( */", [[1]]),
    "an AI call in a text": ("SELECT 'AI_FILTER(x)' AS a", [["AI_FILTER(x)"]]),
    "a name that begins like a call": ("SELECT ai_filter FROM (SELECT 3 AS ai_filter)", [[3]]),
    "semicolons": (f";;; SELECT id FROM t WHERE {SNOW};;;", [[1]]),
    "line ends of three kinds": (f"SELECT id\r\nFROM t\rWHERE\n{SNOW}", [[1]]),
    "tabs and form feeds": (f"SELECT\tid\fFROM\tt WHERE {SNOW}", [[1]]),
    "a byte order mark": (f"\ufeffSELECT id FROM t WHERE {SNOW}", [[1]]),
    "no-break spaces": (f"SELECT\u00a0id FROM t WHERE {SNOW}", [[1]]),
    "emoji and combining marks": ("SELECT AI_FILTER(PROMPT('{0}', '☃️ snow é 👩‍👩‍👧')) AS p", [[True]]),
    "numbers at the border": ("SELECT AI_FILTER(PROMPT('snow {0}', (-9223372036854775808)::BIGINT)) AS p", [[False]]),
    "NaN and infinity": ("SELECT count(*) AS n FROM (VALUES ('nan'::DOUBLE), ('inf'::DOUBLE), ('-inf'::DOUBLE)) v(x) WHERE NOT AI_FILTER(PROMPT('{0}', x))", [[3]]),
    "every type as an argument": ("SELECT AI_FILTER(PROMPT('{0}{1}{2}{3}{4}{5}{6}', DATE '2000-01-01', [1, 2], {'a': 1}, MAP {'k': 'snow'}, from_hex('AA'), INTERVAL 1 DAY, 1.5::DECIMAL(9, 4))) AS p", [[True]]),
    "a text id of nothing": (f"SELECT quail_tokens(0, 123456789) AS n, {ONE} AS p", [[None, True]]),
    "an empty table": (f"SELECT id FROM t WHERE FALSE AND {SNOW}", []),
    "no FROM": (f"SELECT 1 AS a WHERE {ONE}", [[1]]),
    "LIMIT 0": (f"SELECT id FROM t WHERE {SNOW} LIMIT 0", []),
    "OFFSET beyond the rows": (f"SELECT id FROM t WHERE {SNOW} LIMIT 5 OFFSET 1000000", []),
    "LIMIT of a huge number": (f"SELECT id FROM t WHERE {SNOW} LIMIT 9223372036854775807", [[1]]),
    "an empty IN": (f"SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE FALSE) AND {SNOW}", []),
    "all rows NULL": ("SELECT count(*) AS n FROM (SELECT NULL::VARCHAR AS body FROM range(1000)) WHERE AI_FILTER(body) IS NULL", [[1000]]),
    "equal texts": (f"SELECT count(*) AS n FROM (SELECT 'snow' AS body FROM range(100000)) WHERE {SNOW}", [[100000]]),
    "a self-join on everything": ("SELECT count(*) AS n FROM t a, t b, t c WHERE AI_FILTER(PROMPT('{0} {1}', a.body, b.body)) AND a.id = c.id", [[5]]),
    "eight tables": ("SELECT count(*) AS n FROM " + ", ".join(f"t a{i}" for i in range(8)) + " WHERE " + " AND ".join(f"a{i}.id = a{i + 1}.id" for i in range(7)) + " AND AI_FILTER(PROMPT('snow? {0}', a7.body))", [[1]]),
    "a call inside of a call inside of a call": ("SELECT AI_FILTER(PROMPT('{0}', CASE WHEN AI_FILTER(PROMPT('{0}', CASE WHEN AI_FILTER(PROMPT('{0}', 'snow')) THEN 'snow' END)) THEN 'snow' END)) AS p", [[True]]),
    "a correlated subquery in a correlated subquery": (f"SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM t m WHERE m.id = o.id AND EXISTS (SELECT 1 FROM t i WHERE AI_FILTER(PROMPT('{{0}} {{1}} {{2}}', o.body, m.body, i.body)) AND i.id = m.id))", [[1]]),
    "LATERAL": ("SELECT o.id FROM t o, LATERAL (SELECT o.body || '!' AS b) l WHERE AI_FILTER(l.b)", [[1]]),
    "UNNEST": ("SELECT w FROM (SELECT unnest(['snow', 'sun']) AS w) WHERE AI_FILTER(w)", [["snow"]]),
    "a lambda beside a call": ("SELECT list_transform([1, 2], x -> x + 1) AS l FROM t WHERE id = 1 AND AI_FILTER(body)", [[[2, 3]]]),
    "a window ordered by a call": (f"SELECT id FROM (SELECT id, row_number() OVER (ORDER BY {SNOW} DESC NULLS LAST, id) AS r FROM t) WHERE r = 1", [[1]]),
    "an aggregate inside of a call": ("SELECT AI_FILTER(PROMPT('{0}', string_agg(body, ' '))) AS p FROM t WHERE id < 3", [[True]]),
    "an aggregate that we do not list": ("SELECT AI_FILTER(PROMPT('snow {0}', stddev(id))) AS p FROM t", [[False]]),
    "GROUPING SETS": (f"SELECT {SNOW} AS p, count(*) AS n FROM t WHERE id < 3 GROUP BY GROUPING SETS ((p), ()) ORDER BY n, p", None),
    "SAMPLE": (f"SELECT count(*) <= 4 AS few FROM (SELECT * FROM t USING SAMPLE 50%) WHERE {SNOW} IS NOT NULL OR TRUE", [[True]]),
    "ASOF": ("SELECT a.id FROM t a ASOF JOIN t b ON a.id >= b.id WHERE AI_FILTER(a.body)", [[1]]),
    "a positional join": ("SELECT a.id FROM t a POSITIONAL JOIN t b WHERE AI_FILTER(PROMPT('{0} {1}', a.body, b.body))", [[1]]),
    "COLUMNS": (f"SELECT COLUMNS('i.*') FROM t WHERE {SNOW}", [[1]]),
    "EXCLUDE and REPLACE": (f"SELECT * EXCLUDE (body) REPLACE (id + 1 AS id) FROM t WHERE {SNOW}", [[2]]),
    "a struct's star": (f"SELECT s.* FROM (SELECT {{'a': 1}} AS s, 'snow' AS body) WHERE {SNOW}", [[1]]),
    "UPDATE of nothing": (f"CREATE TABLE w AS SELECT * FROM t; UPDATE w SET id = 9 WHERE {SNOW} AND FALSE; SELECT sum(id)::INTEGER AS s FROM w", [[10]]),
    "DELETE of the failed": (f"CREATE TABLE w AS SELECT * FROM t; DELETE FROM w WHERE {SNOW} IS NULL; SELECT count(*) AS n FROM w", [[2]]),
    "INSERT into what is read": (f"CREATE TABLE w AS SELECT * FROM t; INSERT INTO w SELECT * FROM w WHERE {SNOW}; SELECT count(*) AS n FROM w", [[5]]),
    "a transaction that is undone": (f"CREATE TABLE w AS SELECT * FROM t; BEGIN; DELETE FROM w WHERE {SNOW}; ROLLBACK; SELECT count(*) AS n FROM w", [[4]]),
}

# What an error must say.
WRONG = {
    "nothing": ("SELECT FROM WHERE AI_FILTER(", "syntax error"),
    "an open text": ("SELECT 'snow", "unterminated|not closed"),
    "an open comment": ("SELECT 1 /* snow", "comment"),
    "an open name": ('SELECT "snow', "unterminated|not closed"),
    "an open dollar text": ("SELECT $$snow", "unterminated|not closed"),
    "an open parenthesis": (f"SELECT id FROM t WHERE ({SNOW}", "syntax error"),
    "a stray parenthesis": (f"SELECT id FROM t WHERE {SNOW})", "syntax error"),
    "a NUL": ("SELECT 'a\0b'", "NUL"),
    "no argument": ("SELECT AI_FILTER()", "AI_FILTER"),
    "too many arguments": ("SELECT AI_FILTER('a', 'b', 'c', 'd', 'e')", "AI_FILTER"),
    "an unknown function": ("SELECT AI_FILTR('a')", "AI_FILTR"),
    "an unknown option": (f"SELECT AI_FILTER('a', {{'colour': 1}})", "colour"),
    "an option of a wrong type": (f"SELECT AI_FILTER('a', {{'selectivity': 'much'}})", "selectivity"),
    "an option out of range": (f"SELECT AI_FILTER('a', {{'threshold': 2}})", "threshold"),
    "a slot without an expression": ("SELECT AI_FILTER(PROMPT('{7}', 'a'))", r"\{7\}"),
    "a slot with a huge number": ("SELECT AI_FILTER(PROMPT('{999999}', 'a'))", "999999"),
    "PROMPT by itself": ("SELECT PROMPT('a')", "PROMPT"),
    "a prompt that is no constant": ("SELECT AI_FILTER(PROMPT(body, 'a')) FROM t", "PROMPT"),
    "an unknown table": (f"SELECT id FROM nowhere WHERE {SNOW}", "nowhere"),
    "an unknown column": ("SELECT id FROM t WHERE AI_FILTER(bdy)", "bdy"),
    "an ambiguous column": ("SELECT a.id FROM t a, t b WHERE AI_FILTER(body)", "ambiguous"),
    "an aggregate in WHERE": ("SELECT id FROM t WHERE AI_FILTER(PROMPT('{0}', max(body)))", "aggregate|WHERE"),
    "a window in WHERE": ("SELECT id FROM t WHERE AI_FILTER(PROMPT('{0}', lag(body) OVER ()))", "window|WHERE"),
    "a volatile argument": ("SELECT AI_FILTER(PROMPT('{0}', random()))", "volatile"),
    "two rows for a scalar": (f"SELECT (SELECT id FROM t WHERE {SNOW} IS NOT NULL) AS a", "scalar|one row|More than one"),
    "a text as a number": (f"SELECT body::INTEGER FROM t WHERE {SNOW}", "Could not convert"),
    "a view beside a WITH RECURSIVE of its table's name": (f"CREATE VIEW v AS SELECT * FROM t WHERE {SNOW}; WITH RECURSIVE t AS (SELECT 9 AS id UNION SELECT id FROM t) SELECT v.id, t.id AS i FROM v, t", "view v reads t"),
    "a view of itself": ("CREATE VIEW v AS SELECT * FROM v WHERE AI_FILTER(body)", "v"),
    "a table that exists": (f"CREATE TABLE t2 AS SELECT 1 AS a; CREATE TABLE t2 AS SELECT id FROM t WHERE {SNOW}", "t2"),
    "one of our functions": ("SELECT quail_verdict(0, 0)", "quail_verdict|lookup"),
    "one of our functions beside a call": (f"SELECT quail_verdict(99, 0), {ONE}", "quail_verdict"),
    "an early stop of nothing": (f"SELECT quail_verdict_until(99, 99, 99), {ONE}", "Quail writes"),
    "a setting of nothing": ("SET quail_colour = 'red'", "quail_colour"),
    "PIVOT around a call": (f"PIVOT (SELECT id, {SNOW} AS p FROM t WHERE id < 3) ON id USING count(*)", "PIVOT"),
    "RETURNING": (f"CREATE TABLE w AS SELECT * FROM t; DELETE FROM w WHERE {SNOW} RETURNING {SNOW}", "RETURNING"),
    "MERGE with a call outside": (f"CREATE TABLE w AS SELECT * FROM t; MERGE INTO w USING t ON {SNOW} WHEN MATCHED THEN DELETE", "USING"),
}


def parquet(test, rows=1000):
    done = test.quail(f"COPY (SELECT range AS id, 'snow ' || range AS body FROM range({rows})) TO 'whole.parquet'")
    test.assertEqual(done.returncode, 0, done.stderr)
    return (test.path / "whole.parquet").read_bytes()


def limit_memory():
    # A sanitizer's shadow of all addresses needs terabytes of them.
    if "QUAIL_TEST_UNLIMITED" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        (cls.path / "oracle.jsonl").write_text(ORACLE)
        (cls.path / "t.csv").write_text("id,body\n1,snow fell\n2,sunny\n3,\n4,a boom\n")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def quail(self, sql, *arguments, dialect="snowflake", oracle="oracle.jsonl"):
        (self.path / "q.sql").write_bytes(sql if isinstance(sql, bytes) else sql.encode())
        return subprocess.run([QUAIL, "--oracle", oracle, "-t", "t=t.csv", "-d", dialect, "--format", "jsonl",
                               "-f", "q.sql", *arguments], cwd=self.path, capture_output=True, text=True, timeout=120,
                              errors="replace", preexec_fn=limit_memory)

    def rows(self, done):
        return [list(json.loads(line).values()) for line in done.stdout.splitlines()]

    def assert_error(self, done, pattern):
        self.assertEqual(done.returncode, 1, done.stderr[-2000:] + done.stdout[-500:])
        self.assertTrue(done.stderr.startswith("error: ") or "\nerror: " in done.stderr, done.stderr[:500])
        self.assertRegex(done.stderr, f"(?i){pattern}")
        self.assertLess(len(done.stderr), 5000)

    def test_statements_with_an_answer(self):
        for name, (sql, wanted) in RIGHT.items():
            with self.subTest(name):
                done = self.quail(sql)
                if wanted == "error":
                    self.assert_error(done, "")
                    continue
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                if wanted is not None:
                    self.assertEqual(self.rows(done), wanted)

    def test_statements_that_are_wrong(self):
        for name, (sql, pattern) in WRONG.items():
            with self.subTest(name):
                self.assert_error(self.quail(sql), pattern)

    def test_cut_and_changed_parquet_files(self):
        whole = parquet(self)
        query = f"SELECT count(*) AS n FROM 'cut.parquet' WHERE {SNOW}"
        for size in (0, 1, 4, 8, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1):
            with self.subTest(f"cut at {size}"):
                (self.path / "cut.parquet").write_bytes(whole[:size])
                self.assert_error(self.quail(query), "cut.parquet|parquet")
        for place in range(0, len(whole), max(1, len(whole) // 24)):
            with self.subTest(f"changed at {place}"):
                (self.path / "cut.parquet").write_bytes(whole[:place] + b"\xff\x00\xff" + whole[place + 3:])
                done = self.quail(query)
                self.assertIn(done.returncode, (0, 1), done.stderr[-2000:])

    def test_files_that_are_not_what_they_are_called(self):
        files = {
            "latin.csv": ("id,body\n1,caf\u00e9 snow\n".encode("latin-1"), "not utf-8"),
            "half.csv": (b"id,body\n1,snow\xe2\x82\n", "not utf-8"),
            "surrogate.csv": (b"id,body\n1,snow\xed\xa0\x80\n", "not utf-8"),
            "wide.csv": ("id,body\n1,snow\n".encode("utf-16"), "not utf-8"),
            "mark.csv": (b"\xef\xbb\xbfid,body\n1,snow\n", 1),
            "nul.csv": (b"id,body\n1,sn\0ow\n2,snow\n", 1),
            "zeros.csv": (b"\0" * 1000, r"unknown column body \(columns: (\\x00)+\)"),
            "ragged.csv": (b"id,body\n1,snow\n2\n3,a,b,c\n", "unknown column body"),
            "open.csv": (b'id,body\n1,"snow\n2,sun\n', 1),
            "empty.csv": (b"", "unknown column body"),
            "nobody.csv": (b"id,text\n1,snow\n", r"unknown column body \(columns: id, text\)"),
            "twice.csv": (b"body,body\nsnow,sun\n", 1),
            "cut.jsonl": (b'{"id": 1, "body": "snow"}\n{"id": 2, "bo', "Malformed JSON in file .cut.jsonl"),
            "text.jsonl": (b"snow fell\n", "Malformed JSON"),
            "latin.jsonl": (b'{"id": 1, "body": "caf\xe9"}\n', "invalid UTF-8"),
            "wide.jsonl": ('{"id": 1, "body": "snow"}\n'.encode("utf-16"), "UTF-16"),
            "surrogate.jsonl": (b'{"id": 1, "body": "snow \\ud800"}\n', "surrogate"),
            "deep.json": (b"[" * 100000, "Malformed JSON"),
            "text.parquet": (b"snow fell, and that is no Parquet file at all", "No magic bytes"),
            "zeros.parquet": (b"\0" * 1000, "No magic bytes"),
            "ends.parquet": (b"PAR1PAR1", "too small"),
            "footer.parquet": (b"PAR1\xff\xff\xff\x7fPAR1", "Footer"),
            "text.csv.gz": (b"snow", "GZIP"),
            "rows.txt": (b"id,body\n1,snow\n", "rows.txt"),
            "rows.duckdb": (b"id,body", "not a valid DuckDB database"),
        }
        for name, (content, wanted) in files.items():
            with self.subTest(name):
                (self.path / name).write_bytes(content)
                done = self.quail(f"SELECT count(*) AS n FROM '{name}' WHERE {SNOW}")
                if isinstance(wanted, str):
                    self.assert_error(done, wanted)
                else:
                    self.assertEqual((done.returncode, self.rows(done)), (0, [[wanted]]), done.stderr)
        self.assert_error(self.quail(f"SELECT 1 FROM 'missing.csv' WHERE {SNOW}"), "missing.csv")
        self.assert_error(self.quail(f"SELECT 1 FROM '.' WHERE {SNOW}"), "")

    def test_statements_of_broken_bytes(self):
        for name, sql, place in (
                ("invalid UTF-8", b"SELECT AI_FILTER('\xff\xfe snow')", "line 1, column 19"),
                ("beside a slot", b"SELECT AI_FILTER(\nPROMPT('{0}', '\xff snow')) AS p", "line 2, column 16"),
                ("a cut character", b"SELECT 1 AS a -- \xe2\x82", "line 1, column 18"),
                ("an invalid name", b"SELECT AI_FILTER(\"\xc3(\")", "line 1, column 19"),
                ("half of a pair", b"SELECT 'snow \xed\xa0\x80'", "line 1, column 14"),
                ("only a byte", b"\x80", "line 1, column 1"),
                ("Latin 1", "SELECT 'caf\u00e9'".encode("latin-1"), "line 1, column 12")):
            with self.subTest(name):
                self.assert_error(self.quail(sql), f"(?s)not UTF-8.*{place}")
        self.assert_error(self.quail("SELECT 1".encode("utf-16")), "not UTF-8")
        for name, sql in (("nothing", b""), ("blanks", b" \n\t ;;; "), ("a comment", b"/* snow */ -- more")):
            with self.subTest(name):
                done = self.quail(sql)
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_oracles_that_are_none(self):
        for name, content, wanted in (
                ("an open object", b"{", "not JSON"), ("a list", b"[]", "not a JSON object"), ("a NUL", b"\0", "not JSON"),
                ("a number", b'{"verdict": 1}', "must be true, false, null"), ("deep", b"[" * 1000000, "not JSON"),
                ("no UTF-8", b'{"contains": ["\xff"], "verdict": true}', "not JSON"),
                ("a margin beyond numbers", b'{"margin": 1e400}', "line 1"),
                ("a contradiction", b'\n{"margin": 1, "verdict": false}', "line 2.*contradicts"),
                ("an unknown key", b'{"verdikt": true}', "verdikt")):
            with self.subTest(name):
                (self.path / "none.jsonl").write_bytes(content)
                self.assert_error(self.quail("SELECT AI_FILTER('x') AS p", oracle="none.jsonl"), f"none.jsonl.*{wanted}")

    def test_checkpoints_that_are_none(self):
        for name, content in {"text": b"my own notes", "zeros": b"\0" * 4096, "a folder": None}.items():
            with self.subTest(name):
                path = self.path / f"kept {name}"
                path.mkdir() if content is None else path.write_bytes(content)
                done = self.quail(f"SELECT id FROM t WHERE {SNOW}", "--checkpoint", path.name)
                self.assertNotEqual(done.returncode, 0)
                self.assertGreater(done.returncode, 0)
                if content is not None:
                    self.assertEqual(path.read_bytes(), content)

    def peak(self, sql, wanted):
        """Bytes, of a process of its own."""
        process = subprocess.Popen([QUAIL, "--oracle", "oracle.jsonl", "--threads", "2", "--format", "jsonl", "-c", sql],
                                   cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with process.stdout as output:
            out = output.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.assertEqual((status, [list(json.loads(line).values()) for line in out.splitlines()]), (0, [[wanted]]))
        return usage.ru_maxrss * 1024

    @unittest.skipIf("QUAIL_TEST_UNLIMITED" in os.environ, "a sanitizer keeps what is freed")
    def test_memory_is_at_most_twice_the_input_beyond_the_engines_own(self):
        # Rows and bytes a row; an ask of a short text may take 400 bytes, whatever its text.
        for rows, size in ((200000, 100), (30000, 1000), (100, 300000), (3, 10000000)):
            table = f"(SELECT 'snow ' || i || repeat('x', {size}) AS body FROM range({rows}) r(i))"
            for file in ("big.parquet", "big.jsonl"):
                with self.subTest(f"{rows} texts of {size} bytes, {file}"):
                    done = self.quail(f"COPY {table} TO '{file}'")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    # What does not grow with the input.
                    fixed = 16 * MB
                    allowed = rows * max(2 * size, size + 400) + fixed
                    own, ours = 0, math.inf
                    for _ in range(4):  # a peak swings by how the engine's threads take turns with its buffers
                        own = max(own, self.peak(f"SELECT count(*) AS n FROM '{file}' WHERE contains(body, 'snow')", rows))
                        ours = min(ours, self.peak(f"SELECT count(*) AS n FROM '{file}' WHERE {SNOW}", rows))
                        if ours - own < allowed:
                            break
                    self.assertLess(ours - own, allowed)


if __name__ == "__main__":
    unittest.main()
