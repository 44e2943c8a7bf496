#!/usr/bin/env python3
"""Evaluates the embedded judge on the CPU in float32, from the GGUF and adapters, without any learning framework.

    evaluate.py [--gguf FILE] [--adapter FILE ..] [--rows FILE.jsonl ..] [--only-adapters] [--least-auc X]

Prints AUC / accuracy at margin 0 / calibration error per task of the rows (default: tests/data/judge_eval.jsonl): of each
adapter (default: the shipped one; several seeds also get their mean and spread), of the raw model, of the likelihood of the
question given the text (raw model), and of shared keywords. The last two have no zero: theirs is fitted on these rows.
With --least-auc the exit status is 1 if the first adapter's AUC over all rows is lower.
"""
import argparse
import json
import pathlib
import struct
import sys

import numpy as np

from gguf_file import dequantised, read_gguf, to_half_split
from judge_scores import auc, fitted, keyword_scores, summary
from prompt_layout import FALSE_IDS, TRUE_IDS, likelihood_parts, make_encoder, token_ids

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_TOKENS = 4096
MODEL = ROOT / '.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf'
ADAPTER = ROOT / 'models/smollm2-135m-judge/adapter.safetensors'


def read_adapter(path):
    """(tensors {name: float32 array}, metadata) of a safetensors file of float16 tensors."""
    data = path.read_bytes()
    size, = struct.unpack_from('<Q', data)
    head = json.loads(data[8:8 + size])
    metadata = head.pop('__metadata__', {})
    tensors = {}
    for name, entry in head.items():
        start, end = entry['data_offsets']
        if entry['dtype'] != 'F16':
            raise ValueError(f'{path}: {name} is {entry["dtype"]}, expected F16')
        tensors[name] = np.frombuffer(data[8 + size + start:8 + size + end], np.float16).reshape(
            entry['shape']).astype(np.float32)
    return tensors, metadata


