#!/usr/bin/env python3
"""Packs base weights and token ids for a training machine that has neither the model nor the sources.

    judge_pack.py weights GGUF OUT [--limit-mb 54]    OUT/weights-0.bin, weights-1.bin, ..: each under the limit
    judge_pack.py rows GGUF OUT --data DATA [--before DATA]   OUT/rows.bin: token ids, lengths, truths, split sizes, tasks;
                                                      with the test rows of other data behind its own, as another split

Blobs are xz-compressed, each behind a JSON head with its name, kind, shape and size.
"""
import argparse
import hashlib
import json
import lzma
import pathlib
import struct

import numpy as np

from gguf_file import BLOCK_BYTES, F32, read_gguf
from prompt_layout import MOST_TEXT_TOKENS, likelihood_parts, make_encoder, token_ids

SPLITS = ('train', 'word', 'kind', 'dom')


def read_rows(directory, split):
    with open(directory / f'{split}.jsonl', encoding='utf8') as file:
        return [json.loads(line) for line in file]


class BlobWriter:
    """Writes blobs to `stem`-0.bin, `stem`-1.bin, .. or, without a limit, to `stem`.bin."""

    def __init__(self, out, stem, preset, limit=None):
        self.out, self.stem, self.preset, self.limit, self.number = out, stem, preset, limit, -1
        self.next_file()

    def next_file(self):
        if self.number >= 0:
            self.file.close()
        self.number, self.written = self.number + 1, 0
        name = f'{self.stem}-{self.number}.bin' if self.limit else f'{self.stem}.bin'
        self.file = open(self.out / name, 'wb')

    def add(self, name, kind, shape, raw):
        packed = lzma.compress(raw, preset=self.preset)
        if self.limit and self.written and self.written + len(packed) > self.limit:
            self.next_file()
        head = json.dumps(dict(name=name, kind=kind, shape=list(shape), size=len(packed))).encode()
        self.file.write(struct.pack('<I', len(head)) + head + packed)
        self.written += len(packed)


def pack_weights(gguf, out, limit):
    writer = BlobWriter(out, 'weights', 2, limit)
    _, tensors = read_gguf(gguf)
    for name, tensor in sorted(tensors.items(), key=lambda item: item[0] == 'token_embd.weight'):
        stored = tensor.data
        if tensor.kind != F32:  # byte planes compress better than whole blocks
            stored = np.ascontiguousarray(stored.reshape(-1, BLOCK_BYTES[tensor.kind]).T)
        writer.add(name, tensor.kind, tensor.shape, stored.tobytes())


def read_splits(data, before):
    """[(split, rows)]; the test rows of `before`, if any, are `word before` and `kind before`."""
    splits = [(split, read_rows(data, split)) for split in SPLITS]
    return splits + [(f'{split} before', read_rows(before, split)) for split in ('word', 'kind') if before]


def pack_rows(gguf, out, data, before):
    metadata, _ = read_gguf(gguf)
    encode = make_encoder(metadata)
    ids, lengths, truths, parts, counts, tasks = [], [], [], [], {}, []
    for split, rows in read_splits(data, before):
        counts[split] = len(rows)
        for row in rows:
            if split != 'train':
                tasks.append(f'{split}: {row["source"]}')
            row_ids = token_ids(encode, row, MOST_TEXT_TOKENS)
            ids += row_ids
            parts.append([len(piece) for piece in likelihood_parts(encode, row, MOST_TEXT_TOKENS)])
            lengths.append(len(row_ids))
            truths.append(row['truth'])
    ids = np.array(ids, np.uint16)
    print('rows', counts, 'tokens', len(ids), f'mean {len(ids) / len(lengths):.1f}', 'longest', max(lengths))
    writer = BlobWriter(out, 'rows', 6)
    info = dict(counts=counts, sha256=hashlib.sha256(pathlib.Path(gguf).read_bytes()).hexdigest(), tasks=sorted(set(tasks)))
    writer.add('info', 'json', [], json.dumps(info).encode())
    number = {task: k for k, task in enumerate(info['tasks'])}
    writer.add('task', 'u8', [len(tasks)], np.array([number[task] for task in tasks], np.uint8).tobytes())  # of each test row
    writer.add('tokens_low', 'u8', ids.shape, (ids & 255).astype(np.uint8).tobytes())
    writer.add('tokens_high', 'u8', ids.shape, (ids >> 8).astype(np.uint8).tobytes())
    writer.add('lengths', 'u16', [len(lengths)], np.array(lengths, np.uint16).tobytes())
    parts = np.array(parts, np.uint16)  # [rows, 4]
    writer.add('parts', 'u16', parts.shape, parts.tobytes())
    writer.add('truths', 'u8', [len(truths)], np.array(truths, np.uint8).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['weights', 'rows'])
    parser.add_argument('gguf', type=pathlib.Path)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--data', type=pathlib.Path)
    parser.add_argument('--before', type=pathlib.Path)
    parser.add_argument('--limit-mb', type=float, default=54)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what == 'weights':
        pack_weights(arguments.gguf, arguments.out, arguments.limit_mb * 1e6)
    else:
        pack_rows(arguments.gguf, arguments.out, arguments.data, arguments.before)
    print({path.name: path.stat().st_size for path in sorted(arguments.out.glob('*.bin'))})


if __name__ == '__main__':
    main()
