#!/usr/bin/env python3
"""Evaluates the embedded judge on the CPU in float32, from the GGUF and an adapter, without any learning framework.

    evaluate.py [--gguf FILE] [--adapter FILE | --raw] [--rows FILE.jsonl ..] [--save MARGINS.npy] [--least-auc X]

Prints AUC / accuracy at margin 0 / calibration error per source of the rows (default: tests/data/judge_eval.jsonl).
With --least-auc the exit status is 1 if the AUC over all rows is lower.
"""
import argparse
import json
import pathlib
import struct
import sys

import numpy as np

from gguf_file import dequantised, read_gguf, to_half_split
from judge_scores import auc, summary
from prompt_layout import FALSE_IDS, TRUE_IDS, make_tokenizer, token_ids

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
        self.tokenizer = make_tokenizer(self.metadata)

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

    def margins(self, lists):
        """(scaled margins, label mass) of token lists."""
        order = sorted(range(len(lists)), key=lambda k: len(lists[k]))
        margins, mass = np.zeros(len(lists), np.float32), np.zeros(len(lists), np.float32)
        while order:
            count = max(1, min(len(order), BATCH_TOKENS // len(lists[order[min(len(order) - 1, 63)]])))
            numbers, order = order[:count], order[count:]
            margins[numbers], mass[numbers] = self.batch([lists[k] for k in numbers])
        return margins, mass

    def batch(self, lists):
        longest = max(map(len, lists))
        ids = np.array([ids + [0] * (longest - len(ids)) for ids in lists])
        x = self.weights['token_embd.weight'][ids]
        for layer in range(self.layers):
            x = x + self.attention(self.norm(x, self.weights[f'blk.{layer}.attn_norm.weight']), layer)
            x = x + self.ffn(self.norm(x, self.weights[f'blk.{layer}.ffn_norm.weight']), layer)
        last = x[np.arange(len(lists)), [len(ids) - 1 for ids in lists]]
        logits = self.norm(last, self.weights['output_norm.weight']) @ self.weights['token_embd.weight'].T
        yes, no = logits[:, list(TRUE_IDS)], logits[:, list(FALSE_IDS)]
        top = logits.max(1, keepdims=True)
        mass = np.exp(np.concatenate([yes, no], 1) - top).sum(1) / np.exp(logits - top).sum(1)
        return (yes.max(1) - no.max(1)) * self.margin_scale, mass

    def judge(self, rows):
        return self.margins([token_ids(self.tokenizer, row) for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--gguf', type=pathlib.Path, default=MODEL)
    parser.add_argument('--adapter', type=pathlib.Path, default=ADAPTER)
    parser.add_argument('--raw', action='store_true', help='the base model without an adapter')
    parser.add_argument('--rows', type=pathlib.Path, nargs='+', default=[ROOT / 'tests/data/judge_eval.jsonl'])
    parser.add_argument('--save', type=pathlib.Path)
    parser.add_argument('--least-auc', type=float, default=0)
    arguments = parser.parse_args()
    rows = [json.loads(line) for path in arguments.rows for line in path.read_text(encoding='utf8').splitlines()]
    margins, mass = JudgeModel(arguments.gguf, None if arguments.raw else arguments.adapter).judge(rows)
    truths = np.array([row['truth'] for row in rows], int)
    sources = np.array([row['source'] for row in rows])
    print(f'{"source":28s}{"n":>6s}   AUC / accuracy / calibration error')
    for source in ['all', *dict.fromkeys(sources)]:
        of = np.ones(len(rows), bool) if source == 'all' else sources == source
        print(f'{source:28s}{of.sum():6d}   {summary(margins[of], truths[of])}')
    print(f'label mass {mass.mean():.4f}')
    if arguments.save:
        np.save(arguments.save, margins)
    if auc(margins, truths) < arguments.least_auc:
        sys.exit(f'AUC {auc(margins, truths):.3f} is below {arguments.least_auc}')


if __name__ == '__main__':
    main()
