"""Made-up weights as src/infer/weights/random_weights.h defines them, for references in Python.

    tensor(spec, name, seed)  -> (rows, columns, values), row-major, each a float that f32 holds

`spec` is a dictionary: layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, and the flags
qk_norm, qkv_bias, tied_head (absent: false). Slow: for small shapes.
"""

import math
import re
import struct

MASK = 2**64 - 1


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def fnv1a(text):
    key = 0xCBF29CE484222325
    for byte in text.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    return key


def uniform(key, index):
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return (z >> 40) / 2**23 - 1


def shape_of(spec, name):
    """(rows, columns, offset, scale) of a tensor, or None where the model has none of that name."""
    hidden, ffn = spec["hidden"], spec["ffn"]
    q, kv = spec["heads"] * spec["head_dim"], spec["kv_heads"] * spec["head_dim"]

    def matrix(rows, columns):
        return rows, columns, 0.0, f32(math.sqrt(3 / columns))

    def vector(columns, offset):
        return 1, columns, offset, 0.25

    layer = re.fullmatch(r"model\.layers\.(0|[1-9]\d*)\.(.*)", name)
    if layer is None:
        whole = {
            "model.embed_tokens.weight": (spec["vocabulary"], hidden, 0.0, f32(math.sqrt(3))),
            "model.norm.weight": vector(hidden, 1.0),
        }
        if not spec.get("tied_head"):
            whole["lm_head.weight"] = matrix(spec["vocabulary"], hidden)
        return whole.get(name)
    if int(layer[1]) >= spec["layers"]:
        return None
    parts = {
        "input_layernorm.weight": vector(hidden, 1.0),
        "post_attention_layernorm.weight": vector(hidden, 1.0),
        "self_attn.q_proj.weight": matrix(q, hidden),
        "self_attn.k_proj.weight": matrix(kv, hidden),
        "self_attn.v_proj.weight": matrix(kv, hidden),
        "self_attn.o_proj.weight": matrix(hidden, q),
        "mlp.gate_proj.weight": matrix(ffn, hidden),
        "mlp.up_proj.weight": matrix(ffn, hidden),
        "mlp.down_proj.weight": matrix(hidden, ffn),
    }
    if spec.get("qk_norm"):
        parts["self_attn.q_norm.weight"] = vector(spec["head_dim"], 1.0)
        parts["self_attn.k_norm.weight"] = vector(spec["head_dim"], 1.0)
    if spec.get("qkv_bias"):
        parts["self_attn.q_proj.bias"] = vector(q, 0.0)
        parts["self_attn.k_proj.bias"] = vector(kv, 0.0)
        parts["self_attn.v_proj.bias"] = vector(kv, 0.0)
    return parts.get(layer[2])


def tensor(spec, name, seed=0):
    shape = shape_of(spec, name)
    if shape is None:
        raise KeyError(name)
    rows, columns, offset, scale = shape
    key = fnv1a(name) ^ seed
    values = [f32(offset + f32(scale * uniform(key, i))) for i in range(rows * columns)]
    return rows, columns, values
