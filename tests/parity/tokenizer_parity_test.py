"""Compares the tokenizer's ids with those of HF `tokenizers`, its added tokens emptied, text by text.

usage: tokenizer_parity_test.py --tool encode_tool --shared DIR --deps DIR [--texts N] [--seed S]
                                [--folders DIR .. --megabytes N]

Vocabularies: Qwen3 (DIR/data/tokenizers of the shared data) and SmolLM2 (the embedded model's GGUF file), each as it is
on all texts, and with the split schemes of the other families on all fuzzed texts and every tenth of the corpus (the
reference encodes 1.4 MB/s a core). With --folders all of this is compared on N MB of the files below them, spread over
all of them, instead of the corpus. Exit code 77, skipped, where package or data are missing.
"""

import argparse
import copy
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import fuzz_texts
import gguf_tokenizer_json

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY_HEAD = 65536

try:
    import tokenizers
except ImportError:
    venv = ROOT / ".venv" / "bin" / "python"
    if venv.exists() and pathlib.Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        os.execv(venv, [str(venv), "-B", *sys.argv])
    print("skipped: no Python package tokenizers")
    sys.exit(SKIPPED)

LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                  r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def with_gpt2_scheme(config):
    config["pre_tokenizer"] = byte_level(True)


def with_smollm_scheme(config):
    config["pre_tokenizer"] = gguf_tokenizer_json.SMOLLM_PRE_TOKENIZER


def with_llama3_scheme(config):
    split = {"type": "Split", "pattern": {"Regex": LLAMA3_PATTERN}, "behavior": "Isolated", "invert": False}
    config["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level(False)]}
    config["model"]["ignore_merges"] = True
    config["added_tokens"] = []  # their ids are taken below
    # Tokens of several digits, which these vocabularies lack, and one that only ignore_merges can reach.
    vocabulary, merges = config["model"]["vocab"], config["model"]["merges"]
    for left, right in (("0", "0"), ("00", "0"), ("1", "2"), ("12", "3"), ("3", "4"), ("8", "9")):
        vocabulary[left + right] = len(vocabulary)
        merges.append([left, right])
    vocabulary["\u0120zqxj"] = len(vocabulary)


def without_normalizer(config):
    config["normalizer"] = None


def changed(config, *changes):
    config = copy.deepcopy(config)
    for change in changes:
        change(config)
    return config


def vocabularies(shared, deps):
    """(name, tokenizer.json as a dict, every how many texts of the corpus it is compared on)"""
    qwen3 = shared / "data/tokenizers/qwen3/tokenizer.json"
    if qwen3.exists():
        config = json.loads(qwen3.read_text(encoding="utf-8"))
        yield "qwen3", config, 1
        yield "qwen3 vocabulary, llama3 scheme", changed(config, with_llama3_scheme), 10
        yield "qwen3 vocabulary, smollm scheme", changed(config, with_smollm_scheme, without_normalizer), 10
    smollm2 = deps / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
    if smollm2.exists():
        config = gguf_tokenizer_json.smollm_tokenizer_json(smollm2)
        yield "smollm2", config, 1
        yield "smollm2 vocabulary, gpt2 scheme", changed(config, with_gpt2_scheme), 10


def corpus_texts(shared):
    corpus = shared / "data/text/sotu.jsonl.gz"
    if not corpus.exists():
        return []
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def file_text(path):
    """A file as text, plain or gzip; the head of one that is no UTF-8 with U+FFFD for what is not."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data[:BINARY_HEAD].decode(errors="replace")


def folder_texts(folders, megabytes):
    """Files in an order that mixes the folders, until there are so many bytes."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    paths.sort(key=lambda path: hashlib.sha256(str(path).encode()).digest())
    left = megabytes * 10**6
    for path in paths:
        try:
            text = file_text(path)
        except (OSError, EOFError, zlib.error):
            continue
        if not text or len(text) > 4 * 10**6:
            continue
        yield text
        left -= len(text.encode())
        if left <= 0:
            return
    print(f"only {megabytes - left / 10**6:.0f} MB of text in these folders")


def batches(texts, size=8 * 10**6):
    """Lists of texts of about so many characters."""
    batch, length = [], 0
    for text in texts:
        batch.append(text)
        length += len(text)
        if length >= size:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def our_ids(tool, path, texts):
    encoded = [text.encode() for text in texts]
    stream = b"".join(struct.pack("<I", len(text)) + text for text in encoded)
    output = subprocess.run([tool, path], input=stream, stdout=subprocess.PIPE, check=True).stdout
    values = memoryview(output).cast("i")
    ids, offset = [], 0
    for _ in texts:
        count = values[offset]
        assert count >= 0, "well-formed UTF-8 was refused"
        ids.append(list(values[offset + 1:offset + 1 + count]))
        offset += 1 + count
    assert offset == len(values)
    return ids


def reference_ids(config, texts):
    reference = tokenizers.Tokenizer.from_str(json.dumps(changed(config, lambda c: c.update(added_tokens=[]))))
    return [encoding.ids for encoding in reference.encode_batch_fast(texts, add_special_tokens=False)]


def compare(name, config, texts, tool):
    """The number of texts whose ids differ; the first are printed."""
    count = size = tokens = failures = 0
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(config, file, ensure_ascii=False)
        file.flush()
        for batch in batches(texts):
            ours = our_ids(tool, file.name, batch)
            theirs = reference_ids(config, batch)
            different = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
            for i in different[:5 - failures]:
                print(f"{name}: {batch[i][:300]!a}\n  ours      {ours[i][:60]}\n  reference {theirs[i][:60]}")
            count += len(batch)
            size += sum(len(text.encode()) for text in batch)
            tokens += sum(map(len, ours))
            failures += len(different)
    print(f"{name}: {count - failures} of {count} texts equal, {size / 10**6:.1f} MB, {tokens} tokens", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--deps", type=pathlib.Path, required=True)
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folders", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()

    fuzzed = fuzz_texts.edge_texts() + fuzz_texts.fuzz_texts(options.texts, options.seed)
    corpus = corpus_texts(options.shared)
    failures = compared = 0
    for name, config, step in vocabularies(options.shared, options.deps):
        if options.folders:
            texts = itertools.chain(fuzzed, folder_texts(options.folders, options.megabytes))
        else:
            texts = fuzzed + corpus[::step]
        failures += compare(name, config, texts, options.tool)
        compared += 1
    if not compared:
        print("skipped: no vocabulary")
        return SKIPPED
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
