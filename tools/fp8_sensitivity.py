#!/usr/bin/env python3
"""How far rounding alone moves the answers of a block-fp8 model: the same requests under arithmetic that differs in the last bits.

    fp8_sensitivity.py FOLDER CHECKPOINT NAME [--requests 1000] [--variants fused,nudged,..] [--ours DIR] [--theirs ANSWERS.npz]

FOLDER and NAME as of cuda_requests_benchmark, CHECKPOINT a Qwen3 folder with block-fp8 weights in one safetensors file. Needs torch and a
GPU with some 30 GB. Every product has e4m3 operands with a scale for each 128 columns (activations) or 128 x 128 block (weights, quantised
again with powers of two when loaded). With a power of two such values are bf16 numbers, with another scale the sum of two bf16 numbers but
for 2^-17: bf16 products with f32 sums are the fp8 product, but for the order of its sums. Variants:

    fused      norms, rotation and SwiGLU in f32 until they are quantised, as Quail's kernels do; all scales powers of two
    bf16       each of them rounded to bf16 first, cosines and sines as well, as engines of separate steps do
    nudged     `fused`, the first layer's norm weights moved by one bf16 step up or down
    wide       `fused` without quantised activations: what the quantisation itself does
    attention  `fused`, but of activations only the attention's output has powers of two: what vLLM 0.26 does, whose fused kernels of
               norm and SwiGLU with quantisation leave the scale as it is
    attention_bf16, attention_nudged    the same with those changes

Prints how many answers agree for each two of them, and of them with --ours (cuda_requests_benchmark's folder) and --theirs
(another engine's), the eight logits' deviation from the first variant's as a share of their own, and the agreement by fifths of its gap.
"""
import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

ANSWERS = [830, 895, 1866, 2514, 3007, 3582, 4049, 6867]  # of cuda_requests_benchmark
GROUP, TOP = 128, 448.
BATCH_TOKENS = 16384
VARIANTS = ('fused', 'bf16', 'nudged', 'wide', 'attention', 'attention_bf16', 'attention_nudged')


def power_of_two(scale):
    return torch.exp2(torch.ceil(torch.log2(scale.clamp(min=1e-10 / TOP))))


def through_fp8(grouped, dims, exact=False):
    """Values as e4m3 with a scale over `dims`, a power of two or exact, holds them."""
    scale = grouped.abs().amax(dims, keepdim=True) / TOP
    scale = scale.clamp(min=1e-10 / TOP) if exact else power_of_two(scale)
    return (grouped / scale).clamp(-TOP, TOP).to(torch.float8_e4m3fn).float() * scale


class Model:
    def __init__(self, folder):
        self.config = json.loads((folder / 'config.json').read_text())
        stored = load_file(str(folder / 'model.safetensors'), device='cuda')
        self.weights = {name: self.linear(stored, name) if name + '_scale_inv' in stored else tensor
                        for name, tensor in stored.items() if not name.endswith('_scale_inv')}

    def linear(self, stored, name):
        """bf16 [N, K], exactly the values of the requantised weights."""
        rows, columns = stored[name].shape
        blocks = stored[name].float().view(rows // GROUP, GROUP, columns // GROUP, GROUP)
        blocks = blocks * stored[name + '_scale_inv'].float()[:, None, :, None]
        return through_fp8(blocks, (1, 3)).view(rows, columns).bfloat16()


class Pass:
    """One batch of right-padded prompts through the model under one variant."""

    def __init__(self, model, variant, ids):
        self.model, self.config = model, model.config
        self.steps_in_bf16, self.nudged, self.wide = (variant.endswith(word) for word in ('bf16', 'nudged', 'wide'))
        self.exact = variant.startswith('attention')
        self.shape = ids.shape  # [B, L]
        half = self.config['head_dim'] // 2
        rates = self.config['rope_theta'] ** (-torch.arange(half, device='cuda', dtype=torch.float64) / half)
        angles = torch.arange(ids.shape[1], device='cuda', dtype=torch.float64)[:, None] * rates
        self.cosine, self.sine = (self.step(f(angles).float()) for f in (torch.cos, torch.sin))
        self.residual = model.weights['model.embed_tokens.weight'][ids.flatten()]

    def step(self, x):
        """The f32 result of a step between two products as the variant keeps it."""
        return x.bfloat16().float() if self.steps_in_bf16 else x

    def operand(self, x, exact=False):
        """bf16 terms whose sum is the quantised activation."""
        x = self.step(x)
        if self.wide:
            return [x.bfloat16()]
        x = through_fp8(x.view(len(x), -1, GROUP), (2,), exact).view(x.shape)
        high = x.bfloat16()
        return [high, (x - high.float()).bfloat16()] if exact else [high]

    def normed(self, x, name):
        weight = self.model.weights[name].float()
        if self.nudged and name == 'model.layers.0.input_layernorm.weight':
            generator = torch.Generator('cuda').manual_seed(1)
            up = torch.rand(len(weight), device='cuda', generator=generator) < .5
            weight = weight + torch.where(up, 2. ** -8, -2. ** -8) * weight.abs()
            weight = weight.bfloat16().float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config['rms_norm_eps']) * weight

    def add(self, delta):
        total = self.residual.float() + delta.float()
        self.residual = total.bfloat16()
        return total

    def product(self, terms, *names):
        """bf16 [rows, N] of each name."""
        weights = [self.model.weights[name + '.weight'].T for name in names]
        return [sum(torch.mm(term, weight, out_dtype=torch.float32) for term in terms).bfloat16() for weight in weights]

    def rotated(self, x, norm):
        """[B, heads, L, D] of a projection's [B L, heads D]."""
        batch, length = self.shape
        x = x.view(batch, length, -1, self.config['head_dim']).float()
        low, high = self.step(self.normed(x, norm)).chunk(2, -1)
        cosine, sine = self.cosine[:, None], self.sine[:, None]
        return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1).bfloat16().transpose(1, 2)

    def attention(self, layer, x):
        batch, length = self.shape
        q, k, v = self.product(x, *(f'{layer}self_attn.{part}_proj' for part in 'qkv'))
        q, k = self.rotated(q, layer + 'self_attn.q_norm.weight'), self.rotated(k, layer + 'self_attn.k_norm.weight')
        v = v.view(batch, length, -1, self.config['head_dim']).transpose(1, 2)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        out = out.transpose(1, 2).reshape(batch * length, -1).float()
        return self.product(self.operand(out), layer + 'self_attn.o_proj')[0]

    def logits(self, last):
        """[B, 8] f32 at the rows `last`."""
        total = self.residual.float()
        for number in range(self.config['num_hidden_layers']):
            layer = f'model.layers.{number}.'
            delta = self.attention(layer, self.operand(self.normed(total, layer + 'input_layernorm.weight'), self.exact))
            total = self.add(delta)
            x = self.operand(self.normed(total, layer + 'post_attention_layernorm.weight'), self.exact)
            gate, up = self.product(x, layer + 'mlp.gate_proj', layer + 'mlp.up_proj')
            x = self.operand(functional.silu(gate.float()) * up.float(), self.exact)
            total = self.add(self.product(x, layer + 'mlp.down_proj')[0])
        rows = torch.arange(len(last), device='cuda') * self.shape[1] + last
        hidden = self.normed(total[rows], 'model.norm.weight').bfloat16().float()
        return hidden @ self.model.weights['model.embed_tokens.weight'][ANSWERS].float().T


