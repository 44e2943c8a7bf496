#!/usr/bin/env python3
"""Writes Qwen3 checkpoints with random weights, and what Hugging Face transformers computes from them.

    dump_qwen3_checkpoints.py FOLDER [NAME ..]

The oracle of the GPU test of whole models (tests/parity/cuda_checkpoint_test.cpp): a tiny Qwen3 in bf16 and in
block fp8, and two layers of Qwen3-4B's shape in block fp8, each in a folder of its own with config.json,
model.safetensors and logits.json. Block fp8 is stored as published checkpoints store it (e4m3, weight_scale_inv in
bf16 for each 128 x 128 block); transformers gets the dequantised weights. Logits are computed in double precision,
with activations that are not rounded, on the GPU where there is one. Needs torch, transformers and safetensors.
"""
import argparse
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

TINY = dict(vocab_size=512, hidden_size=256, intermediate_size=384, num_hidden_layers=3, num_attention_heads=8,
            num_key_value_heads=2, head_dim=128, max_position_embeddings=4096)
SHAPE_4B = dict(vocab_size=151936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=2,
                num_attention_heads=32, num_key_value_heads=8, head_dim=128, max_position_embeddings=40960)
CHECKPOINTS = {"tiny_bf16": (TINY, False), "tiny_fp8": (TINY, True), "layers_4b_fp8": (SHAPE_4B, True)}
ANSWERS = list(range(3, 19))
LENGTHS = [1, 65, 129, 300]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def quantise(weight):
    """(e4m3 values, bf16 scales, the dequantised weight)."""
    n, k = weight.shape
    blocks = weight.view(n // 128, 128, k // 128, 128)
    scale = (blocks.abs().amax((1, 3)) / 448).bfloat16()
    wide = scale.float()[:, None, :, None]
    values = (blocks / wide).clamp(-448, 448).view(n, k).to(torch.float8_e4m3fn)
    return values, scale, (values.float().view_as(blocks) * wide).view(n, k)


def draw(model, fp8, generator):
    """Random weights into the model (as the checkpoint gives them) and into the checkpoint's tensors."""
    tensors = {}
    for name, parameter in model.named_parameters():
        value = torch.randn(parameter.shape, generator=generator)
        if name.endswith("norm.weight"):
            value = 1 + 0.2 * value
        elif "embed" not in name:
            value = value / parameter.shape[1] ** 0.5
        value = value.bfloat16()
        tensors[name] = value
        if fp8 and name.endswith("_proj.weight"):
            tensors[name], tensors[name + "_scale_inv"], value = quantise(value.float())
        parameter.data = value.to(DEVICE, parameter.dtype)
    return tensors


def dump(name, folder):
    shape, fp8 = CHECKPOINTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.Qwen3Config(**shape, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=True,
                                      attention_bias=False, use_sliding_window=False)
    config._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    model = transformers.AutoModelForCausalLM.from_config(config).double().to(DEVICE).eval()
    torch.set_default_dtype(torch.float32)
    generator = torch.Generator().manual_seed(len(name))
    save_file(draw(model, fp8, generator), folder / "model.safetensors", metadata={"format": "pt"})
    model.tie_weights()
    stored = dict(shape, architectures=["Qwen3ForCausalLM"], model_type="qwen3", rms_norm_eps=1e-6, rope_theta=1e6,
                  tie_word_embeddings=True, attention_bias=False, use_sliding_window=False, hidden_act="silu",
                  torch_dtype="bfloat16")
    if fp8:
        stored["quantization_config"] = dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8",
                                             weight_block_size=[128, 128])
    (folder / "config.json").write_text(json.dumps(stored))
    sequences = []
    for length in LENGTHS:
        tokens = torch.randint(0, shape["vocab_size"], (1, length), generator=generator)
        with torch.no_grad():
            logits = model(tokens.to(DEVICE)).logits[0, -1]
        sequences.append({"tokens": tokens[0].tolist(), "logits": logits[ANSWERS].tolist()})
    (folder / "logits.json").write_text(json.dumps(
        {"oracle": f"transformers {transformers.__version__}, torch {torch.__version__}, float64",
         "answers": ANSWERS, "sequences": sequences}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(CHECKPOINTS))
    options = parser.parse_args()
    for name in options.names:
        dump(name, options.folder / name)
        print(f"{options.folder / name}")


if __name__ == "__main__":
    main()
