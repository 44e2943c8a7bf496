#!/usr/bin/env python3
"""Quail's CPU backend and llama.cpp on one model file, in one run, on the same token ids.

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python==0.3.36
    bench/infer/compare_llama.py MODEL.gguf --tool build/release/bench/infer/prefill_benchmark

Work: documents of 300 tokens (what a filter reads), each an own sequence, several in a batch; and
partners of 15 tokens after an anchor of 4,000 whose KV is held, by llama.cpp one after the other
(the suffix's KV is removed after each) and as sequences that share the prefix in one batch.
llama.cpp runs every format asked for, with and without flash attention, and the best counts.

Figures are per second of wall and of processor time. With one thread on each side (the default) the
second is what other work on the machine does not change; llama.cpp's threads spin while they wait
for each other, so with more threads on a busy machine its processor time says little.
"""
import argparse
import ctypes
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import llama_cpp as llama

DOCUMENT, CHUNK, ANCHOR, PARTNER = 300, 2048, 4000, 15
LOOPED = 8  # pairs one after the other, of those in a batch
FTYPES = {"f32": 0, "bf16": 32, "q8_0": 7}


class Ids:
    """The ids that prefill_benchmark makes."""

    def __init__(self):
        self.state = 1

    def take(self, count):
        ids = []
        for _ in range(count):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            ids.append((self.state >> 8) % 49000)
        return ids


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def best(rounds, body):
    wall, processor = [], []
    for _ in range(rounds):
        before, start = processor_seconds(), time.monotonic()
        body()
        wall.append(time.monotonic() - start)
        processor.append(processor_seconds() - before)
    return min(wall), min(processor)


class Peer:
    """llama.cpp through its C API."""

    def __init__(self, path, threads, flash, sequences):
        self.model = llama.llama_model_load_from_file(str(path).encode(),
                                                      llama.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        params = llama.llama_context_default_params()
        params.n_ctx = ANCHOR + CHUNK + 64
        params.n_batch = params.n_ubatch = CHUNK
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1 if flash else 0
        params.kv_unified = True
        params.no_perf = True
        self.context = llama.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit("llama.cpp gives no context")
        self.memory = llama.llama_get_memory(self.context)

    def close(self):
        llama.llama_free(self.context)
        llama.llama_model_free(self.model)

    def clear(self):
        llama.llama_memory_clear(self.memory, False)

    def decode(self, sequences):
        """sequences: (id, first position, tokens); the last token of each gives logits."""
        total = sum(len(tokens) for _, _, tokens in sequences)
        batch = llama.llama_batch_init(total, 0, 1)
        row = 0
        for number, first, tokens in sequences:
            for i, token in enumerate(tokens):
                batch.token[row] = token
                batch.pos[row] = first + i
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = number
                batch.logits[row] = i + 1 == len(tokens)
                row += 1
        batch.n_tokens = total
        status = llama.llama_decode(self.context, batch)
        llama.llama_batch_free(batch)
        if status != 0:
            raise SystemExit(f"llama_decode: {status}")


def documents(peer, rounds):
    ids = Ids()
    texts = [ids.take(DOCUMENT) for _ in range(CHUNK // DOCUMENT)]

    def body():
        peer.clear()
        peer.decode([(i, 0, text) for i, text in enumerate(texts)])

    wall, processor = best(rounds, body)
    return len(texts) * DOCUMENT / wall, len(texts) * DOCUMENT / processor


def joins(peer, pairs, rounds):
    ids = Ids()
    for _ in range(CHUNK // DOCUMENT):
        ids.take(DOCUMENT)
    anchor = ids.take(ANCHOR)
    partners = [ids.take(PARTNER) for _ in range(pairs)]
    peer.clear()
    for begin in range(0, ANCHOR, CHUNK):
        peer.decode([(0, begin, anchor[begin:begin + CHUNK])])

    def loop():
        for partner in partners[:LOOPED]:
            peer.decode([(0, ANCHOR, partner)])
            llama.llama_memory_seq_rm(peer.memory, 0, ANCHOR, -1)

    def batched():
        for number in range(1, pairs + 1):
            llama.llama_memory_seq_cp(peer.memory, 0, number, 0, ANCHOR)
        peer.decode([(number + 1, ANCHOR, text) for number, text in enumerate(partners)])
        for number in range(1, pairs + 1):
            llama.llama_memory_seq_rm(peer.memory, number, -1, -1)

    one = [LOOPED / seconds for seconds in best(rounds, loop)]
    many = [pairs / seconds for seconds in best(rounds, batched)]
    return one, many


def quantised(path, folder, name, threads):
    target = Path(folder) / f"{name}.gguf"
    params = llama.llama_model_quantize_default_params()
    params.ftype = FTYPES[name]
    params.nthread = threads
    params.allow_requantize = True
    if llama.llama_model_quantize(str(path).encode(), str(target).encode(),
                                  ctypes.byref(params)) != 0:
        raise SystemExit(f"cannot rewrite {path} as {name}")
    return target


def quail(tool, model, threads, types):
    """{type: {kind: (a second of wall, a second of processor time)}}"""
    command = [tool, model, str(threads), *types]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(text)
    found = {}
    for name, section in zip(types, re.split(r"^.* own loops .*\n", text, flags=re.M)[1:], strict=True):
        found[name] = {}
        for kind in ("documents", "join"):
            match = re.search(rf"^{kind}\s+([\d.]+) \S+ of wall,\s+([\d.]+)", section, re.M)
            found[name][kind] = (float(match[1]), float(match[2]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--formats", default="as-is,f32,bf16,q8_0", help="of llama.cpp")
    parser.add_argument("--types", default="f32,bf16,int8", help="of Quail")
    parser.add_argument("--flash", choices=["on", "off", "both"], default="both")
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if args.pairs < LOOPED:
        parser.error(f"--pairs: at least the {LOOPED} that go one after the other")
    silence = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(silence, ctypes.c_void_p(0))
    llama.llama_backend_init()

    types = args.types.split(",")
    own = quail(args.tool, str(args.model), args.threads, types)
    best_of = {"wall": {}, "processor time": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.formats.split(","):
            path = args.model if name == "as-is" else quantised(args.model, folder, name,
                                                                args.threads)
            for flash in {"on": [True], "off": [False], "both": [True, False]}[args.flash]:
                peer = Peer(path, args.threads, flash, args.pairs + 1)
                label = f"{name}, flash attention {'on' if flash else 'off'}"
                measured = {"documents": documents(peer, args.rounds)}
                measured["loop"], measured["batched"] = joins(peer, args.pairs, args.rounds)
                peer.close()
                for kind, (wall, processor) in measured.items():
                    print(f"llama.cpp {label:32} {kind:10} {wall:9.2f} /s of wall, "
                          f"{processor:9.2f} /s of processor time", flush=True)
                    for clock, rate in zip(best_of, (wall, processor), strict=True):
                        best_of[clock][kind] = max(best_of[clock].get(kind, (0, "")), (rate, label))
    for name, ours in own.items():
        for kind, rates in (("documents", ours["documents"]), ("loop", ours["join"]),
                            ("batched", ours["join"])):
            for (clock, peers), rate in zip(best_of.items(), rates, strict=True):
                print(f"{kind:10} Quail {name} / llama.cpp ({peers[kind][1]}): "
                      f"{rate / peers[kind][0]:.2f} by {clock}")


if __name__ == "__main__":
    main()
