#!/usr/bin/env python3
"""Trains the judge's adapter on a GPU from the files of judge_pack.py and evaluates it on the test splits.

    judge_train.py PACK OUT --seed 0 [--rank 8 --lr 2e-3 --epochs 1.75 --cycles 3 --mass 0.1 --limit SECONDS]
    judge_train.py PACK OUT --full --lr 1e-4       all linear weights themselves: an upper bound, and no adapter file
    judge_train.py PACK OUT --rank 64 --cut 8      trains at one rank, brought to a lower one at the end
    judge_train.py PACK OUT --fold 0 2             trains on half of the texts and judges the other half into OUT.npz, for
    judge_train.py PACK OUT --teacher T.npz [T.npz ..] [--trust .5]   targets between truth and what unseen teachers said
    judge_train.py PACK OUT --raw        evaluates the base model alone
    judge_train.py PACK OUT --adapter F [F ..]  evaluates a finished adapter, or the mean of several

Writes OUT.npz (margins and label mass of every test row, in file order) and OUT.safetensors (float16 factors), of a mean too.
Loss: logistic on the margin, plus `mass` x -log of the probability of the four label tokens over the vocabulary.
The learning rate falls to zero in each cycle. The adapter is the mean of the updates at the ends of the cycles, brought back
to the rank by its largest singular values; `last` in the .npz are the margins of the last cycle's end alone, `uncut` those before
the rank was cut.
"""
import argparse
import json
import math
import pathlib
import time
import zlib

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from judge_model import Judge, read_blobs, transformer_layer
from prompt_layout import FALSE_IDS, TRUE_IDS

MICRO_BATCH_TOKENS = 65536
SORTED_BATCHES = 64  # batches of similar length are cut from windows of this many
FOLD_FROM, FOLD_TO = 4, 40  # tokens of a prompt by whose hash its fold is chosen; before them stands the layout's head
WARM_UP = .04  # of the steps
FIRST_CYCLE, LATER_PEAK = .55, .7  # the first cycle's share of the steps; the later cycles' share of the learning rate


