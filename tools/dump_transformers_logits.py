#!/usr/bin/env python3
"""Writes what Hugging Face transformers computes for tiny models with made-up weights.

    dump_transformers_logits.py > tests/data/transformers_logits.json

The oracle of tests/parity/transformers_logits_test.cpp: one model of each family (and Llama with scaled rotary
frequencies), its weights those of tools/random_weights.py, which the test makes anew from the same shape and seed.
Logits are computed in double precision. Needs torch and transformers.
"""
import json
import sys

import torch
import transformers
from random_weights import tensor

SEED = 7
ANSWERS = list(range(3, 19))
LENGTHS = [1, 2, 17, 64, 65, 130, 200]
SHAPE = dict(layers=3, hidden=72, heads=6, kv_heads=2, head_dim=20, ffn=116, vocabulary=307)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
MODELS = {
    "llama": (dict(SHAPE, tied_head=True), "Llama", dict(rope_theta=10000.0)),
    "llama_scaled": (dict(SHAPE, tied_head=True), "Llama", dict(rope_theta=500000.0, rope_scaling=LLAMA3)),
    "qwen2": (dict(SHAPE, qkv_bias=True), "Qwen2", dict(rope_theta=10000.0, use_sliding_window=False)),
    "qwen3": (dict(SHAPE, qk_norm=True), "Qwen3", dict(rope_theta=10000.0, use_sliding_window=False)),
}


def tokens_of(count, seed):
    """The ids of MakeTokens in tests/parity/model_fixture.h."""
    state = (seed * 2654435761 + 12345) % 2**32
    tokens = []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        tokens.append((state >> 8) % SHAPE["vocabulary"])
    return tokens


def build(shape, family, options):
    config = getattr(transformers, f"{family}Config")(
        vocab_size=shape["vocabulary"], hidden_size=shape["hidden"], intermediate_size=shape["ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"], head_dim=shape["head_dim"], max_position_embeddings=65536,
        rms_norm_eps=1e-5, tie_word_embeddings=shape.get("tied_head", False), **options)
    config._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    for name, parameter in model.named_parameters():
        rows, columns, values = tensor(shape, name, SEED)
        parameter.data = torch.tensor(values, dtype=torch.float64).view(parameter.shape)
        assert rows * columns == parameter.numel(), name
    model.tie_weights()
    return model


def main():
    models = {}
    for name, (shape, family, options) in MODELS.items():
        model = build(shape, family, options)
        sequences = []
        for length in LENGTHS:
            tokens = torch.tensor([tokens_of(length, length)])
            with torch.no_grad():
                logits = model(tokens).logits[0, -1, ANSWERS]
            sequences.append({"length": length, "logits": [round(x, 9) for x in logits.tolist()]})
        models[name] = sequences
    json.dump({"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "seed": SEED,
               "first_answer": ANSWERS[0], "models": models}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
