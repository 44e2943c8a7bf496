#!/usr/bin/env python3
"""Run clang-tidy on the product's sources, each file again only when something it reads changed.

    tidy.py BUILD_FOLDER                the files that differ from the branch `main` of origin
    tidy.py BUILD_FOLDER PATH ..        these files, or all below these folders
    tidy.py BUILD_FOLDER src apps       all; about twenty minutes of one core

BUILD_FOLDER has compile_commands.json (preset tidy). A header is checked with a source that includes
it. What was clean is remembered in BUILD_FOLDER/clean/ by a hash of the preprocessed file and the
checks.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/", "apps/")


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files():
    """Paths that differ from where this branch left origin's main, uncommitted ones included."""
    base = git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    return git("diff", "--name-only", base[0]) + git("ls-files", "-o", "--exclude-standard")


def source_of(header, sources):
    """The source that checks a header: its own, else one that includes it, else None."""
    own = header.removesuffix(".h") + ".cpp"
    if own in sources:
        return own
    name = header.removeprefix("src/").removeprefix("include/")
    line = re.compile(rf'^#include "(?:{re.escape(name)}|{re.escape(Path(name).name)})"', re.M)
    return next((s for s in sources if line.search((ROOT / s).read_text())), None)


def chosen(paths, sources):
    """The sources to check for what the user names; empty: for what changed."""
    if paths:
        named = [Path(os.path.relpath(p, ROOT)).as_posix() for p in paths]
        headers = [n for n in named if n.endswith(".h")]
        folders = tuple(f"{n}/" for n in named)
        found = {s for s in sources if s in named or s.startswith(folders)}
    else:
        changed = changed_files()
        headers = [c for c in changed if c.endswith(".h") and (ROOT / c).exists()]
        found = set(sources).intersection(changed)
    return found | {source_of(h, sources) for h in headers} - {None}


def preprocessed_hash(entry):
    """Hash of all text that the compiler sees, or None when the file does not preprocess."""
    command = shlex.split(entry["command"])
    output = command.index("-o")
    command[output:output + 2] = []
    command[command.index("-c")] = "-E"
    done = subprocess.run([*command, "-P"], cwd=entry["directory"], capture_output=True)
    if done.returncode != 0:
        return None
    return hashlib.sha256(done.stdout + (ROOT / ".clang-tidy").read_bytes()).hexdigest()


def check(entry, build, clean):
    """clang-tidy's complaints about one file; empty when it is clean."""
    key = preprocessed_hash(entry)
    if key and (clean / key).exists():
        return ""
    done = subprocess.run(["clang-tidy-16", "-p", build, "--quiet", entry["file"]],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout + done.stderr
    if key:
        (clean / key).touch()
    return ""


def main():
    build = Path(sys.argv[1])
    clean = build / "clean"
    clean.mkdir(exist_ok=True)
    commands = json.loads((build / "compile_commands.json").read_text())
    sources = {Path(e["file"]).relative_to(ROOT).as_posix(): e for e in commands}
    sources = {path: e for path, e in sources.items() if path.startswith(FOLDERS)}
    files = chosen(sys.argv[2:], list(sources))
    if sys.argv[2:] and not files:
        print("error: no source of the product there", file=sys.stderr)
        return 1
    entries = [sources[path] for path in sorted(files)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(filter(None, pool.map(lambda e: check(e, build, clean), entries)))
    print(*complaints, sep="\n", end="")
    print(f"clang-tidy: {len(entries)} files, {len(complaints)} with complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
