"""tools/fetch_deps.py on small wheels served from a local folder through pip's own settings."""

import functools
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "fetch_deps.py"


def has_pip():
    return subprocess.run([sys.executable, "-c", "import pip"], capture_output=True).returncode == 0


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@unittest.skipUnless(has_pip(), "this Python has no pip")
class FetchDepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.wheels = self.root / "wheels"
        self.wheels.mkdir()
        wheel = self.wheels / "tiny_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("tiny/weights.bin", b"weights")
            archive.writestr("tiny/include/a.h", b"int a;")
            archive.writestr("tiny/include/deep/b.h", b"int b;")
        self.write_lock(wheel)

    def write_lock(self, archive, member="tiny/weights.bin", file_hash="", archive_hash=None):
        archive_hash = archive_hash or hashlib.sha256(archive.read_bytes()).hexdigest()
        (self.root / "deps.lock").write_text(f"""
[[package]]
name = "tiny-model"
version = "1.0"
group = "core"
file = "{archive.name}"
sha256 = "{archive_hash}"
[[package.extract]]
from = "{member}"
to = "models/weights.bin"
sha256 = "{file_hash}"
[[package.extract]]
from = "tiny/include/"
to = "tiny/include/"
""")

    def run_tool(self, *arguments, find_links=True, index_url=None):
        settings = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        settings |= {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0",
                     "XDG_CACHE_HOME": str(self.root / "cache")}
        if index_url:
            settings["PIP_INDEX_URL"] = index_url
        else:
            settings["PIP_NO_INDEX"] = "1"
            if find_links:
                settings["PIP_FIND_LINKS"] = str(self.wheels)
        return subprocess.run(
            [sys.executable, "-B", TOOL, "--lock", self.root / "deps.lock", "--deps",
             self.root / "deps", *arguments], env=settings, capture_output=True, text=True)

    def fetch(self, **options):
        return self.run_tool("--group", "core", **options)

    def assert_one_line_error(self, done, expected):
        self.assertEqual(1, done.returncode)
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertIn(expected, done.stderr)

    def read(self, path):
        return (self.root / "deps" / path).read_text()

    def test_lays_out_files_and_folders(self):
        done = self.fetch()
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("weights", self.read("models/weights.bin"))
        self.assertEqual("int b;", self.read("tiny/include/deep/b.h"))

    def test_second_run_needs_neither_index_nor_cache(self):
        self.fetch()
        cached = self.root / "cache/quail/packages/tiny_model-1.0-py3-none-any.whl"
        cached.unlink()
        done = self.fetch(find_links=False)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))

    def test_missing_file_comes_back_from_the_cache(self):
        self.fetch()
        (self.root / "deps/tiny/include/a.h").unlink()
        self.assertEqual(0, self.fetch(find_links=False).returncode)
        self.assertEqual("int a;", self.read("tiny/include/a.h"))

    def test_damaged_cache_is_fetched_again(self):
        self.fetch()
        cached = self.root / "cache/quail/packages/tiny_model-1.0-py3-none-any.whl"
        cached.write_bytes(b"damaged")
        (self.root / "deps/models/weights.bin").unlink()
        done = self.fetch()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("fetching", done.stdout)
        self.assertEqual("weights", self.read("models/weights.bin"))

    def test_wrong_archive_hash(self):
        self.write_lock(self.wheels / "tiny_model-1.0-py3-none-any.whl", archive_hash="0" * 64)
        self.assert_one_line_error(self.fetch(), "wrong SHA-256 of tiny_model-1.0")
        self.assertFalse((self.root / "deps/models/weights.bin").exists())

    def test_wrong_file_hash(self):
        self.write_lock(self.wheels / "tiny_model-1.0-py3-none-any.whl", file_hash="1" * 64)
        self.assert_one_line_error(self.fetch(), "wrong SHA-256 of tiny/weights.bin")
        self.assertFalse((self.root / "deps/models/weights.bin").exists())

    def test_member_not_in_archive(self):
        self.write_lock(self.wheels / "tiny_model-1.0-py3-none-any.whl", member="tiny/absent")
        self.assert_one_line_error(self.fetch(), "holds no tiny/absent")

    def test_no_index(self):
        self.assert_one_line_error(self.fetch(find_links=False), "no package index reached")

    def serve(self):
        """An index in the simple form on this computer; its address."""
        page = self.wheels / "simple" / "tiny-model" / "index.html"
        page.parent.mkdir(parents=True)
        name = "tiny_model-1.0-py3-none-any.whl"
        page.write_text(f'<!DOCTYPE html><html><body><a href="../../{name}">{name}</a></body></html>')
        handler = functools.partial(QuietHandler, directory=str(self.wheels))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/simple"

    def test_index_of_the_settings(self):
        done = self.fetch(index_url=self.serve())
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("weights", self.read("models/weights.bin"))

    def test_index_that_does_not_answer(self):
        self.assert_one_line_error(self.fetch(index_url="http://127.0.0.1:1/simple"),
                                   "no package index reached for tiny-model")

    def test_unknown_group(self):
        self.assert_one_line_error(self.run_tool("--group", "gpu"), "no group gpu")

    def test_package_without_extract_goes_into_the_venv(self):
        lock = self.root / "deps.lock"
        lock.write_text(lock.read_text().partition("[[package.extract]]")[0])
        self.assert_one_line_error(self.run_tool("--group", "core", "--venv", self.root / "absent"),
                                   "is no virtual environment")

    def test_sdist_is_not_built(self):
        sdist = self.wheels / "tiny_model-1.0.tar.gz"
        setup = b"raise SystemExit('the build step ran')"
        with tarfile.open(sdist, "w:gz") as archive:
            for name, content in (("setup.py", setup), ("tiny/weights.bin", b"source"),
                                  ("tiny/include/a.h", b"int s;")):
                member = tarfile.TarInfo(f"tiny_model-1.0/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        self.write_lock(sdist)
        self.assertEqual(0, self.fetch().returncode)
        self.assertEqual("source", self.read("models/weights.bin"))

    def test_unwritable_target(self):
        (self.root / "deps").write_text("a file where the folder should be")
        self.assert_one_line_error(self.fetch(), "File exists")


if __name__ == "__main__":
    unittest.main()
