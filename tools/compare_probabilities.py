#!/usr/bin/env python3
"""How two runs of one AI_PROB query agree: between backends, chunk sizes, numeric modes.

    compare_probabilities.py FIRST.csv SECOND.csv [--noise SHARE]

Each file has a header and the columns id, p. Prints the margins' RMS difference as a share of their standard
deviation, and every flip with both margins (log-odds). Exit status 1 when the sets of ids differ, or when a flip
lies outside the noise: |margin| of the first run above SHARE (default 0.15, three times the RMS that bf16 is
allowed) of the standard deviation.
"""

import argparse
import csv
import json
import math
import statistics


def margins(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = {row["id"]: float(row["p"]) for row in csv.DictReader(file)}
    return {key: math.log(p) - math.log1p(-p) for key, p in rows.items() if 0 < p < 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--noise", type=float, default=0.15)
    options = parser.parse_args()
    first, second = margins(options.first), margins(options.second)
    if first.keys() != second.keys() or len(first) < 2:
        raise SystemExit(f"error: {len(first)} and {len(second)} usable rows, or other ids")
    deviation = statistics.pstdev(first.values())
    rms = math.sqrt(statistics.fmean((first[i] - second[i]) ** 2 for i in first))
    flips = sorted((abs(first[i]), i) for i in first if (first[i] > 0) != (second[i] > 0))
    outside = [i for size, i in flips if size > options.noise * deviation]
    print(json.dumps({"rows": len(first), "margin_deviation": deviation,
                      "rms_share": rms / deviation,
                      "largest_share": max(abs(first[i] - second[i]) for i in first) / deviation,
                      "flips": len(flips), "flips_outside_noise": len(outside)}))
    for _, i in flips:
        print(f"flip id {i}: {first[i]:+.4f} {second[i]:+.4f}")
    return 1 if outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
