"""Writes tests/data/tokenizer/: a small vocabulary and the ids that HF `tokenizers` gives with it.

usage: dump_tokenizer_golden.py OUTPUT_DIR      (needs the package tokenizers 0.23.3)

tiny.json is a byte-level BPE vocabulary trained on the fuzz texts, without the bytes that SmolLM2's vocabulary lacks.
golden.jsonl has one text a line with its ids under each split scheme.
"""

import json
import pathlib
import sys

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/parity"))
import fuzz_texts  # noqa: E402
import gguf_tokenizer_json  # noqa: E402
import tokenizer_parity_test as parity  # noqa: E402

MISSING_BYTES = {0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2}
ENGLISH = """The quick brown fox jumps over the lazy dog. Is this review about food? TRUE or FALSE, True or False. The customer
doesn't like it, and they'll say so; we've seen 12 of 345 orders, 6789 in all. Evaluate the following question. ANSWER:
ANSWER: DOCUMENT: DOCUMENT: the document above is about the product. """ * 3
QWEN2_PATTERN = parity.LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")


def train():
    """The vocabulary as the dict of a tokenizer.json with the scheme of GPT-2."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<|unknown|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    printable = byte_alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<|unknown|>", "<|end|>"], show_progress=False,
                                  initial_alphabet=[printable[byte] for byte in range(256)])
    tokenizer.train_from_iterator(fuzz_texts.PIECES * 3 + fuzz_texts.fuzz_texts(300, 7) + [ENGLISH] * 20, trainer)
    config = json.loads(tokenizer.to_str())
    drop_bytes(config["model"], {printable[byte] for byte in MISSING_BYTES})
    return config


def byte_alphabet():
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in kept]
    return {**{byte: chr(byte) for byte in kept}, **{byte: chr(0x100 + i) for i, byte in enumerate(rest)}}


def drop_bytes(model, dropped):
    names = [name for name in sorted(model["vocab"], key=model["vocab"].get)
             if name.startswith("<|") or not dropped & set(name)]
    model["vocab"] = {name: i for i, name in enumerate(names)}
    model["merges"] = [pair for pair in model["merges"] if not dropped & set("".join(pair))]
    # No merge leads here: only ignore_merges does.
    model["vocab"]["\u0120qjzx"] = len(names)


def scheme_configs(config):
    def split(pattern):
        step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        return {"type": "Sequence", "pretokenizers": [step, parity.byte_level(False)]}

    yield "gpt2", parity.changed(config, parity.with_gpt2_scheme)
    yield "smollm", parity.changed(config, parity.with_smollm_scheme)
    llama3 = parity.changed(config, lambda c: c.update(pre_tokenizer=split(parity.LLAMA3_PATTERN)))
    llama3["model"]["ignore_merges"] = True
    yield "llama3", llama3
    yield "qwen2", parity.changed(config, lambda c: c.update(pre_tokenizer=split(QWEN2_PATTERN), normalizer={"type": "NFC"}))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    config = train()
    (folder / "tiny.json").write_text(json.dumps(config, ensure_ascii=True, separators=(",", ":")) + "\n")
    texts = ["", ENGLISH[:200], " qjzx", "x qjzx qjzxy"] + fuzz_texts.PIECES + [f"x{piece}y" for piece in fuzz_texts.PIECES]
    texts += fuzz_texts.fuzz_texts(60, 11)
    ids = {name: parity.reference_ids(scheme, texts) for name, scheme in scheme_configs(config)}
    with open(folder / "golden.jsonl", "w", encoding="ascii") as out:
        for i, text in enumerate(texts):
            out.write(json.dumps({"text": text, **{name: ids[name][i] for name in ids}}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
