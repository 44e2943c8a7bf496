"""A violation of each kind, in a small tree, is found; a clean tree is not blamed."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers

LAYERS = """
include/quail:
src/base:
src/sql:        base
src/plan:       base sql
src/infer:      base
src/session:    api base sql plan infer
apps/cli:       api
bench:          api
bench/kernels:  api base infer
"""


class CheckLayersTest(unittest.TestCase):
    def violations(self, files, layers=LAYERS):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in {"tools/layers.txt": layers, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check_layers.check_tree(root)

    def assert_found(self, files, expected, layers=LAYERS):
        found = self.violations(files, layers)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_layer_without_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src/base").mkdir(parents=True)
            self.assertEqual(["tools/layers.txt: there is no src/sql"],
                             check_layers.check_folders(Path(folder), {"src/base": set(), "src/sql": set()}))

    def test_allowed_directions(self):
        self.assertEqual([], self.violations({
            "include/quail/session.h": '#include "quail/error.h"\n#include "quail/config.h"\n',
            "src/base/a.h": '#include <vector>\n#include "quail/error.h"\n',
            "src/plan/a.cpp": '#include "plan/a.h"\n#include "sql/ast.h"\n#include "base/a.h"\n',
            "src/session/a.cpp": '#include "quail/session.h"\n#include "infer/a.h"\n',
            "src/infer/cuda/a.cu": "#include <cuda_runtime.h>\n",
            "bench/kernels/a.cpp": '#include "infer/backend.h"\n',
            "python/module.cpp": "#include <nanobind/nanobind.h>\n",
        }, LAYERS + "python: api\n"))

    def test_wrong_direction(self):
        self.assert_found({"src/sql/a.cpp": '#include "plan/a.h"\n'}, "src/sql may not include")

    def test_wrong_direction_in_angle_brackets(self):
        self.assert_found({"src/base/a.h": "#include <sql/ast.h>\n"}, "src/base may not include")

    def test_base_sees_only_the_error_type(self):
        self.assert_found({"src/base/a.h": '#include "quail/session.h"\n'}, "(api)")

    def test_apps_see_only_the_public_headers(self):
        self.assert_found({"apps/cli/main.cpp": '#include "sql/ast.h"\n'}, "apps/cli may not")

    def test_only_kernel_benchmarks_see_the_engine(self):
        self.assert_found({"bench/a.cpp": '#include "infer/backend.h"\n'}, "bench may not")

    def test_public_header_includes_no_source(self):
        self.assert_found({"include/quail/a.h": '#include "base/a.h"\n'}, "include/quail may not")

    def test_include_beside_the_file(self):
        self.assert_found({"src/sql/a.cpp": '#include "ast.h"\n'}, "by its path")

    def test_include_upwards(self):
        self.assert_found({"src/sql/a.cpp": '#include "../plan/a.h"\n'}, "by its path")

    def test_unknown_folder(self):
        self.assert_found({"src/extra/a.cpp": '#include "base/a.h"\n'}, "not in layers.txt")

    def test_cuda_header(self):
        self.assert_found({"src/infer/a.cpp": "#include <cuda_runtime.h>\n"}, "CUDA header")

    def test_python_header(self):
        self.assert_found({"src/session/a.cpp": "#include <Python.h>\n"}, "Python header")

    def test_link_against_the_direction(self):
        self.assert_found(
            {"src/sql/CMakeLists.txt": "quail_library(sql SOURCES a.cpp LINK quail_plan)"},
            "may not link quail_plan")

    def test_cycle_in_the_layers_themselves(self):
        self.assert_found({}, "can reach itself", "src/a: b\nsrc/b: c\nsrc/c: a\n")


if __name__ == "__main__":
    unittest.main()
