"""Rows of whole messages and reviews that are marked with all that is true of them (banks/training/tickets.txt, purchases.txt).

Every text answers every question of its bank, so that each question meets many texts that share its words and are FALSE, as in a table of
which few rows are TRUE. A mark is `label` (true), `!label` (false, and the text comes close) or `?label` (not asked).
"""
import dataclasses
import re

from bank import BankSource, read_bank
from wording import Wordings

NEAR_SHARE = .5  # of the FALSE rows of a label: texts that come close
CONDITIONS_SHARE = .12
# Two conditions {a} and {b}: (questions, truth of both).
CONDITIONS = [
    (['{A}, and {b}.', 'Is it true that {a} and that {b}?', 'Both hold: {a}, and {b}.', '{a} and {b}', 'Check that {a} and that {b}.'], lambda a, b: a and b),
    (['{A}, but it is not true that {b}.', 'Is it so that {a}, though not that {b}?', '{A}, without it being said that {b}.'], lambda a, b: a and not b),
    (['At least one of the two holds: {a}, or {b}.', 'Is it true that {a}, or that {b}, or both?', 'Either {a}, or {b}, or both.'], lambda a, b: a or b)]


@dataclasses.dataclass
class MarkedText:
    text: str
    true: set
    near: set
    open: set

    def holds(self, name):
        """True, False, or None where the mark leaves it open."""
        return None if name in self.open else name in self.true


def read_marked(path):
    """(bank, texts)."""
    bank, texts = read_bank(path), []
    opposite, _, of = bank.options['opposite'].partition(' ')
    for line in path.read_text(encoding='utf8').splitlines():
        found = re.match(r'([a-z!? ]*)= (.*)', line)
        if not found:
            continue
        marks = found[1].split()
        named = lambda sign: {mark[1:] for mark in marks if mark[0] == sign}
        text = MarkedText(found[2], {mark for mark in marks if mark[0] not in '!?'}, named('!'), named('?'))
        unknown = (text.true | text.near | text.open) - set(bank.labels)
        if unknown:
            raise ValueError(f'{path}: no label {unknown}: {line}')
        if of in text.open:
            text.open.add(opposite)
        elif of not in text.true and opposite not in text.open:
            text.true.add(opposite)
        texts.append(text)
    return bank, texts


class MarkedSource(BankSource):

    def __init__(self, path, rows, filler, claims=.15):
        bank, self.texts = read_marked(path)
        super().__init__(bank, rows, filler, claims)
        self.name = bank.name
        count = {label.name: sum(text.holds(label.name) is True for text in self.texts) for label in self.labels}
        self.weights = [count[label.name] ** .5 * (3 if label.often else 1) for label in self.labels]  # few texts are not shown too often
        self.neutral = [part.strip() for part in bank.options['filler'].split(' | ')]

    def document(self, marked):
        """The text alone, or with neutral sentences around it."""
        lines = [marked.text] + self.pick.sample(self.neutral, self.pick.choice([0, 0, 0, 1, 2]))
        self.pick.shuffle(lines)
        return self.dress(lines)

    def choose(self, name, truth):
        """A text of which the label is true or false."""
        pool = [text for text in self.texts if text.holds(name) is truth]
        near = [text for text in pool if name in text.near]
        return self.pick.choice(near if not truth and near and self.pick.random() < NEAR_SHARE else pool)

    def make_one(self):
        label = self.pick.choices(self.labels, self.weights)[0]
        truth = self.pick.random() < .5
        self.emit(self.document(self.choose(label.name, truth)), label, truth, False)

    def make_conditions(self):
        """A question of two conditions; every outcome of the two is drawn before the text."""
        questions, combine = self.pick.choice(CONDITIONS)
        first, second = self.pick.sample(self.labels, 2)
        truth = self.pick.random() < .5
        pool = [text for text in self.texts if None not in (text.holds(first.name), text.holds(second.name))]
        pool = [text for text in pool if bool(combine(text.holds(first.name), text.holds(second.name))) is truth]
        mixed = [text for text in pool if text.holds(first.name) != text.holds(second.name)]
        if not pool:
            return
        text = self.pick.choice(mixed if mixed and not truth and self.pick.random() < .6 else pool)
        a, b = (self.pick.choice(label.phrases['s'][0]) for label in (first, second))
        asked = [question.format(a=a, b=b, A=a[0].upper() + a[1:]) for question in questions]
        self.rows.put(Wordings(asked, []), self.document(text), truth, f'{self.name}:conditions', 'bank')

    def make(self, count):
        for number in range(count):
            self.rows.begin(f'{self.name} {number}')
            if self.pick.random() < CONDITIONS_SHARE:
                self.make_conditions()
            else:
                self.make_one()
