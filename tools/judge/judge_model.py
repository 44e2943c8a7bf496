"""The llama forward pass of SmolLM2 in PyTorch with a low-rank adapter on all linear layers, for training and testing."""
import json
import lzma
import math
import struct

import numpy as np
import torch
from torch.nn import functional

from gguf_file import Tensor, dequantised, to_adjacent, to_half_split
from prompt_layout import FALSE_IDS, TRUE_IDS

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, EPSILON, ROPE_BASE = 30, 576, 9, 3, 64, 1e-5, 1e5
LINEAR = ('attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down')
ROTARY = {'attn_q': HEADS, 'attn_k': KV_HEADS}
_ARRAYS = {'u8': np.uint8, 'u16': np.uint16}
_BLOCK_BYTES = {3: 20, 8: 34}


def read_blobs(path):
    """{name: array, Tensor or JSON value} of one file of judge_pack.py."""
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        size, = struct.unpack_from('<I', data, at)
        head = json.loads(data[at + 4:at + 4 + size])
        at += 4 + size
        raw = lzma.decompress(data[at:at + head['size']])
        at += head['size']
        kind, shape = head['kind'], tuple(head['shape'])
        if kind == 'json':
            found[head['name']] = json.loads(raw)
        elif kind in _ARRAYS:
            found[head['name']] = np.frombuffer(raw, _ARRAYS[kind])
        else:
            stored = np.frombuffer(raw, np.uint8)
            if kind in _BLOCK_BYTES:
                stored = np.ascontiguousarray(stored.reshape(_BLOCK_BYTES[kind], -1).T).reshape(-1)
            found[head['name']] = Tensor(kind, shape, stored)
    return found


