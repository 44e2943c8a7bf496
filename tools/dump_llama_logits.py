#!/usr/bin/env python3
"""Writes tests/data/smollm2_logits.json: what llama.cpp answers to 1,000 prompts.

The oracle of the parity test for the embedded model: logits after 200 prompts that stand alone, and
margins of 20 questions after each of 40 documents. The file is first rewritten with F32 weights,
keys and values are F32 and flash attention, which rounds to 16 bits, is off: what is compared is
the model, not llama.cpp's noise.

    pip install llama-cpp-python==0.3.36
    tools/dump_llama_logits.py SmolLM2-135M-Instruct.Q4_1.gguf tests/data/smollm2_logits.json
"""
import argparse
import ctypes
import json
import random
import tempfile
from pathlib import Path

import llama_cpp
import numpy as np

PROMPTS, DOCUMENTS = 200, 40
# True, " True", False, " False"
ANSWERS = [2787, 3635, 4245, 4178]

SUBJECTS = ["The kettle", "My new phone", "This invoice", "The hotel room", "Our delivery",
            "A garden chair", "The night train", "Her letter", "The software update", "Das Fahrrad"]
VERBS = ["arrived late", "works very well", "broke after two days", "was cheaper than 19.99 EUR",
         "smells of lemon", "has never been opened", "must be returned", "é parfait"]
TAILS = [".", " and I am happy about it.", "; nobody answered my mail.", "!", " (see page 12)",
         "\n\nIs it a complaint?", "\nAnswer True or False:", " DOCUMENT:\n"]
QUESTIONS = ["\nA complaint?", "\nIs it new?", " True or False:", "\nPraise:", "\nLate?", " Why?",
             "\nAnswer:", "\nBroken?", " It is", "\nA person?", "\n\n", "\nGood or bad?",
             " And then", "\nTrue?", "\nIn German?", " False, or", "!", "\nPrice?",
             "\nWas it opened? Answer:", "\nThe statement is"]


def make_prompts(seed):
    source = random.Random(seed)
    pick = source.choice
    for _ in range(PROMPTS):
        sentences = source.randint(1, 4)
        yield " ".join(pick(SUBJECTS) + " " + pick(VERBS) + pick(TAILS) for _ in range(sentences))


def make_documents(seed):
    source = random.Random(seed)
    pick = source.choice
    for _ in range(DOCUMENTS):
        sentences = source.randint(1, 12)
        yield "DOCUMENT:\n" + " ".join(pick(SUBJECTS) + " " + pick(VERBS) + pick(TAILS[:5])
                                       for _ in range(sentences))


def write_f32(path, target):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    params.allow_requantize = True
    status = llama_cpp.llama_model_quantize(str(path).encode(), str(target).encode(),
                                            ctypes.byref(params))
    if status != 0:
        raise SystemExit(f"cannot rewrite {path}: {status}")


class Model:
    """llama.cpp without roundings of its own."""

    def __init__(self, path, threads):
        self.llama = llama_cpp.Llama(str(path), n_ctx=512, n_batch=512, n_threads=threads,
                                     n_threads_batch=threads, logits_all=True, verbose=False,
                                     type_k=llama_cpp.GGML_TYPE_F32,
                                     type_v=llama_cpp.GGML_TYPE_F32, flash_attn=False)

    def encode(self, text):
        return self.llama.tokenize(text.encode(), add_bos=False, special=False)

    def last_logits(self, tokens, kept=0):
        """Logits [vocabulary] after `tokens`, which follow the first `kept` of the call before."""
        self.llama.n_tokens = kept
        self.llama.eval(tokens)
        return np.asarray(self.llama.scores[kept + len(tokens) - 1])


def prompt_rows(model):
    for text in make_prompts(seed=1):
        tokens = model.encode(text)
        logits = model.last_logits(tokens)
        top = int(logits.argmax())
        yield {"tokens": tokens, "logits": [round(float(logits[i]), 4) for i in ANSWERS],
               "top": top, "top_logit": round(float(logits[top]), 4)}


def document_rows(model, questions):
    for text in make_documents(seed=2):
        tokens = model.encode(text)
        model.last_logits(tokens)
        margins = []
        for question in questions:
            logits = model.last_logits(question, len(tokens))[ANSWERS]
            margins.append(round(float(logits[:2].max() - logits[2:].max()), 4))
        yield {"tokens": tokens, "margins": margins}


def json_lines(rows):
    return "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        f32 = Path(folder) / "f32.gguf"
        write_f32(args.model, f32)
        model = Model(f32, args.threads)
        questions = [model.encode(text) for text in QUESTIONS]
        parts = {"questions": questions, "prompts": prompt_rows(model),
                 "documents": document_rows(model, questions)}
        text = "".join(f', "{name}": {json_lines(rows)}' for name, rows in parts.items())
    header = {"model": args.model.name, "oracle": f"llama-cpp-python {llama_cpp.__version__}, F32",
              "answers": ANSWERS}
    args.output.write_text(json.dumps(header)[:-1] + text + "}\n")


if __name__ == "__main__":
    main()
