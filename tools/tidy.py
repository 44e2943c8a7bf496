#!/usr/bin/env python3
"""Run clang-tidy on the product's sources, each file again only when something it reads changed.

    tidy.py BUILD_FOLDER      a folder with compile_commands.json (preset tidy)

What was clean is remembered in BUILD_FOLDER/clean/ by a hash of the preprocessed file and the checks.
"""

import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/", "apps/")


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
    entries = [e for e in json.loads((build / "compile_commands.json").read_text())
               if Path(e["file"]).relative_to(ROOT).as_posix().startswith(FOLDERS)]
    if not entries:
        print("error: no source of the product in compile_commands.json", file=sys.stderr)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(filter(None, pool.map(lambda e: check(e, build, clean), entries)))
    print(*complaints, sep="\n", end="")
    print(f"clang-tidy: {len(entries)} files, {len(complaints)} with complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
