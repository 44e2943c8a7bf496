#!/usr/bin/env python3
"""Builds dom.jsonl: rows whose kind of text has no training source. Nothing here may be used to choose anything.

    domain_tests.py SOURCES OUT [--speeches FILE.jsonl.gz]
    domain_tests.py --fixed FILE      the small balanced set of tests/data, from text of this project alone

The example tables of the project, questions written for testing (own_tests.tsv), rated film, shop, newspaper and short
message texts of vaderSentiment 0.5, Reuters stories of r-cran-tm, and public speeches where a file is given.
"""
import argparse
import csv
import gzip
import html
import json
import pathlib
import random
import re

from rows import Row

ROOT = pathlib.Path(__file__).resolve().parents[2]
REVIEW_QUESTIONS = {'is_positive': 'Is the customer happy with the product?',
                    'is_broken': 'Did the product break or arrive damaged?',
                    'is_late': 'Does the review say that the delivery was late?',
                    'contacted_service': 'Did the customer have contact with customer service?'}
TICKET_QUESTIONS = {'wants_refund': 'Does the customer want a refund?',
                    'wants_to_cancel': 'Does the customer want to cancel a contract?',
                    'cannot_log_in': 'Has the customer trouble logging in?',
                    'is_broken': 'Is a product broken?', 'is_late': 'Is a delivery late or missing?',
                    'wants_invoice': 'Does the customer ask for an invoice or receipt?',
                    'is_angry': 'Is the customer angry?', 'is_urgent': 'Does the customer need an answer at once?',
                    'says_thanks': 'Does the customer thank the company?'}
LEADS_QUESTION = 'DOCUMENT {0} might buy this: DOCUMENT {1}'
# (file, question about a good rating, about a bad one, rating that counts as clear, rows)
RATED = [('movieReviewSnippets', 'Is this review positive?', 'Did the critic dislike the film?', .8, 300),
         ('amazonReviewSnippets', 'Is the customer satisfied?', 'Is the customer unhappy?', 1.2, 300),
         ('nytEditorialSnippets', 'Is the tone positive?', 'Is it something bad?', 1.2, 200),
         ('tweets', 'Is the mood good?', 'Does the writer feel bad?', 1.5, 300)]
SPEECH_TOPICS = {'war': 'war|army|troops|enemy|soldiers|battle', 'taxes': 'tax|taxes|taxation|revenue',
                 'agriculture': 'farm|farmer|farmers|agriculture|crops|farming',
                 'education': 'school|schools|education|teachers|students|college',
                 'health': 'health|medical|doctors|hospital|medicare|disease',
                 'foreign trade': 'tariff|imports|exports|commerce|trade'}


def table(name):
    with open(ROOT / 'examples' / f'{name}.csv', encoding='utf8', newline='') as file:
        return list(csv.DictReader(file))


def example_rows():
    for name, questions in (('reviews', REVIEW_QUESTIONS), ('tickets', TICKET_QUESTIONS)):
        for line in table(name):
            for column, question in questions.items():
                yield Row(line['body'], question, line[column] == 'true', f'{name}:{column}', f'examples {name}')


def lead_rows():
    """All pairs of the hot-leads join, each side as the anchor once."""
    truth = {(line['customer_id'], line['product_id']) for line in table('hot_leads_truth')}
    for customer in table('customers'):
        for product in table('products'):
            texts = customer['profile'], product['description']
            for anchor in (0, 1):
                yield Row(texts[anchor], LEADS_QUESTION, (customer['id'], product['id']) in truth, f'leads:anchor {anchor}',
                          'examples leads', texts[1 - anchor], anchor)


def own_rows():
    for line in (pathlib.Path(__file__).parent / 'own_tests.tsv').read_text(encoding='utf8').splitlines():
        if not line.startswith('#'):
            truth, question, text = line.split('\t')
            yield Row(text, question, truth == '1', 'own:' + question, 'own tests')


def fixed_rows(pick):
    """Own questions, and as many true as false rows of each column of the example tables."""
    yield from own_rows()
    columns = {}
    for row in [*example_rows(), *lead_rows()]:
        columns.setdefault(row.kind, ([], []))[row.truth].append(row)
    for kind, (false, true) in columns.items():
        count = min(len(true), 20 if kind.startswith('leads') else 8 if kind.startswith('reviews') else 5)
        yield from pick.sample(false, count) + pick.sample(true, count)


def rated_rows(directory, pick):
    for name, good, bad, clear, count in RATED:
        lines = (directory / f'{name}_GroundTruth.txt').read_text(encoding='utf8', errors='replace').splitlines()
        rated = [(float(line.split('\t')[1]), line.split('\t')[2].strip()) for line in lines if line.count('\t') >= 2]
        for sign in (1, -1):
            pool = [text for rating, text in rated if rating * sign > clear and len(text) > 15]
            for text in pick.sample(pool, min(count // 2, len(pool))):
                asks_good = pick.random() < .5
                yield Row(text, good if asks_good else bad, (sign > 0) == asks_good, 'rated:' + name, 'rated ' + name)


def reuters_rows(directory):
    for kind, question in (('acq', 'Is this about a company takeover or a stake in a company?'),
                           ('crude', 'Is this story about oil?')):
        for path in sorted(directory.glob('*/reut-*.xml')):
            body = re.search(r'<BODY>(.*?)</BODY>', path.read_text(encoding='latin1'), re.S)
            if body:
                text = re.sub(r'\s+', ' ', html.unescape(html.unescape(body.group(1)))).strip()[:1500]
                yield Row(text, question, path.parent.name == kind, 'reuters:' + kind, 'reuters')


def speech_rows(path, pick, each=30):
    with gzip.open(path, 'rt', encoding='utf8') as file:
        texts = [json.loads(line)['text'] for line in file]
    passages = []
    for text in texts:
        words = text.split()
        passages += [' '.join(words[k:k + 80]) for k in range(0, len(words) - 80, 80)]
    for topic, pattern in SPEECH_TOPICS.items():
        hits = lambda passage: len(re.findall(rf'\b({pattern})\b', passage.lower()))
        clear = [passage for passage in passages if hits(passage) >= 3]
        none = [passage for passage in pick.sample(passages, 4000) if not hits(passage)]
        for truth, pool in ((True, clear), (False, none)):
            for passage in pick.sample(pool, min(each, len(pool))):
                yield Row(passage, f'Is the passage about {topic}?', truth, 'speech:' + topic, 'speeches')


def write(path, rows):
    with open(path, 'w', encoding='utf8') as file:
        file.writelines(row.to_json() + '\n' for row in rows)
    print(path.name, len(rows), f'TRUE {sum(row.truth for row in rows) / len(rows):.3f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', type=pathlib.Path, nargs='?')
    parser.add_argument('out', type=pathlib.Path, nargs='?')
    parser.add_argument('--speeches', type=pathlib.Path)
    parser.add_argument('--fixed', type=pathlib.Path)
    arguments = parser.parse_args()
    pick = random.Random(7)
    if arguments.fixed:
        write(arguments.fixed, list(fixed_rows(pick)))
        return
    rows = [*example_rows(), *lead_rows(), *own_rows()]
    if (arguments.sources / 'rated').exists():
        rows += rated_rows(arguments.sources / 'rated', pick)
    if (arguments.sources / 'reuters').exists():
        rows += reuters_rows(arguments.sources / 'reuters')
    if arguments.speeches:
        rows += speech_rows(arguments.speeches, pick)
    write(arguments.out / 'dom.jsonl', rows)


if __name__ == '__main__':
    main()
