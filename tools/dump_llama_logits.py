#!/usr/bin/env python3
"""Writes tests/data/smollm2_logits.json: logits of llama.cpp after 200 short prompts.

The oracle of the parity test for the embedded model. The file is first rewritten with F32 weights,
so that llama.cpp rounds no activations to 8 bits and what is compared is the model, not its noise.

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

PROMPTS = 200
# True, " True", False, " False"
ANSWERS = [2787, 3635, 4245, 4178]

SUBJECTS = ["The kettle", "My new phone", "This invoice", "The hotel room", "Our delivery",
            "A garden chair", "The night train", "Her letter", "The software update", "Das Fahrrad"]
VERBS = ["arrived late", "works very well", "broke after two days", "was cheaper than 19.99 EUR",
         "smells of lemon", "has never been opened", "must be returned", "é parfait"]
TAILS = [".", " and I am happy about it.", "; nobody answered my mail.", "!", " (see page 12)",
         "\n\nIs it a complaint?", "\nAnswer True or False:", " DOCUMENT:\n"]


def make_prompts(seed):
    source = random.Random(seed)
    pick = source.choice
    for _ in range(PROMPTS):
        sentences = source.randint(1, 4)
        yield " ".join(pick(SUBJECTS) + " " + pick(VERBS) + pick(TAILS) for _ in range(sentences))


def write_f32(path, target):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    params.allow_requantize = True
    status = llama_cpp.llama_model_quantize(str(path).encode(), str(target).encode(),
                                            ctypes.byref(params))
    if status != 0:
        raise SystemExit(f"cannot rewrite {path}: {status}")


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
        model = llama_cpp.Llama(str(f32), n_ctx=512, n_batch=512, n_threads=args.threads,
                                n_threads_batch=args.threads, logits_all=True, verbose=False,
                                type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32)
        rows = []
        for text in make_prompts(seed=1):
            tokens = model.tokenize(text.encode(), add_bos=False, special=False)
            model.reset()
            model.eval(tokens)
            logits = np.asarray(model.scores[len(tokens) - 1])
            top = int(logits.argmax())
            rows.append({"tokens": tokens, "logits": [round(float(logits[i]), 4) for i in ANSWERS],
                         "top": top, "top_logit": round(float(logits[top]), 4)})
    header = {"model": args.model.name, "oracle": f"llama-cpp-python {llama_cpp.__version__}, F32",
              "answers": ANSWERS}
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    args.output.write_text(json.dumps(header)[:-1] + ', "prompts": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