class JudgeModel:
    """Float32 forward pass of a llama-type GGUF, adapter merged."""

    def __init__(self, gguf, adapter=None):
        self.metadata, tensors = read_gguf(gguf)
        get = lambda key: self.metadata['llama.' + key]
        self.layers, self.heads, self.kv_heads = get('block_count'), get('attention.head_count'), get('attention.head_count_kv')
        self.epsilon, self.base = get('attention.layer_norm_rms_epsilon'), get('rope.freq_base')
        self.head = get('embedding_length') // self.heads
        factors, about = read_adapter(adapter) if adapter else ({}, {})
        self.margin_scale = float(about.get('margin_scale', 1))
        scale = float(about['alpha']) / float(about['rank']) if about else 0
        self.weights = {}
        for name, tensor in tensors.items():
            weight = dequantised(tensor)
            stem = name.removesuffix('.weight')
            if stem + '.lora_a' in factors:
                weight = weight + scale * factors[stem + '.lora_b'] @ factors[stem + '.lora_a']
            if stem.endswith(('attn_q', 'attn_k')):
                weight = to_half_split(weight, self.heads if stem.endswith('q') else self.kv_heads)
            self.weights[name] = weight
        self.encode = make_encoder(self.metadata)

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * weight

    def rotate(self, x):
        """x [rows, heads, length, head]."""
        half = self.head // 2
        angles = np.outer(np.arange(x.shape[2]), self.base ** (-np.arange(half) / half)).astype(np.float32)
        cos, sin = np.cos(angles), np.sin(angles)
        low, high = x[..., :half], x[..., half:]
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)

    def attention(self, x, layer):
        rows, length, width = x.shape
        part = lambda name, heads: (x @ self.weights[f'blk.{layer}.{name}.weight'].T).reshape(
            rows, length, heads, self.head).transpose(0, 2, 1, 3)
        spread = lambda t: np.repeat(t, self.heads // self.kv_heads, 1)
        query, key = self.rotate(part('attn_q', self.heads)), spread(self.rotate(part('attn_k', self.kv_heads)))
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(self.head))
        scores += np.triu(np.full((length, length), -1e9, np.float32), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = scores / scores.sum(-1, keepdims=True) @ spread(part('attn_v', self.kv_heads))
        mixed = mixed.transpose(0, 2, 1, 3).reshape(rows, length, width)
        return mixed @ self.weights[f'blk.{layer}.attn_output.weight'].T

    def ffn(self, x, layer):
        weight = lambda name: self.weights[f'blk.{layer}.{name}.weight'].T
        gate = x @ weight('ffn_gate')
        return (gate / (1 + np.exp(-gate)) * (x @ weight('ffn_up'))) @ weight('ffn_down')

    def batches(self, lists):
        """Row numbers of batches of similar length."""
        order = sorted(range(len(lists)), key=lambda k: len(lists[k]))
        while order:
            count = max(1, min(len(order), BATCH_TOKENS // len(lists[order[min(len(order) - 1, 63)]])))
            yield order[:count]
            order = order[count:]

    def states(self, lists):
        """[rows, longest, width] normed states of right-padded token lists."""
        longest = max(map(len, lists))
        x = self.weights['token_embd.weight'][np.array([ids + [0] * (longest - len(ids)) for ids in lists])]
        for layer in range(self.layers):
            x = x + self.attention(self.norm(x, self.weights[f'blk.{layer}.attn_norm.weight']), layer)
            x = x + self.ffn(self.norm(x, self.weights[f'blk.{layer}.ffn_norm.weight']), layer)
        return self.norm(x, self.weights['output_norm.weight'])

    def margins(self, lists):
        """(scaled margins, label mass) of token lists."""
        margins, mass = np.zeros(len(lists), np.float32), np.zeros(len(lists), np.float32)
        for numbers in self.batches(lists):
            states = self.states([lists[k] for k in numbers])
            last = states[np.arange(len(numbers)), [len(lists[k]) - 1 for k in numbers]]
            logits = last @ self.weights['token_embd.weight'].T
            yes, no = logits[:, list(TRUE_IDS)], logits[:, list(FALSE_IDS)]
            top = logits.max(1, keepdims=True)
            mass[numbers] = np.exp(np.concatenate([yes, no], 1) - top).sum(1) / np.exp(logits - top).sum(1)
            margins[numbers] = (yes.max(1) - no.max(1)) * self.margin_scale
        return margins, mass

    def log_likelihood(self, lists, counts):
        """Sum of log P of the last `counts` tokens of each list, each given all before it."""
        sums = np.zeros(len(lists), np.float32)
        for numbers in self.batches(lists):
            states = self.states([lists[k] for k in numbers])
            for row, k in enumerate(numbers):
                end, count = len(lists[k]), counts[k]
                logits = states[row, end - count - 1:end - 1] @ self.weights['token_embd.weight'].T
                top = logits.max(1)
                chosen = logits[np.arange(count), lists[k][end - count:]]
                sums[k] = (chosen - top - np.log(np.exp(logits - top[:, None]).sum(1))).sum()
        return sums

    def likelihood_gains(self, rows):
        """How much likelier a row's text makes its question (or partner): log P with the text less log P without."""
        parts = [likelihood_parts(self.encode, row) for row in rows]
        counts = [len(scored) for *_, scored in parts]
        behind = self.log_likelihood([head + text + between + scored for head, text, between, scored in parts], counts)
        alone = self.log_likelihood([head + between + scored for head, _, between, scored in parts], counts)
        return behind - alone

    def judge(self, rows):
        return self.margins([token_ids(self.encode, row) for row in rows])


def columns_of(rows, truths, arguments):
    """{name: margins} of the baselines and adapters."""
    columns = {'keywords': fitted(keyword_scores(rows), truths)}
    if not arguments.only_adapters:
        raw = JudgeModel(arguments.gguf)
        columns['likelihood'] = fitted(raw.likelihood_gains(rows), truths)
        columns['raw model'] = raw.judge(rows)[0]
    for path in arguments.adapter:
        margins, mass = JudgeModel(arguments.gguf, path).judge(rows)
        columns[path.stem] = margins
        print(f'{path.name}: label mass {mass.mean():.4f}, least {mass.min():.4f}')
    return columns


def tasks_of(rows):
    """{task: row numbers}: all, every source, every question of the example tables."""
    found = {'all': list(range(len(rows)))}
    for number, row in enumerate(rows):
        found.setdefault(row['source'], []).append(number)
        if row['source'].startswith('examples'):
            found.setdefault('- ' + row['kind'], []).append(number)
    return found


def print_table(rows, truths, columns, seeds):
    print(f'{"task":28s}{"n":>5s}' + ''.join(f'{name:>19s}' for name in columns)
          + (f'{"mean AUC (spread)":>20s}' if len(seeds) > 1 else '') + '   AUC / accuracy / calibration error')
    for task, numbers in tasks_of(rows).items():
        line = f'{task:28s}{len(numbers):5d}'
        line += ''.join(f'{summary(margins[numbers], truths[numbers]):>19s}' for margins in columns.values())
        if len(seeds) > 1 and 0 < truths[numbers].sum() < len(numbers):
            values = [auc(columns[seed][numbers], truths[numbers]) for seed in seeds]
            line += f'{np.mean(values):>12.3f} ({max(values) - min(values):.3f})'
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--gguf', type=pathlib.Path, default=MODEL)
    parser.add_argument('--adapter', type=pathlib.Path, nargs='+', default=[ADAPTER], help='several: the seeds of one recipe')
    parser.add_argument('--only-adapters', action='store_true', help='no baselines')
    parser.add_argument('--rows', type=pathlib.Path, nargs='+', default=[ROOT / 'tests/data/judge_eval.jsonl'])
    parser.add_argument('--least-auc', type=float, default=0)
    arguments = parser.parse_args()
    rows = [json.loads(line) for path in arguments.rows for line in path.read_text(encoding='utf8').splitlines()]
    truths = np.array([row['truth'] for row in rows], int)
    columns = columns_of(rows, truths, arguments)
    seeds = [path.stem for path in arguments.adapter]
    print_table(rows, truths, columns, seeds)
    reached = auc(columns[seeds[0]], truths)
    if reached < arguments.least_auc:
        sys.exit(f'AUC {reached:.3f} of {seeds[0]} is below {arguments.least_auc}')


if __name__ == '__main__':
    main()
