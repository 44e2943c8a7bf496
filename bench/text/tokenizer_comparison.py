"""Tokenizer throughput on one core beside HF `tokenizers` and, where it is installed, gigatoken.

usage: tokenizer_comparison.py TOKENIZER_BENCHMARK

The vocabulary is that of the embedded model. Texts: speeches of ../shared/data where they are, else the paragraphs of
the licences that every Debian system has. MB of text per second of processor time; each peer encodes text by text with
one thread, in its first pass over the texts and again with its caches warm.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / ".deps" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SPEECHES = ROOT.parent / "shared" / "data" / "text" / "sotu.jsonl.gz"
LICENCES = pathlib.Path("/usr/share/common-licenses")

sys.path.insert(0, str(ROOT / "tests" / "parity"))
import gguf_tokenizer_json  # noqa: E402


def read_texts():
    """What the texts are, and the texts."""
    if SPEECHES.exists():
        with gzip.open(SPEECHES, "rt", encoding="utf-8") as lines:
            return "speeches", [json.loads(line)["text"] for line in lines]
    files = [path for path in sorted(LICENCES.iterdir()) if path.is_file() and not path.is_symlink()]
    texts = [text for path in files for text in path.read_text("utf-8").split("\n\n") if text.strip()]
    if not texts:
        sys.exit(f"error: no texts in {LICENCES}")
    return "paragraphs of licences", texts


def report(name, first, warm, megabytes):
    print(f"{name:28} first pass {megabytes / first:7.1f} MB/s   warm {megabytes / warm:7.1f} MB/s")


def time_peer(name, make_encoder, texts, megabytes):
    encode = make_encoder()
    seconds = []
    for _ in range(2):
        start = time.process_time()
        for text in texts:
            encode(text)
        seconds.append(time.process_time() - start)
    report(name, *seconds, megabytes)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    kind, texts = read_texts()
    megabytes = sum(len(text.encode()) for text in texts) * 1e-6
    print(f"{len(texts)} {kind}, {megabytes:.2f} MB")
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = pathlib.Path(folder) / "tokenizer.json"
        vocabulary.write_text(json.dumps(gguf_tokenizer_json.smollm_tokenizer_json(MODEL)), "utf-8")
        corpus = pathlib.Path(folder) / "texts"
        corpus.write_bytes(b"".join(text.encode() + b"\0" for text in texts))
        subprocess.run([sys.argv[1], vocabulary, corpus], check=True)
        try:
            import tokenizers
            time_peer(f"HF tokenizers {tokenizers.__version__}",
                      lambda: tokenizers.Tokenizer.from_file(str(vocabulary)).encode, texts, megabytes)
        except ImportError:
            print("HF tokenizers: not installed")
        try:
            import gigatoken
            time_peer("gigatoken", lambda: gigatoken.Tokenizer(str(vocabulary)).encode, texts, megabytes)
        except ImportError:
            print("gigatoken: not installed (pip install gigatoken into .venv)")


if __name__ == "__main__":
    main()
