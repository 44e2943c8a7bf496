"""Rows of judge data and the rule that keeps test material out of training.

A row is one question with a known answer: a filter (`text`, `question`) or a pair (`text` is the anchor, `partner` the
other document; `anchor` says which slot of the question the anchor fills). `columns` marks a pair that stands in one
row of a table and is laid out as a filter over two columns.
"""
import dataclasses
import hashlib
import json
import random
import re

SPLITS = ('train', 'word', 'kind')
# Sources made of a limited number of sentences.
BLURRED_SOURCES = ('bank', 'reviews', 'interests', 'scenes')
BLURRED_PAIRS = ('pair:buys', 'pair:claim', 'pair:label', 'twins')
SHORTEST_BLURRED = 7  # words
NEGATION = re.compile(r"^(no|not|never|nobody|nothing|none|without|.*n't|cannot|anything|less|un\w+|free)\b|\d")


def bucket(text, count):
    """A stable bucket of `text`: the same text is a test text in every run."""
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % count


def with_article(phrase):
    """`umbrella` -> `an umbrella`."""
    return ('an ' if re.match(r'(?!uni|use|eu|one\b|ufo)[aeiou]', phrase.lower()) else 'a ') + phrase


def filled(question, x, slot='x'):
    """Puts x into {x}, or into another slot, with the article that it needs behind `a {x}`."""
    slot = '{' + slot + '}'
    return re.sub(r'\b([aA]) ' + re.escape(slot), lambda match: match[1] + with_article(x)[1:], question).replace(slot, x)


@dataclasses.dataclass
class Row:
    text: str
    question: str
    truth: bool
    kind: str
    source: str
    partner: str | None = None
    anchor: int = 0
    columns: bool = False

    def to_json(self):
        fields = {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, False)}
        return json.dumps(fields | {'truth': bool(self.truth), 'anchor': self.anchor}, ensure_ascii=False)


# Whole questions {q} and statements {s} are put into one of these now and then, in training only.
FRAMES = {'?': ['Please answer: {q}', '{q} Answer True or False.', 'I would like to know: {q}', '{q} Please check.',
                'Look at the text and answer this: {q}', 'Here is the question. {q}', '{q} Say True if so.', 'Q: {q}',
                'Read it carefully. {q}', 'My question about it is the following one: {q}'],
          '.': ['True or false: {s}', 'Is the following correct? {s}', 'Check this statement: {s}', 'Claim: {s}',
                '{s} Is that so?', '{s} Right?', 'The following holds: {s}', 'Somebody says: {s} Do you agree?',
                'Select the rows for which this is the case: {s}', 'Keep it only if this is true: {s}']}


class Collector:
    """Gathers rows by split. `random` is the only source of chance, so a seed fixes the data. Every part of the data draws from a
    stream of its own (`begin`): what one rule changes leaves the rows of the others as they are.

    With `training_only` every text, wording and kind that the sources bring trains: for banks that hold nothing of the tests."""

    def __init__(self, seed, training_only=False):
        self.seed, self.random, self.training_only = seed, random.Random(seed), training_only
        self.rows = {split: [] for split in SPLITS}

    def begin(self, part):
        """Starts the random stream of a part of the data; the name of the part and the seed fix it."""
        self.random.seed(f'{self.seed} {part}')

    def run(self, *makers):
        """Calls functions that make rows, each with a stream of its own."""
        for maker in makers:
            self.begin(maker.__qualname__)
            maker()

    def is_test_text(self, text, count):
        """Whether `text` is on the side of the tests, which is one of `count` buckets."""
        return not self.training_only and bucket(text, count) == 0

    def is_tenth(self, number):
        """Whether row `number` of a source is a test row."""
        return not self.training_only and number % 10 == 0

    def draws_test(self):
        """Makes one row of ten a test row by chance."""
        return self.random.random() < .1 and not self.training_only

    def split_of(self, held, is_test):
        return 'kind' if held else 'word' if is_test else 'train'

    def add(self, split, row):
        if not row.text.strip() or not row.question.strip():
            return
        if split == 'train' and (row.source in BLURRED_SOURCES or row.kind.startswith(BLURRED_PAIRS)):
            row.text = self.blur(row.text)
            row.partner = row.partner and self.blur(row.partner)
        self.rows[split].append(row)

    def blur(self, text):
        """Drops some words, so that sentences which occur often are not learned by heart. Negations stay, and short texts:
        each of their words may decide."""
        words = text.split(' ')
        if len(words) < SHORTEST_BLURRED or self.random.random() < .4:
            return text
        kept = [word for word in words if self.random.random() > .1 or NEGATION.search(word.lower())]
        return ' '.join(kept) if len(kept) > 2 else text

    def put(self, wordings, text, truth, kind, source, **options):
        """Adds a filter row. `wordings` is a Wordings; options: held, is_test, x (fills {x})."""
        split, question, truth = self._ask(wordings, truth, options)
        self.add(split, Row(text, question, truth, kind, source))

    def put_pair(self, wordings, texts, truth, kind, **options):
        """Adds a pair: texts = (text of slot 0, text of slot 1). Either may be the anchor."""
        split, question, truth = self._ask(wordings, truth, options)
        question = question.replace('{0}', 'DOCUMENT {0}').replace('{1}', 'DOCUMENT {1}')
        columns = self.random.random() < .12
        anchor = 0 if columns else self.random.randrange(2)
        self.add(split, Row(texts[anchor], question, truth, kind, 'join', texts[1 - anchor], anchor, columns))

    def _ask(self, wordings, truth, options):
        held, is_test, x = options.get('held', False), options.get('is_test', False), options.get('x', '')
        split = self.split_of(held, is_test)
        pick = self.random
        if split == 'train' and wordings.negated and pick.random() < wordings.negated_share:
            question, truth = pick.choice(wordings.negated), not truth
        else:
            question = pick.choice(wordings.train if split == 'train' else wordings.test)
        question = filled(question, x)
        if split == 'train' and question[-1:] in FRAMES and pick.random() < .15:
            question = pick.choice(FRAMES[question[-1]]).replace('{q}', question).replace('{s}', question)
        if pick.random() < .07 and question[0] != '{':
            question = question[0].lower() + question[1:]
        if pick.random() < .07:
            question = question.rstrip('.?')
        return split, question, truth

    def balanced(self, positive, negative, most):
        """Up to `most` of each, as many of one as of the other: [(item, truth)]."""
        self.random.shuffle(positive)
        self.random.shuffle(negative)
        count = min(most, len(positive), len(negative))
        return [(item, True) for item in positive[:count]] + [(item, False) for item in negative[:count]]