def read_prompts(folder, name, count):
    tokens = np.fromfile(folder / f'{name}.tokens.u32', '<u4')
    offsets = np.fromfile(folder / f'{name}.offsets.u64', '<u8')
    width = json.loads((folder / f'{name}.json').read_text())['width']
    requests = np.fromfile(folder / f'{name}.requests.i32', '<i4').reshape(-1, width)[:count]
    return [np.concatenate([tokens[offsets[part]:offsets[part + 1]] for part in row if part >= 0]).astype(np.int64) for row in requests]


def batches(prompts):
    order, start = np.argsort([len(prompt) for prompt in prompts], kind='stable'), 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * len(prompts[order[end]]) <= BATCH_TOKENS:
            end += 1
        yield order[start:end]
        start = end


def answer_logits(model, variant, prompts):
    out = np.zeros((len(prompts), len(ANSWERS)), np.float32)
    for numbers in batches(prompts):
        lengths = torch.tensor([len(prompts[n]) for n in numbers], device='cuda')
        ids = torch.zeros(len(numbers), int(lengths.max()), dtype=torch.long)
        for row, n in enumerate(numbers):
            ids[row, :len(prompts[n])] = torch.from_numpy(prompts[n])
        out[numbers] = Pass(model, variant, ids.cuda()).logits(lengths - 1).cpu().numpy()
    return out


def report(logits, answers):
    first = next(iter(logits))
    for a in answers:
        print(f'{a:17s}' + ''.join(f'{b} {(answers[a] == answers[b]).mean():.4f}  ' for b in answers if b != a), flush=True)
    centred = {name: values - values.mean(1, keepdims=True) for name, values in logits.items()}
    own = np.square(centred[first]).mean()
    for name, values in centred.items():
        print(f'{name}: logits deviate from {first} by {np.sqrt(np.square(values - centred[first]).mean() / own):.4f} of their own deviation')
    ordered = np.sort(logits[first], 1)
    gap = ordered[:, -1] - ordered[:, -2]
    fifth = np.digitize(gap, np.quantile(gap, [.2, .4, .6, .8]))
    for name in answers:
        shares = [(answers[name] == answers[first])[fifth == n].mean() for n in range(5)]
        print(f'{name}: agrees with {first}, by fifths of its gap: ' + ' '.join(f'{share:.3f}' for share in shares))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path)
    parser.add_argument('checkpoint', type=Path)
    parser.add_argument('name')
    parser.add_argument('--requests', type=int, default=1000)
    parser.add_argument('--variants', default=','.join(VARIANTS))
    parser.add_argument('--ours', type=Path)
    parser.add_argument('--theirs', type=Path)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    prompts = read_prompts(arguments.folder, arguments.name, arguments.requests)
    with torch.no_grad():
        model = Model(arguments.checkpoint)
        logits = {variant: answer_logits(model, variant, prompts) for variant in arguments.variants.split(',')}
    answers = {name: np.array(ANSWERS)[values.argmax(1)] for name, values in logits.items()}
    if arguments.ours:
        answers['ours'] = np.fromfile(arguments.ours / f'{arguments.name}.answers.u32', '<u4')[:len(prompts)]
    if arguments.theirs:
        stored = np.load(arguments.theirs)
        answers['theirs'] = next(stored[key] for key in stored if key.startswith(arguments.name + '_'))[:len(prompts)]
    report(logits, answers)


if __name__ == '__main__':
    main()