def rotated(x, cos, sin):
    half = torch.cat([-x[..., HEAD // 2:], x[..., :HEAD // 2]], -1)
    return x * cos + half * sin


def transformer_layer(x, cos, sin, attention_norm, ffn_norm, qkv, output, gate_up, down):
    """x [rows, length, WIDTH], cos and sin [length, HEAD], weights [out, in]."""
    rows, length, _ = x.shape
    normed = functional.rms_norm(x, (WIDTH,), attention_norm, EPSILON)
    heads = functional.linear(normed, qkv).view(rows, length, HEADS + 2 * KV_HEADS, HEAD).transpose(1, 2)
    turned = rotated(heads[:, :HEADS + KV_HEADS], cos, sin)
    spread = lambda part: part.repeat_interleave(HEADS // KV_HEADS, 1)
    mixed = functional.scaled_dot_product_attention(turned[:, :HEADS], spread(turned[:, HEADS:]),
                                                    spread(heads[:, HEADS + KV_HEADS:]), is_causal=True)
    x = x + functional.linear(mixed.transpose(1, 2).reshape(rows, length, WIDTH), output)
    normed = functional.rms_norm(x, (WIDTH,), ffn_norm, EPSILON)
    gate, up = functional.linear(normed, gate_up).chunk(2, -1)
    return x + functional.linear(functional.silu(gate) * up, down)


class Judge:
    """Weights are held in float32 and used in `dtype`; Q and K rows are in half-split order."""

    def __init__(self, tensors, device, dtype):
        self.device, self.dtype = device, dtype
        values = {name: dequantised(tensor) for name, tensor in tensors.items()}
        put = lambda array: torch.tensor(array, device=device)
        stack = lambda name, change=lambda weight: weight: put(
            np.stack([change(values[f'blk.{layer}.{name}.weight']) for layer in range(LAYERS)]))
        self.weights = {name: stack(name, (lambda weight, heads=ROTARY[name]: to_half_split(weight, heads))
                                    if name in ROTARY else lambda weight: weight) for name in LINEAR}
        self.attention_norm, self.ffn_norm = stack('attn_norm').to(dtype), stack('ffn_norm').to(dtype)
        self.output_norm = put(values['output_norm.weight']).to(dtype)
        self.embedding = put(values['token_embd.weight']).to(dtype)  # [vocabulary, WIDTH]
        angles = torch.outer(torch.arange(1100, device=device).float(),
                             ROPE_BASE ** (-torch.arange(0, HEAD, 2, device=device).float() / HEAD))
        angles = torch.cat([angles, angles], 1)
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)  # [positions, HEAD]
        self.lora_a = self.lora_b = None
        self.layer = transformer_layer

    def add_adapter(self, rank, alpha):
        """Adds trainable factors, A random (always the same) and B zero; returns them."""
        generator = torch.Generator().manual_seed(0)
        self.scale = alpha / rank
        uniform = lambda *shape: torch.rand(*shape, generator=generator) * 2 - 1
        self.lora_a = {name: (uniform(LAYERS, rank, weight.shape[2]) * math.sqrt(3 / weight.shape[2]))
                       .to(self.device).requires_grad_() for name, weight in self.weights.items()}
        self.lora_b = {name: torch.zeros(LAYERS, weight.shape[1], rank, device=self.device).requires_grad_()
                       for name, weight in self.weights.items()}
        return [*self.lora_a.values(), *self.lora_b.values()]

    def factors(self):
        """A copy of the factors: {name: (A [LAYERS, rank, in], B [LAYERS, out, rank])}."""
        return {name: (self.lora_a[name].detach().clone(), self.lora_b[name].detach().clone()) for name in LINEAR}

    def take_mean(self, several, rank=None):
        """Takes over the mean of the updates B A of several factors, at this rank or theirs: its largest singular values."""
        rank = rank or several[0][LINEAR[0]][0].shape[1]
        for name in LINEAR:
            left, left_small = torch.linalg.qr(torch.cat([factors[name][1] for factors in several], 2) / len(several))
            right, right_small = torch.linalg.qr(torch.cat([factors[name][0] for factors in several], 1).mT)
            turn, sizes, back = torch.linalg.svd(left_small @ right_small.mT)
            root = sizes[:, :rank].sqrt()
            self.lora_b[name] = left @ turn[:, :, :rank] * root[:, None]
            self.lora_a[name] = root[:, :, None] * (back[:, :rank] @ right.mT)

    def load_adapter(self, factors, scale):
        """Takes over the factors of an adapter file (GGUF names and row order), not to be trained."""
        put = lambda name, part, change: torch.tensor(np.stack(
            [change(factors[f'blk.{layer}.{name}.{part}'].astype(np.float32)) for layer in range(LAYERS)])).to(self.device)
        self.scale = scale
        self.lora_a = {name: put(name, 'lora_a', lambda factor: factor) for name in LINEAR}
        self.lora_b = {name: put(name, 'lora_b', (lambda factor, heads=ROTARY[name]: to_half_split(factor, heads))
                                 if name in ROTARY else lambda factor: factor) for name in LINEAR}

    def in_float32(self, tensors):
        """The same judge computing in float32, to see what bfloat16 changes."""
        twin = Judge(tensors, self.device, torch.float32)
        if self.lora_a is not None:
            twin.lora_a, twin.lora_b, twin.scale = self.lora_a, self.lora_b, self.scale
        return twin

    def merged(self):
        """Weights of every layer in the working type, Q K V and gate up side by side."""
        weights = self.weights
        if self.lora_a is not None:
            weights = {name: torch.baddbmm(weight, self.lora_b[name], self.lora_a[name], alpha=self.scale)
                       for name, weight in weights.items()}
        join = lambda *names: torch.cat([weights[name].to(self.dtype) for name in names], 1).unbind(0)
        return dict(qkv=join('attn_q', 'attn_k', 'attn_v'), output=join('attn_output'),
                    gate_up=join('ffn_gate', 'ffn_up'), down=join('ffn_down'))

    def states(self, ids, merged):
        """[rows, length, WIDTH] behind the last layer, of right-padded ids [rows, length]."""
        x, length = self.embedding[ids], ids.shape[1]
        for layer in range(LAYERS):
            x = self.layer(x, self.cos[:length], self.sin[:length], self.attention_norm[layer], self.ffn_norm[layer],
                           *(merged[name][layer] for name in ('qkv', 'output', 'gate_up', 'down')))
        return x

    def final(self, states):
        """float32: what the head multiplies."""
        return functional.rms_norm(states, (WIDTH,), self.output_norm, EPSILON).float()

    def hidden(self, ids, last, merged):
        """float32 [rows, WIDTH]: the normed state at position `last` of each row."""
        x = self.states(ids, merged)
        return self.final(x[torch.arange(len(ids), device=x.device), last])

    def logits(self, hidden):
        return hidden @ self.embedding.float().T

    @staticmethod
    def margin(logits):
        """The product's margin: the best True spelling against the best False spelling."""
        return logits[:, list(TRUE_IDS)].amax(1) - logits[:, list(FALSE_IDS)].amax(1)

    def adapter(self):
        """{name: float16 array} in the GGUF's tensor names and row order."""
        found = {}
        for name in LINEAR:
            for layer in range(LAYERS):
                down = self.lora_a[name][layer].detach().cpu().numpy()
                up = self.lora_b[name][layer].detach().cpu().numpy()
                up = to_adjacent(up, ROTARY[name]) if name in ROTARY else up
                found[f'blk.{layer}.{name}.lora_a'] = down.astype(np.float16)
                found[f'blk.{layer}.{name}.lora_b'] = np.ascontiguousarray(up).astype(np.float16)
        return found
