#!/usr/bin/env python3
"""Repeats the embedded judge's training from nothing: sources, rows, teachers and judge on the GPU, tables, adapter file.

    train.py [WORKDIR] [--seeds 0] [--speeches FILE.jsonl.gz] [--install] [--extra OPTIONS]
    train.py [WORKDIR] --prepare [--before COMMIT]     everything that needs no GPU: WORKDIR/pack is what judge_plan.py needs

WORKDIR (default: build/judge) keeps all stages; one that is there already is not made again. `./dev judge-train` installs
what this needs: PyTorch with a CUDA GPU, numpy, tokenizers, safetensors. The trainings are the plan `recipe` of judge_plan.py,
within 20 minutes of an H200 for one seed or two and as much again for every two more (two seeds took 19). Of several seeds the one
with the best AUC on unseen kinds is written to WORKDIR/adapter.safetensors, with --install to models/; their mean is only measured.
--before packs the test rows that the programs of an older commit make, so that a table shows old and new rules side by side.
--extra goes to every training: "--steps 2 --batch 4" tries the program without a GPU.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from evaluate import ADAPTER, MODEL, ROOT
from judge_scores import auc
from judge_table import read_rows

HERE = pathlib.Path(__file__).resolve().parent
PLAN_SECONDS = 1200  # of a plan with one seed, or with two beside each other


def run(script, *arguments):
    program = [] if script.endswith('.sh') else [sys.executable]
    subprocess.run([*program, str(HERE / script), *map(str, arguments)], check=True)


def rows_before(work, commit):
    """The folder of the test rows that `commit` makes of the same sources."""
    code, data = work / f'code-{commit}', work / f'data-{commit}'
    if not (data / 'kind.jsonl').exists():
        code.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(['git', '-C', ROOT, 'archive', commit, 'tools/judge'], check=True, capture_output=True).stdout
        subprocess.run(['tar', '-x', '-C', code], input=archive, check=True)
        subprocess.run([sys.executable, code / 'tools/judge/judge_data.py', work / 'sources', data], check=True)
    return data


def prepare(work, gguf, speeches, before):
    if not (work / 'sources').exists():
        run('judge_sources.sh', work / 'sources')
    if not (work / 'data/train.jsonl').exists():
        run('judge_data.py', work / 'sources', work / 'data')
        run('domain_tests.py', work / 'sources', work / 'data', *(['--speeches', speeches] if speeches else []))
    if not (work / 'pack/weights-0.bin').exists():
        run('judge_pack.py', 'weights', gguf, work / 'pack')
    if not (work / 'pack/rows.bin').exists():
        older = ['--before', rows_before(work, before)] if before else []
        run('judge_pack.py', 'rows', gguf, work / 'pack', '--data', work / 'data', *older)


def train(work, seeds, extra):
    """Runs what is not there yet; returns the .npz of the seeds, and a list of that of their mean, empty for one seed."""
    runs = work / 'runs'
    run('judge_plan.py', work / 'pack', runs, 'recipe', '--gpus', 0, '--extra', extra,
        '--seconds', PLAN_SECONDS * -(-len(seeds) // 2), '--seeds', *seeds)
    if not (runs / 'raw.npz').exists():
        run('judge_train.py', work / 'pack', runs / 'raw', '--raw')
    trained, mean = [runs / f's{seed}.npz' for seed in seeds], [runs / 'mean.npz'] if len(seeds) > 1 else []
    missing = [path.stem for path in trained + mean if not path.exists()]
    if missing:
        sys.exit(f'not trained: {", ".join(missing)}; see the .log files in {runs}')
    return trained, mean


def best_first(data, runs):
    """The runs in falling order of their AUC on unseen kinds; domain tests choose nothing."""
    rows = read_rows(data)
    of = np.array([row['split'] == 'kind' for row in rows])
    truths = np.array([row['truth'] for row in rows], int)[of]
    return sorted(runs, key=lambda path: -auc(np.load(path)['margins'][:len(rows)][of], truths))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work', type=pathlib.Path, nargs='?', default=ROOT / 'build/judge')
    parser.add_argument('--gguf', type=pathlib.Path, default=MODEL)
    parser.add_argument('--seeds', type=int, nargs='+', default=[0])
    parser.add_argument('--speeches', type=pathlib.Path)
    parser.add_argument('--prepare', action='store_true')
    parser.add_argument('--before', metavar='COMMIT')
    parser.add_argument('--install', action='store_true')
    parser.add_argument('--extra', default='', help='options of judge_train.py for every training')
    arguments = parser.parse_args()
    work = arguments.work
    prepare(work, arguments.gguf, arguments.speeches, arguments.before)
    if arguments.prepare:
        return
    seeds, mean = train(work, arguments.seeds, arguments.extra)
    seeds = best_first(work / 'data', seeds)
    run('judge_table.py', work / 'data', *seeds, *mean, '--base', work / 'runs/raw.npz', '--gguf', arguments.gguf, '--adapter',
        seeds[0].with_suffix('.safetensors'), work / 'adapter.safetensors')
    if arguments.install:
        shutil.copy(work / 'adapter.safetensors', ADAPTER)


if __name__ == '__main__':
    main()
