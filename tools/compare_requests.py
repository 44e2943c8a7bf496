#!/usr/bin/env python3
"""Compares cuda_requests_benchmark's answers with another engine's for the same requests.

    compare_requests.py OURS ANSWERS.npz [REPORT.json]

OURS is the benchmark's folder (NAME.answers.u32, NAME.gaps.f32); the arrays of ANSWERS.npz are called NAME_SEED_BATCH
and hold an id a request. Prints how many agree and, of those that do not, our gap between best and second logit: a
flip at a gap that is small beside the usual one is a near tie. Needs numpy.
"""
import json
import sys
from pathlib import Path

import numpy as np


def compare(name, ours, gaps, theirs):
    flips = np.flatnonzero(ours != theirs)
    deviation = float(np.sqrt(np.mean(gaps.astype(np.float64) ** 2)))
    shares = np.sort(gaps[flips] / deviation)
    print(f"{name}: {len(ours) - len(flips)} of {len(ours)} agree; gap's root mean square {deviation:.4f}; flips at "
          f"{', '.join(f'{share:.4f}' for share in shares[-12:]) or 'none'} of it"
          f"{' (the largest 12)' if len(shares) > 12 else ''}")
    return {"requests": len(ours), "flips": len(flips), "gap_rms": deviation,
            "flips_listed": [{"request": int(i), "gap_share": float(gaps[i] / deviation), "ours": int(ours[i]),
                              "theirs": int(theirs[i])} for i in flips[:400]],
            "flip_gap_share_largest": float(shares[-1]) if len(shares) else 0.0,
            "gap_share_of_1_percent": float(np.quantile(gaps / deviation, 0.01))}


def main():
    folder, answers = Path(sys.argv[1]), np.load(sys.argv[2])
    report = {}
    for key in answers:
        name = key.split("_")[0]
        if not (folder / f"{name}.answers.u32").exists():
            continue
        report[name] = compare(name, np.fromfile(folder / f"{name}.answers.u32", "<u4"),
                               np.fromfile(folder / f"{name}.gaps.f32", "<f4"), answers[key])
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(0 if report else 1)


if __name__ == "__main__":
    main()
