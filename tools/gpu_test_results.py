#!/usr/bin/env python3
"""Gathers what the parts of the GPU tests left (tools/gpu_suite.sh) into one JSON file.

    gpu_test_results.py FOLDER CONTEXT FILE

FOLDER has PROGRAM.PART.json (GoogleTest's), .log and .exit for each part; CONTEXT is a JSON object that says where and
when. A part that left no JSON, or another exit code than 0, is a failure, and so is a program of which nothing ran:
what did not run has not passed. Prints the logs of failed parts and a summary; exit code 1 when one failed.
"""
import json
import sys
from pathlib import Path


def read_part(exit_file):
    """(counts of the part, its tests' numbers, whether it failed)."""
    code = int(exit_file.read_text())
    report = exit_file.with_suffix(".json")
    part = {"ran": 0, "passed": 0, "failed": [], "skipped": []}
    numbers = {}
    if report.exists():
        for suite in json.loads(report.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                name = f"{suite['name']}.{test['name']}"
                if test.get("result") == "SKIPPED":
                    part["skipped"].append(name)
                    continue
                if test.get("status") != "RUN":
                    continue
                part["ran"] += 1
                if "failures" in test:
                    part["failed"].append(name)
                else:
                    part["passed"] += 1
                known = {"name", "file", "line", "status", "result", "timestamp", "time", "classname", "failures",
                         "type_param", "value_param"}
                measured = {key: float(value) for key, value in test.items() if key not in known}
                if measured:
                    numbers[name] = measured
    failed = code != 0 or not report.exists()
    if failed:
        print(exit_file.with_suffix(".log").read_text(errors="replace"))
        print(f"== {exit_file.stem}: FAILED (exit {code})")
        if not part["failed"]:
            part["failed"].append(f"{exit_file.stem}: exit {code}")
    return part, numbers, failed


def main():
    folder, context, file = Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
    programs, numbers, failed = {}, {}, False
    for exit_file in sorted(folder.glob("*.exit")):
        part, measured, part_failed = read_part(exit_file)
        failed |= part_failed
        numbers |= measured
        program = programs.setdefault(exit_file.name.split(".")[0],
                                      {"ran": 0, "passed": 0, "failed": [], "skipped": []})
        for key, value in part.items():
            program[key] += value
    for name, program in programs.items():
        failed |= program["ran"] == 0
        print(f"{name}: {program['ran']} ran, {program['passed']} passed, {len(program['failed'])} failed, "
              f"{len(program['skipped'])} skipped")
    context |= {"programs": programs, "measured": numbers}
    file.write_text(json.dumps(context, indent=1) + "\n")
    print(f"results in {file}")
    sys.exit(1 if failed or not programs else 0)


if __name__ == "__main__":
    main()
