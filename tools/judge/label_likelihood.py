#!/usr/bin/env python3
"""Measures on the CPU how well the summed log-probability of a label's tokens behind a cue classifies, as AI_CLASSIFY is defined,
with and without an adapter.

    label_likelihood.py [SOURCES] [--speeches FILE.jsonl.gz] [--adapter FILE] [--rows 100] [--gguf FILE]

Prints the share of right labels of each task, cue and model: as it is / less the score without a text / less the mean score of the
table. Tasks: the example tables, what SOURCES (of judge_sources.sh) and the file of speeches hold. float32, no learning framework.
"""
import argparse
import collections
import pathlib
import random

import numpy as np

from domain_tests import SPEECH_TOPICS, rated_rows, reuters_rows, speech_rows, table
from evaluate import ADAPTER, MODEL, JudgeModel

CUES = ('\nThis text is about', '\nCategory:')
TICKET_LABELS = {'wants_refund': 'refund', 'wants_to_cancel': 'cancellation', 'cannot_log_in': 'login problem',
                 'is_late': 'late delivery', 'wants_invoice': 'invoice', 'is_broken': 'broken product'}


def example_tasks():
    """{task: [(text, label)]} of the example tables; tickets that are about one thing alone."""
    sign = lambda line: 'positive' if line['is_positive'] == 'true' else 'negative'
    tickets = []
    for line in table('tickets'):
        wanted = [label for column, label in TICKET_LABELS.items() if line[column] == 'true']
        tickets += [(line['body'], wanted[0])] if len(wanted) == 1 else []
    return {'reviews: positive, negative': [(line['body'], sign(line)) for line in table('reviews')], 'tickets: six topics': tickets}


def fetched_tasks(sources, speeches, pick):
    found = collections.defaultdict(list)
    if sources:
        for row in rated_rows(sources / 'rated', pick):
            good = row.truth == (row.question in ('Is this review positive?', 'Is the customer satisfied?',
                                                  'Is the tone positive?', 'Is the mood good?'))
            found[row.kind.replace(':', ' ') + ': positive, negative'].append((row.text, 'positive' if good else 'negative'))
        for row in reuters_rows(sources / 'reuters'):
            if row.truth:
                found['Reuters: takeover, oil'].append((row.text, 'takeover' if row.kind == 'reuters:acq' else 'oil'))
    if speeches:
        for row in speech_rows(speeches, pick):
            if row.truth:
                found['speeches: six topics'].append((row.text, row.kind.removeprefix('speech:')))
        assert {label for _, label in found['speeches: six topics']} <= set(SPEECH_TOPICS)
    return found


def scores_of(model, texts, labels, cue):
    """float32 [texts + 1, labels] of summed log P of the label's tokens; the last row has no text."""
    head, ends = model.encode('DOCUMENT:\n'), [model.encode(' ' + label) for label in labels]
    bodies = [head + model.encode(text) + model.encode(cue) for text in [*texts, '']]
    lists = [body + end for body in bodies for end in ends]
    return model.log_likelihood(lists, [len(end) for _ in bodies for end in ends]).reshape(len(bodies), len(labels))


def right_shares(scores, wanted):
    """Shares of right labels: as it is, less the score without a text, less the mean of the table."""
    rows = scores[:-1]
    return [float((np.argmax(rows - base, 1) == wanted).mean()) for base in (0, scores[-1], rows.mean(0))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', type=pathlib.Path, nargs='?')
    parser.add_argument('--speeches', type=pathlib.Path)
    parser.add_argument('--gguf', type=pathlib.Path, default=MODEL)
    parser.add_argument('--adapter', type=pathlib.Path, default=ADAPTER)
    parser.add_argument('--rows', type=int, default=100, help='of a task, at most')
    arguments = parser.parse_args()
    pick = random.Random(7)
    models = {'raw': JudgeModel(arguments.gguf), 'adapter': JudgeModel(arguments.gguf, arguments.adapter)}
    print(f'{"task":42s}{"n":>4s}  cue{"":18s}' + ''.join(f'{name:>18s}' for name in models))
    for task, rows in (example_tasks() | fetched_tasks(arguments.sources, arguments.speeches, pick)).items():
        rows = pick.sample(rows, min(len(rows), arguments.rows))
        labels = sorted({label for _, label in rows})
        wanted = np.array([labels.index(label) for _, label in rows])
        for cue in CUES:
            shares = [right_shares(scores_of(model, [text for text, _ in rows], labels, cue), wanted) for model in models.values()]
            cells = ''.join(f'{"/".join(f"{share:.2f}" for share in three):>18s}' for three in shares)
            print(f'{task:42s}{len(rows):4d}  {cue.strip():21s}' + cells, flush=True)


if __name__ == '__main__':
    main()
