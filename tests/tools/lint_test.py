"""Each rule of tools/lint.py finds its violation and leaves the allowed form alone."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import lint


def lines(count):
    return "  Step();\n" * count


class LintTest(unittest.TestCase):
    def found(self, path, text, others=None):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in {path: text, **(others or {})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            return [message for _, _, message in lint.check_tree(root)[0]]

    def assert_found(self, path, text, expected, others=None):
        found = self.found(path, text, others)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def assert_clean(self, path, text, others=None):
        self.assertEqual([], self.found(path, text, others))

    def test_names(self):
        self.assert_found("src/base/string_utils.h", "#pragma once\n", "utils")
        self.assert_found("src/base/sort_v2.h", "#pragma once\n", "v2")
        self.assert_found("src/base/TextStore.h", "#pragma once\n", "snake_case")
        self.assert_clean("src/base/newline.h", "#pragma once\n")
        self.assert_clean("tests/unit/relational/old_duckdb.h", "#pragma once\n")

    def test_pragma_once(self):
        self.assert_found("src/base/a.h", "int a;\n", "#pragma once")

    def test_catch(self):
        swallowed = "void F() {\n  try {\n  } catch (...) {\n    Log();\n  }\n  throw 1;\n}\n"
        self.assert_found("src/sql/a.cpp", swallowed, "thrown on")
        self.assert_clean("apps/cli/main.cpp", swallowed)
        self.assert_clean("src/sql/a.cpp", swallowed.replace("Log()", "if (a) { throw Error(); }"))
        self.assert_clean("src/sql/a.cpp", "// catch (this) {}\n")

    def test_print(self):
        self.assert_found("src/sql/a.cpp", "void F() { std::cout << 1; }\n", "does not print")
        self.assert_found("src/sql/a.cpp", 'void F() { printf("x"); }\n', "does not print")
        self.assert_clean("src/sql/a.cpp", "void F() { std::snprintf(b, 1, f); }\n")

    def test_arrow_scan(self):
        self.assert_found("src/sql/a.cpp", "x = duckdb_arrow_" "scan;\n", "drops filters")

    def test_todo(self):
        self.assert_found("src/sql/a.cpp", "// TODO: later\n", "names its issue")
        self.assert_clean("src/sql/a.cpp", "// TODO(#12): later\n")

    def test_disabled_tests(self):
        self.assert_found("tests/a_test.cpp", "void F() { GTEST_SKIP(); }\n", "says why")
        self.assert_clean("tests/a_test.cpp", 'void F() { GTEST_SKIP() << "no data"; }\n')
        self.assert_found("tests/a_test.cpp", "TEST(A, DISABLED_B) {}\n", "names its issue")
        self.assert_clean("tests/a_test.cpp", "// #7: flaky clock\nTEST(A, DISABLED_B) {}\n")
        self.assert_found("python/tests/t.py", "@pytest.mark.skip\ndef t(): pass\n", "says why")

    def test_place(self):
        self.assert_found("docs/a.md", "see /wor" "k/main\n", "one computer")
        self.assert_clean("docs/a.md", "see /works/main and work/main\n")

    def test_file_size(self):
        self.assert_found("src/sql/a.cpp", "int a;\n" * 701, "limit is 700")
        self.assert_clean("src/sql/a.cpp", "int a;\n" * 700)

    def test_function_size(self):
        self.assert_found("src/sql/a.cpp", f"void F() {{\n{lines(100)}}}\n", "F has 102 lines")
        self.assert_clean("src/sql/a.cpp", f"void F() {{\n{lines(98)}}}\n")
        self.assert_clean("src/infer/models/a.cpp", f"void F() {{\n{lines(140)}}}\n")
        self.assert_found("src/infer/models/a.cpp", f"void F() {{\n{lines(149)}}}\n", "151 lines")

    def test_function_in_class_and_namespace(self):
        text = f"namespace a {{\nclass B {{\n  int F() const {{\n{lines(120)}  }}\n}};\n}}\n"
        self.assert_found("src/sql/a.cpp", text, "F has 122 lines")

    def test_braces_in_literals_do_not_count(self):
        text = "void F() {\n  Use(\"{{{\", '{', R\"(}}})\", 1'000);\n}\nvoid G() {\n}\n"
        self.assertEqual([("F", 3), ("G", 2)],
                         [(name, length) for _, length, _, name in lint.functions_of(text)])

    def test_parameters(self):
        self.assert_found("src/sql/a.cpp", "void F(int a, int b, int c, int d, int e, int f) {}\n",
                          "6 parameters")
        self.assert_clean("src/sql/a.cpp", "void F(std::map<int, int> a, int b, int c, int d) {}\n")
        self.assert_clean("src/sql/a.cpp", "A a[] = {F(1, 2, 3, 4, 5, 6), A{.b = 1}};\n")
        self.assert_found("src/sql/a.cpp", "A::A(int a, int b, int c, int d, int e, int f)\n"
                          "    : a_(a), b_{b} {\n}\n", "6 parameters")

    def test_source_missing_from_cmake(self):
        lists = {"src/sql/CMakeLists.txt": "quail_library(sql SOURCES other_a.cpp b.cpp)"}
        self.assert_found("src/sql/a.cpp", "int a;\n", "not in src/sql/CMakeLists.txt", lists)
        self.assert_clean("src/sql/b.cpp", "int a;\n", lists)

    def test_paths_in_pages(self):
        files = {"src/plan/binder.h": "#pragma once\n", "src/a.bin": "\0", "docs/sql.md": "# SQL\n"}
        self.assert_found("README.md", "see `plan/blinder`, `plan/binder.h` ..\n", "plan/blinder", files)
        self.assert_found("README.md", "[a](docs/sqk.md)\n", "docs/sqk.md", files)
        self.assert_found("docs/a.md", "[a](docs/sql.md)\n", "docs/docs/sql.md", files)
        self.assert_clean("docs/a.md", "[a](sql.md#x) [b](../src/) `plan/binder` `src/a.bin`,"
                          " `./dev x`, `build/x`, `src/<name>.h`\n", files)


if __name__ == "__main__":
    unittest.main()
