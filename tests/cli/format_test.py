"""The formats of rows, on standard output and in the files of -o.

    format_test.py QUAIL [unittest arguments]
"""

import json
import os
import subprocess
import unittest

import cli_test


class Formats(cli_test.CliTest):
    QUERY = "SELECT 1 AS a, 'x, \"y\"' AS b, NULL AS c, '' AS b, [1, 2] AS l"

    def test_csv(self):
        self.assertEqual(self.run_quail("--format", "csv", "-c", self.QUERY).stdout,
                         'a,b,c,b,l\n1,"x, ""y""",,"","[1, 2]"\n')

    def test_a_statement_that_fails_before_its_first_row_writes_nothing(self):
        for form in ("csv", "tsv", "json", "jsonl", "markdown", "table"):
            for query in ("SELECT error('no') AS a", "SELECT CAST(body AS INT) AS a FROM t", cli_test.FILTER.replace("id", "CAST(body AS INT)", 1)):
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

    def test_a_description_is_written_as_other_rows_are(self):
        for call in ("", ", AI_FILTER(PROMPT('{0}', 'x')) AS b"):
            rows = json.loads(self.run_oracle("--format", "json", "-q", "-c", f"DESCRIBE SELECT 1 AS a{call}").stdout)
            self.assertEqual(rows[0], {"column_name": "a", "column_type": "INTEGER", "null": "YES", "key": None,
                                       "default": None, "extra": None})
            self.assertEqual([row["column_name"] for row in rows], ["a", "b"][:len(rows)])

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
                    subprocess.run([cli_test.QUAIL, "-o", name, "--format", form, "-c", "SELECT 1 AS a"], cwd=self.path, stdout=file)
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
        done = self.run_oracle("--format", "parquet", "-o", "out.parquet", "-c", cli_test.FILTER)
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
        self.run_oracle("-c", cli_test.FILTER, "-o", "chosen.arrow")
        self.assertEqual(self.run_oracle("-c", cli_test.FILTER.replace("FROM t", "FROM 'a.arrow' x JOIN 'chosen.arrow' USING (id)")).stdout,
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
        done = self.run_oracle("-o", "out.csv", "-c", cli_test.FILTER)
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
        done = self.run_oracle("--explain", "--format", "jsonl", "-c", cli_test.FILTER)
        self.assertIn("AI_FILTER", done.stdout)
        json.loads(self.run_oracle("--explain=json", "-c", cli_test.FILTER).stdout)


if __name__ == "__main__":
    unittest.main()
