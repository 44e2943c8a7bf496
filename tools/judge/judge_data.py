#!/usr/bin/env python3
"""Builds the judge's rows: train.jsonl, word.jsonl (unseen wordings and texts), kind.jsonl (unseen kinds of question).

    judge_data.py SOURCES OUT [--seed N]

SOURCES is what judge_sources.sh leaves: debian/, wordnet/, fortunes/. The same sources and seed give the same rows.
The banks of banks/training/ add rows to training from a random stream of their own, so that no test row depends on them.
"""
import argparse
import collections
import pathlib

from bank import BankSource, read_bank, read_more
from rows import SPLITS, Collector, bucket
from source_amounts import AmountSource
from source_comparisons import ComparisonSource
from source_debian import DebianSource
from source_fortunes import FortuneSource
from source_interests import InterestSource, NeedSource
from source_marked import MarkedSource
from source_measures import MeasureSource
from source_mentions import MentionSource
from source_numbers import NumberSource
from source_reviews import ReviewSource
from source_scenes import SceneSource, read_scenes
from source_wordnet import WordNet, WordNetSource

BANKS = pathlib.Path(__file__).parent / 'banks'
TRAINING_BANKS = BANKS / 'training'
# Rows per bank: (documents with a question, pairs of documents).
BANK_ROWS = {'issues': (9000, 500), 'acts': (3000, 300), 'genres': (6500, 1100), 'topics': (3500, 1500), 'persons': (4000, 0),
             'kinds': (16000, 0)}
SCENE_BANKS = ('scenes', 'dealings', 'episodes')
MARKED_ROWS = {'tickets': 6700, 'purchases': 6700}
MORE_BANK_ROWS = {'kinds': (12500, 0), 'topics': (2200, 1500), 'genres': (2200, 1200)}
TEST_ROWS_PER_KIND = 40
TEST_ROWS_PER_PAIR_KIND = 400


def collect(sources, seed):
    """(rows, filler): the rows of all splits, and sentences that stand beside others."""
    rows = Collector(seed)
    wordnet = WordNet(sources / 'wordnet')
    rows.begin('filler')
    rows.random.shuffle(wordnet.examples)
    filler = [text.capitalize() + '.' for text in wordnet.examples[5000:9000]]
    rows.begin('packages')
    debian = DebianSource(sources / 'debian', rows)
    debian.make()
    WordNetSource(wordnet, rows).make()
    rows.begin('fortunes')
    fortunes = FortuneSource(sources / 'fortunes', rows)
    fortunes.make()
    bodies = [package.body.replace('\n', ' ')[:500] for package in debian.packages[5000:6500]]
    MentionSource(wordnet, wordnet.examples[:5000] + fortunes.texts[:2500] + wordnet.examples[9000:25000], bodies, rows).make()
    for name, (count, twins) in BANK_ROWS.items():
        BankSource(read_bank(BANKS / f'{name}.txt'), rows, filler).make(count, twins)
    InterestSource(read_bank(BANKS / 'interests.txt'), rows).make(8500)
    NeedSource(read_scenes(BANKS / 'needs.txt'), rows).make(50)
    scenes = [scene for name in SCENE_BANKS for scene in read_scenes(BANKS / f'{name}.txt')]
    SceneSource(scenes, rows, filler).make(45, 12)
    ReviewSource(rows).make(8000, 9000)
    NumberSource(rows, filler).make(34000, 4500)
    AmountSource(rows, filler).make(22000)
    return rows, filler


def collect_more(seed, filler):
    """Rows for training alone."""
    rows = Collector(seed, training_only=True)
    for name, (count, twins) in MORE_BANK_ROWS.items():
        BankSource(read_more(TRAINING_BANKS / f'{name}.txt', read_bank(BANKS / f'{name}.txt')), rows, filler, .2).make(count, twins)
    InterestSource(read_bank(TRAINING_BANKS / 'interests.txt'), rows).make(4000)
    NeedSource(read_scenes(TRAINING_BANKS / 'needs.txt'), rows).make(30)
    SceneSource(read_scenes(TRAINING_BANKS / 'scenes.txt'), rows, filler, .4).make(32, 0)
    ReviewSource(rows, TRAINING_BANKS).make(4500, 4500)
    ComparisonSource(rows, filler).make(18000)
    for name, count in MARKED_ROWS.items():
        MarkedSource(TRAINING_BANKS / f'{name}.txt', rows, filler).make(count)
    MeasureSource(rows, filler).make(2800, 1000)
    return rows


def add_to_training(rows, more):
    """Adds the rows of `more` to the training rows, each once, but for those whose text or partner is a test row's."""
    tested = {text for split in SPLITS[1:] for row in rows.rows[split] for text in (row.text, row.partner)}
    fresh = {(row.text, row.question, row.partner): row for row in more.rows['train']}.values()
    kept = [row for row in fresh if row.text not in tested and (row.partner is None or row.partner not in tested)]
    print('more for training', len(kept), 'as in the tests and left out', len(fresh) - len(kept))
    rows.rows['train'] += kept
    more.begin('order')
    more.random.shuffle(rows.rows['train'])


def thin(rows):
    """At most so many test rows a kind, so that no kind dominates: those with the lowest hash, so that a row that goes leaves the others."""
    seen, kept = collections.Counter(), []
    for row in sorted(rows, key=lambda row: bucket(f'{row.kind}|{row.question}|{row.text}|{row.partner}', 1 << 32)):
        seen[row.source, row.kind] += 1
        if seen[row.source, row.kind] <= (TEST_ROWS_PER_PAIR_KIND if row.partner else TEST_ROWS_PER_KIND):
            kept.append(row)
    return kept


def write(rows, out):
    out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        kept = rows.rows[split]
        with open(out / f'{split}.jsonl', 'w', encoding='utf8') as file:
            file.writelines(row.to_json() + '\n' for row in kept)
        sources = collections.Counter(row.source for row in kept)
        share = sum(row.truth for row in kept) / max(1, len(kept))
        print(split, len(kept), dict(sources), f'TRUE {share:.3f}', 'kinds', len({row.kind for row in kept}),
              f'characters {sum(len(row.text) for row in kept) / max(1, len(kept)):.0f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', type=pathlib.Path)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--seed', type=int, default=11)
    arguments = parser.parse_args()
    rows, filler = collect(arguments.sources, arguments.seed)
    for split in SPLITS[1:]:
        rows.rows[split] = thin(rows.rows[split])
    add_to_training(rows, collect_more(arguments.seed + 1, filler))
    write(rows, arguments.out)


if __name__ == '__main__':
    main()