class Rows:
    """Token ids of all splits on the device; `split` gives row numbers."""

    def __init__(self, blobs, device):
        tokens = blobs['tokens_low'].astype(np.int32) + 256 * blobs['tokens_high'].astype(np.int32)
        self.lengths = blobs['lengths'].astype(np.int64)
        self.tokens = torch.from_numpy(tokens).to(device)
        starts = np.concatenate([[0], np.cumsum(self.lengths)])[:-1]
        self.starts_on, self.lengths_on = (torch.from_numpy(array).to(device) for array in (starts, self.lengths))
        self.truths = torch.from_numpy(blobs['truths'].astype(np.float32)).to(device)
        self.counts, self.device = blobs['info']['counts'], device
        self.parts = blobs['parts'].reshape(-1, 4).astype(np.int64)  # head, text, between, scored (prompt_layout)
        self.parts_on = torch.from_numpy(self.parts).to(device)

    def batch(self, numbers, drop=0.):
        """(ids [rows, length] right-padded with 0, last positions, truths); `drop` of the tokens of each row's text are left out."""
        picked = torch.as_tensor(numbers, device=self.device)
        length = -(-int(self.lengths[numbers].max()) // 8) * 8
        position = torch.arange(length, device=self.device)[None]
        lengths = self.lengths_on[picked]
        at = (self.starts_on[picked][:, None] + position).clamp(max=len(self.tokens) - 1)
        kept = position < lengths[:, None]
        if drop:
            begin, size = self.parts_on[picked, 0, None], self.parts_on[picked, 1, None]
            in_text = (position >= begin) & (position < begin + size)
            kept &= ~(in_text & (torch.rand(in_text.shape, device=self.device) < drop))
            at = at.gather(1, torch.argsort(~kept, dim=1, stable=True))
            lengths = kept.sum(1)
        ids = torch.where(position < lengths[:, None], self.tokens[at], 0)
        return ids.long(), lengths - 1, self.truths[picked]


def fold_of(rows, of):
    """[training rows]: which of `of` folds a row is in. Rows that begin alike (mostly: of one text) are in one."""
    starts = rows.starts_on.cpu().numpy()
    tokens = rows.tokens.cpu().numpy()
    return np.array([zlib.crc32(tokens[start + FOLD_FROM:start + FOLD_TO].tobytes()) % of
                     for start in starts[:rows.counts['train']]])


def taught(rows, paths, trust):
    """Mixes what teachers say of training rows into rows.truths. Each .npz has margins of the rows of its fold, NaN elsewhere."""
    margins = np.nanmean([np.load(path)['train_margins'] for path in paths], 0)
    known = np.flatnonzero(~np.isnan(margins))
    truths = rows.truths[:rows.counts['train']].cpu().numpy()
    signed = np.where(truths[known] > .5, margins[known], -margins[known])
    factors = np.geomspace(.1, 3, 60)  # calibrated before it is believed
    factor = factors[np.argmin([np.logaddexp(0, -factor * signed).mean() for factor in factors])]
    said = 1 / (1 + np.exp(-factor * margins[known]))
    print(f'teachers know {len(known)} of {len(truths)} rows, agree with {(signed > 0).mean():.3f}, scale {factor:.2f}', flush=True)
    mixed = (1 - trust) * truths[known] + trust * said
    rows.truths[torch.as_tensor(known, device=rows.device)] = torch.as_tensor(mixed.astype(np.float32), device=rows.device)


def evaluate(judge, rows, numbers=None):
    """(margins, label mass) of all rows behind the training split, or of these rows."""
    first = rows.counts['train']
    wanted = np.arange(first, len(rows.lengths)) if numbers is None else numbers
    order = wanted[np.argsort(rows.lengths[wanted], kind='stable')]
    margins, mass = np.zeros(len(rows.lengths), np.float32), np.zeros(len(rows.lengths), np.float32)
    labels = list(TRUE_IDS + FALSE_IDS)
    with torch.no_grad():
        merged = judge.merged()
        for start in range(0, len(order), 512):
            numbers = order[start:start + 512]
            ids, last, _ = rows.batch(numbers)
            logits = judge.logits(judge.hidden(ids, last, merged))
            margins[numbers] = judge.margin(logits).cpu().numpy()
            mass[numbers] = torch.softmax(logits, 1)[:, labels].sum(1).cpu().numpy()
    return margins[wanted], mass[wanted]


def likelihood_gains(judge, rows):
    """evaluate.py's likelihood baseline of all rows behind the training split."""
    first, merged = rows.counts['train'], judge.merged()
    gains = np.zeros(len(rows.lengths), np.float32)
    starts = rows.starts_on.cpu().numpy()
    order = first + np.argsort(rows.lengths[first:], kind='stable')
    for begin in range(0, len(order), 128):
        numbers = order[begin:begin + 128]
        head, text, between, scored = rows.parts[numbers].T
        at = lambda row, *spans: [starts[row] + k for a, b in spans for k in range(a, b)]
        whole = [at(row, (0, h + t + b + s)) for row, h, t, b, s in zip(numbers, head, text, between, scored)]
        alone = [at(row, (0, h), (h + t, h + t + b + s)) for row, h, t, b, s in zip(numbers, head, text, between, scored)]
        behind, without = (log_likelihood(judge, rows, places, scored, merged) for places in (whole, alone))
        gains[numbers] = behind - without
    return gains[first:]


def log_likelihood(judge, rows, places, scored, merged):
    """Sum of log P of the last `scored` tokens of each row; `places` are positions in rows.tokens."""
    longest = max(map(len, places))
    at = torch.tensor([place + place[:1] * (longest - len(place)) for place in places], device=judge.device)
    ids = rows.tokens[at].long()
    lengths = torch.tensor([len(place) for place in places], device=judge.device)
    counts = torch.as_tensor(scored, device=judge.device)
    position = torch.arange(longest - 1, device=judge.device)[None] + 1
    counted = (position >= (lengths - counts)[:, None]) & (position < lengths[:, None])
    row, column = counted.nonzero(as_tuple=True)
    states = judge.states(ids, merged)[row, column]  # the state before the counted token
    sums = torch.zeros(len(places), device=judge.device)
    for part in range(0, len(row), 8192):
        logits = judge.logits(judge.final(states[part:part + 8192]))
        chosen = logits.gather(1, ids[row[part:part + 8192], column[part:part + 8192] + 1, None])[:, 0]
        sums.index_add_(0, row[part:part + 8192], chosen - torch.logsumexp(logits, 1))
    return sums.cpu().numpy()


def schedule(rows, arguments):
    """Row numbers of every step: shuffled, then batches of similar length in random order."""
    pick = np.random.RandomState(arguments.seed + 1)
    own = np.arange(rows.counts['train'])
    if arguments.fold:
        own = own[fold_of(rows, arguments.fold[1]) != arguments.fold[0]]
    steps = []
    for _ in range(math.ceil(arguments.epochs)):
        order, batches = pick.permutation(own), []
        window = arguments.batch * SORTED_BATCHES
        for start in range(0, len(order), window):
            part = order[start:start + window]
            part = part[np.argsort(rows.lengths[part], kind='stable')]
            batches += [part[k:k + arguments.batch] for k in range(0, len(part), arguments.batch)]
        steps += [batches[k] for k in pick.permutation(len(batches))]
    steps = steps[:int(len(steps) * arguments.epochs / math.ceil(arguments.epochs))]
    return steps[:arguments.steps or None]


def step_loss(judge, rows, numbers, arguments):
    """Backpropagates one step in micro-batches; returns (loss, accuracy) on the device."""
    parts = max(1, -(-len(numbers) * int(rows.lengths[numbers].max()) // MICRO_BATCH_TOKENS))
    total = torch.zeros(2, device=judge.device)
    labels = list(TRUE_IDS + FALSE_IDS)
    for chunk in np.array_split(numbers, parts):
        ids, last, truths = rows.batch(chunk, arguments.drop)
        logits = judge.logits(judge.hidden(ids, last, judge.merged()))
        margin = judge.margin(logits)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(margin, truths)
        off_list = (torch.logsumexp(logits, 1) - torch.logsumexp(logits[:, labels], 1)).mean()
        share = len(chunk) / len(numbers)
        ((loss + arguments.mass * off_list) * share).backward()
        total += torch.stack([loss.detach(), ((margin.detach() > 0) == (truths > .5)).float().mean()]) * share
    return total


def learning_rate(progress, cycles):
    """(share of the learning rate, cycle) at `progress`, the share of the steps that is done."""
    rise = min(1, progress / WARM_UP)
    if cycles == 1:
        return rise * (.5 + .5 * math.cos(math.pi * progress)), 0
    if progress < FIRST_CYCLE:
        return rise * (.5 + .5 * math.cos(math.pi * progress / FIRST_CYCLE)), 0
    within, cycle = math.modf((progress - FIRST_CYCLE) / (1 - FIRST_CYCLE) * (cycles - 1))
    return LATER_PEAK * (.5 + .5 * math.cos(math.pi * within)), 1 + int(cycle)


def train(judge, rows, arguments):
    """Returns the report. The judge holds the mean of the cycles' ends, the report the margins of the last end."""
    if arguments.full:
        parameters = [weight.requires_grad_() for weight in judge.weights.values()]
    else:
        parameters = judge.add_adapter(arguments.rank, arguments.alpha)
    optimizer = torch.optim.AdamW(parameters, lr=arguments.lr, betas=(.9, .99), weight_decay=arguments.decay, fused=True)
    steps, began, seen = schedule(rows, arguments), time.time(), torch.zeros(2, device=judge.device)
    ends, cycle = [], 0
    for number, numbers in enumerate(steps):
        progress = max(number / len(steps), (time.time() - began) / arguments.limit)
        if progress >= 1:
            break
        rate, now = learning_rate(progress, arguments.cycles)
        if now > cycle:
            ends.append(None if arguments.full else judge.factors())
            cycle = now
        for group in optimizer.param_groups:
            group['lr'] = arguments.lr * rate
        seen += step_loss(judge, rows, numbers, arguments)
        torch.nn.utils.clip_grad_norm_(parameters, 1.)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if number % 200 == 199:
            loss, accuracy = (seen / 200).tolist()
            seen.zero_()
            print(f'{arguments.out.name} {number + 1}/{len(steps)} loss {loss:.3f} accuracy {accuracy:.3f} '
                  f'{time.time() - began:.0f} s', flush=True)
    report = dict(train_seconds=time.time() - began, steps=number + 1)
    if arguments.full:
        return report
    if ends:
        report['last'] = evaluate(judge, rows)[0]
    if arguments.cut:
        judge.take_mean([*ends, judge.factors()])
        report['uncut'] = evaluate(judge, rows)[0]
    if ends or arguments.cut:
        judge.take_mean([*ends, judge.factors()], arguments.cut or arguments.rank)
    return report


def load_adapters(judge, paths):
    """Puts an adapter file, or the mean of several, into the judge; returns the settings that they share."""
    several = []
    for path in paths:
        with safe_open(path, 'numpy') as file:
            about = file.metadata()
            judge.load_adapter({name: file.get_tensor(name) for name in file.keys()},
                               float(about['alpha']) / float(about['rank']))
        several.append(judge.factors())
    if len(paths) > 1:
        judge.take_mean(several)
    return {name: value for name, value in about.items() if name != 'seed'} | {'mean_of': ' '.join(path.stem for path in paths)}


def left_out_margins(judge, rows, arguments):
    """[training rows]: margins of the fold that was left out, NaN elsewhere."""
    numbers = np.flatnonzero(fold_of(rows, arguments.fold[1]) == arguments.fold[0])
    if arguments.steps:
        numbers = numbers[:8 * arguments.steps]
    margins = np.full(rows.counts['train'], np.nan, np.float32)
    margins[numbers] = evaluate(judge, rows, numbers)[0]
    return margins


def settings_of(arguments):
    unsaid = ('pack', 'out', 'raw', 'adapter', 'float32', 'full', 'fold', 'steps', 'cut')
    settings = {name: str(value) for name, value in vars(arguments).items() if name not in unsaid}
    settings['teacher'] = ' '.join(path.stem for path in arguments.teacher)
    if arguments.cut:  # the written factors need no more scale than the trained ones
        settings |= {'rank': str(arguments.cut), 'trained_rank': str(arguments.rank),
                     'alpha': str(arguments.alpha * arguments.cut / arguments.rank)}
    return settings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('pack', type=pathlib.Path)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--raw', action='store_true')
    parser.add_argument('--adapter', type=pathlib.Path, nargs='+', default=[])
    parser.add_argument('--seed', type=int, default=0, help='of the order of the rows; all runs start from the same factors')
    parser.add_argument('--rank', type=int, default=8)
    parser.add_argument('--alpha', type=float, default=16)
    parser.add_argument('--lr', type=float, default=2e-3)
    parser.add_argument('--epochs', type=float, default=1.75)
    parser.add_argument('--cycles', type=int, default=3)
    parser.add_argument('--batch', type=int, default=128)
    parser.add_argument('--mass', type=float, default=.1)
    parser.add_argument('--decay', type=float, default=.1)
    parser.add_argument('--drop', type=float, default=0., help='share of the tokens of a text that a step leaves out, others each time')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--cut', type=int, default=0, help='rank of the adapter that is written')
    parser.add_argument('--fold', type=int, nargs=2, metavar=('K', 'OF'), help='leave fold K out of OF, and judge it at the end')
    parser.add_argument('--teacher', type=pathlib.Path, nargs='+', default=[])
    parser.add_argument('--trust', type=float, default=.5, help='in the teachers, against the labels')
    parser.add_argument('--steps', type=int, default=0, help='at most, to try the program')
    parser.add_argument('--float32', action='store_true', help='evaluate in float32 too')
    parser.add_argument('--limit', type=float, default=1e9, help='seconds after which the schedule must have ended')
    arguments = parser.parse_args()
    began = time.time()
    torch.manual_seed(arguments.seed)
    device, dtype = ('cuda', torch.bfloat16) if torch.cuda.is_available() else ('cpu', torch.float32)
    tensors = {}
    for path in sorted(arguments.pack.glob('weights-*.bin')):
        tensors |= read_blobs(path)
    report, trains = {}, not (arguments.raw or arguments.adapter)
    judge, rows = Judge(tensors, device, dtype), Rows(read_blobs(arguments.pack / 'rows.bin'), device)
    if device == 'cuda' and trains:
        judge.layer = torch.compile(transformer_layer)  # 1.5 times the steps, for 20 s before the first
    print(arguments.out.name, f'loaded in {time.time() - began:.0f} s', flush=True)
    if arguments.adapter:
        settings = load_adapters(judge, arguments.adapter)
    elif trains:
        if arguments.teacher:
            taught(rows, arguments.teacher, arguments.trust)
        report = train(judge, rows, arguments)
        if arguments.fold:
            report['train_margins'] = left_out_margins(judge, rows, arguments)
        settings = settings_of(arguments)
    margins, mass = evaluate(judge, rows)
    if arguments.raw:
        with torch.no_grad():
            report['likelihood'] = likelihood_gains(judge, rows)
    if arguments.float32:
        report['margins_float32'] = evaluate(judge.in_float32(tensors), rows)[0]
    np.savez(str(arguments.out) + '.npz', margins=margins, mass=mass, counts=json.dumps(rows.counts), **report)
    if trains and not arguments.full or len(arguments.adapter) > 1:
        save_file(judge.adapter(), str(arguments.out) + '.safetensors', settings)
    shown = {key: round(value, 1) for key, value in report.items() if np.isscalar(value)}
    print(arguments.out.name, 'done', shown, f'{time.time() - began:.0f} s', flush=True)


if __name__ == '__main__':
    main()
