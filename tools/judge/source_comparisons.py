"""Training rows in which two quantities are compared: which is the larger, which date is the earlier, what a sum comes to.

Kept apart from source_amounts.py, whose rows are tests as well. Gaps are drawn so that numbers of unequal length, numbers that differ in the
first digit and numbers that differ in the last one are equally frequent, and so are dates apart by years, by months and by days.
"""
import dataclasses

from bank import NAMES, THINGS
from source_amounts import FIRST_NAMES, HAPPENED
from source_numbers import MONTHS
from wording import Wordings, inverted


@dataclasses.dataclass
class Measure:
    kind: str
    names: list
    forms: list       # sentences of one thing {x} and its value {v}
    joint: list       # sentences of two things {x}, {y} and their values {v}, {u}
    low: int
    high: int
    more: list
    less: list
    article: str = ''
    over: list = dataclasses.field(default_factory=list)  # questions of one thing {x} against a limit {t}: above it


BOOKS = 'the diary|the atlas|the thriller|the cookbook|the dictionary|the saga|the textbook|the novel|the catalogue|the memoir'.split('|')
FIRMS = 'the mill|the dairy|the print shop|the brewery|the shipyard|the bakery|the foundry|the sawmill|the laundry|the quarry'.split('|')
PUPILS = sorted({name.split()[1] for name in NAMES})
MEASURES = [
    Measure('price', THINGS, ['The {x} costs {v} euros.', 'They ask {v} euros for the {x}.', 'I paid {v} for the {x}.', '{x}: {v} euros.', 'You get the {x} for {v}.'],
            ['The {x} costs {v} euros, the {y} {u}.', '{x} {v}, {y} {u} (euros).', '{v} euros for the {x} and {u} for the {y}.'], 2, 999,
            ['more expensive', 'dearer'], ['cheaper', 'less expensive'], 'the ', ['The {x} costs more than {t} euros.', 'Does the {x} cost over {t}?']),
    Measure('age', FIRST_NAMES, ['{x} is {v}.', '{x} is {v} years old.', '{x}, aged {v}.', '{x} turned {v} in March.', '{x} has just turned {v}.'],
            ['{x} is {v} and {y} is {u}.', '{x} ({v}) and {y} ({u}) share a room.', '{x}, {v}, has a cousin, {y}, who is {u}.'], 2, 98,
            ['older'], ['younger'], '', ['{x} is older than {t}.', 'Is {x} over {t}?']),
    Measure('height', FIRST_NAMES, ['{x} is {v} cm tall.', '{x} measures {v} cm.', '{x}: {v} cm.', 'The nurse measured {x}: {v} cm.'],
            ['{x} measures {v} cm, {y} {u} cm.', '{x} is {v} cm tall, and {y} is {u}.'], 85, 209, ['taller'], ['shorter', 'smaller'], '',
            ['{x} is taller than {t} cm.', 'Is {x} over {t} cm?']),
    Measure('load', THINGS, ['The {x} weighs {v} kg.', '{x}: {v} kg.', 'The scales show {v} kg for the {x}.', '{v} kg, that is the {x}.'],
            ['The {x} weighs {v} kg and the {y} {u} kg.', '{x} {v} kg, {y} {u} kg.'], 1, 99, ['heavier'], ['lighter'], 'the ',
            ['The {x} weighs more than {t} kg.', 'Is the {x} heavier than {t} kg?']),
    Measure('pages', BOOKS, ['{x} has {v} pages.', 'There are {v} pages in {x}.'], ['{x} has {v} pages, {y} {u}.'], 20, 990,
            ['longer', 'thicker'], ['shorter', 'thinner'], '', ['{x} has more than {t} pages.']),
    Measure('staff', FIRMS, ['{x} employs {v} workers.', '{v} workers are on the payroll of {x}.'], ['{x} employs {v} workers, {y} {u}.'], 2, 900,
            ['larger', 'bigger'], ['smaller'], '', ['{x} has more than {t} workers.']),
    Measure('points', PUPILS, ['{x} got {v} points.', '{v} points went to {x}.', '{x} scored {v}.'], ['{x} has {v} points, {y} has {u}.', '{x} {v}, {y} {u} points.'],
            0, 100, ['ahead'], ['behind'], '', ['{x} has more than {t} points.']),
    Measure('wage', PUPILS, ['{x} earns {v} an hour.', 'They pay {x} {v} euros an hour.'], ['{x} earns {v} an hour, {y} {u}.'], 8, 120,
            ['better paid'], ['worse paid'], '', ['{x} earns more than {t} an hour.']),
]
LARGER = ['Is {a} {w} than {b}?', '{a} is {w} than {b}.', '{a} is {w} than {b}', 'Is it true that {a} is {w} than {b}?', 'Compared with {b}, {a} is {w}.',
          'Is {a} {w} compared to {b}?', 'The numbers show that {a} is {w} than {b}.', 'Is {a}, and not {b}, the {w} one?', 'If one looks at the figures, {a} is {w} than {b}.',
          'Can we say that {a} is {w} than {b}?']
RANKED = {'ahead': 'ahead of', 'behind': 'behind'}
EVENTS = HAPPENED + ('the cellar was drained|the dog was chipped|the contract ended|the bridge was closed|the choir sang|the tree was felled|the passport was issued'
                     '|the windows were cleaned|the car was sold|the bill was paid|the piano was tuned|the boiler was serviced|the house was sold|the test was repeated'
                     '|the pump failed|the well was dug|the licence was renewed|the barn burned down|the play was performed|the bees swarmed').split('|')
BEFORE = {'before': ['before'], 'after': ['after']}
ORDERED = ['Is it true that {a} {w} {b}?', '{A} {w} {b}.', '{a} {w} {b}', 'It holds that {a} {w} {b}.', 'Can one say that {a} {w} {b}?', 'Check whether {a} {w} {b}.']
FIRST = {'before': ['{A}, and only then {b}.', 'First {a}, then {b}.', 'Of both events this came first: {a}.', 'The earlier event: {a}.', '{A} earlier than {b}.'],
         'after': ['{A}, but {b} first.', 'First {b}, then {a}.', 'Of both events this came last: {a}.', 'The later event: {a}.', '{A} later than {b}.']}
SUMS = ['One {x} for {v}, one {y} for {u}.', 'The {x} comes to {v} euros, the {y} to {u}.', 'To pay: {x} {v}, {y} {u}.', 'She bought a {x} ({v} euros) and a {y} ({u} euros).',
        'He owes {v} for the {x} and {u} for the {y}.']
TOTALS = ['Is the total more than {t}?', 'Together it comes to more than {t}.', 'Do both together cost over {t}?', 'The two amounts add up to more than {t}.',
          'Is {t} less than the sum?', 'Added up it is over {t}.']


def capital(text):
    return text[0].upper() + text[1:]


class ComparisonSource:
    def __init__(self, rows, filler):
        self.rows, self.pick, self.filler = rows, rows.random, filler

    def put(self, text, questions, truth, kind):
        if self.pick.random() < .25:
            lines = [text, *self.pick.sample(self.filler, self.pick.randint(1, 2))]
            self.pick.shuffle(lines)
            text = ' '.join(lines)
        self.rows.put(Wordings(questions, []), capital(text), truth, 'number:' + kind, 'numbers')

    def two(self, low, high):
        """Two different numbers: of unequal length, apart in the first digit, or close to each other."""
        mode = self.pick.randrange(4)
        while True:
            a = self.pick.choice([self.pick.randrange(low, high), self.pick.randrange(low, min(high, max(low + 9, 100)))])
            b = self.pick.randrange(low, high) if mode else a + self.pick.choice([-1, 1]) * self.pick.randint(1, 3)
            if mode == 1:
                b = self.pick.randrange(low, min(high, max(low + 9, 12)))
            if mode == 2:
                b = a // 10 * 10 + self.pick.randrange(10)
            if a != b and low <= b < high and (mode != 1 or len(str(a)) != len(str(b)) or low > 9):
                return self.pick.sample([a, b], 2)

    def stated(self, measure, a, b, v, u):
        """A text that gives a the value v and b the value u, in either order."""
        pairs = [(a, v), (b, u)]
        self.pick.shuffle(pairs)
        (x, first), (y, second) = pairs
        if self.pick.random() < .35:
            return self.pick.choice(measure.joint).format(x=x, y=y, v=first, u=second)
        forms = [self.pick.choice(measure.forms)] * 2 if self.pick.random() < .6 else self.pick.sample(measure.forms, 2)
        glue = self.pick.choice([' ', ' ', '\n'])
        return glue.join(capital(form.format(x=name, v=value)) for form, (name, value) in zip(forms, pairs))

    def compared(self):
        measure = self.pick.choice(MEASURES[:4] + MEASURES)
        a, b = self.pick.sample(measure.names, 2)
        v, u = self.two(measure.low, measure.high)
        text = self.stated(measure, a, b, v, u)
        if self.pick.random() < .22:
            self.bound(measure, text, a, v, u)
            return
        wants_more = self.pick.random() < .5
        word = self.pick.choice(measure.more if wants_more else measure.less)
        names = dict(a=measure.article + a, b=measure.article + b)
        if word in RANKED:
            forms = ['Is {a} {w} {b}?', '{a} is {w} {b}.', 'At the moment {a} is {w} {b}.', 'Can we say that {a} is {w} {b}?']
            word = RANKED[word]
        else:
            forms = LARGER + ['{a} is the {w} of the two.', 'Is {a} the {w} of both?']
        questions = [capital(form.format(w=word, **names)) for form in forms]
        self.put(text, questions, (v > u) == wants_more, 'two ' + measure.kind)

    def bound(self, measure, text, a, v, u):
        """One of the two things against a limit: the other's number must not count."""
        low, high = sorted((v, u))
        limit = self.pick.randrange(low, high) if self.pick.random() < .5 else max(0, v + self.pick.choice([-1, 1]) * self.pick.randint(1, max(3, v // 4)))
        if limit != v:
            self.put(text, [capital(form.format(x=a, t=limit)) for form in measure.over], v > limit, 'one of two ' + measure.kind)

    def dates(self):
        """Two dates (year, month, day) apart by years, months or days."""
        level = self.pick.randrange(3)
        year, month = self.pick.randint(1985, 2024), self.pick.randrange(12)
        draw = [(year + self.pick.randint(0, 6) if level == 0 else year, self.pick.randrange(12) if level < 2 else month, self.pick.randint(1, 28)) for _ in range(2)]
        return level, draw

    def shown(self, date, with_year):
        year, month, day = date
        name = MONTHS[month]
        if not with_year:
            return self.pick.choice([f'{day} {name}', f'{name} {day}'])
        return self.pick.choice([f'{day} {name} {year}', f'{day} {name} {year}', f'{name} {day}, {year}', f'{year}-{month + 1:02}-{day:02}'])

    def order(self):
        level, days = self.dates()
        if days[0] == days[1]:
            return
        a, b = self.pick.sample(EVENTS, 2)
        with_year = level == 0 or self.pick.random() < .5
        form = self.pick.choice(['On {d} {e}.', 'On {d} {e}.', '{e} on {d}.', '{d}: {e}.'])
        said = [capital(form.format(d=self.shown(day, with_year), e=event)) for event, day in zip((a, b), days)]
        text = self.pick.choice([' ', ' ', '\n']).join(self.pick.sample(said, 2))
        before = self.pick.random() < .5
        word = 'before' if before else 'after'
        forms = ORDERED + ['{q} {w} {b}?'] + FIRST[word]
        questions = [form.format(a=a, A=capital(a), b=b, w=word, q=inverted(a)[:-1]) for form in forms if not form.startswith('{q}') or not inverted(a).startswith('Is it')]
        self.put(text, questions, (days[0] < days[1]) == before, 'order of dates')

    def dated(self):
        """One event against a date."""
        _, (day, limit) = self.dates()
        if day == limit:
            return
        event, before = self.pick.choice(EVENTS), self.pick.random() < .5
        text = self.pick.choice(['On {d} {e}.', '{e} on {d}.', '{d}: {e}.']).format(d=self.shown(day, True), e=event)
        word = 'before' if before else 'after'
        questions = [f'{capital(event)} {word} {self.shown(limit, True)}.', f'Did it happen {word} {self.shown(limit, True)}?', f'{word} {self.shown(limit, True)}']
        self.put(text, questions, (day < limit) == before, 'date against date')

    def total(self):
        most = self.pick.choice([10, 30, 60])
        v, u = self.pick.randint(1, most), self.pick.randint(1, most)
        x, y = self.pick.sample(THINGS, 2)
        over, gap = self.pick.random() < .5, self.pick.randint(1, max(2, (v + u) // 3))
        limit = max(1, v + u + (-gap if over else gap))
        if limit != v + u:
            text = self.pick.choice(SUMS).format(x=x, y=y, v=v, u=u)
            self.put(text, [form.format(t=limit) for form in TOTALS], v + u > limit, 'total')

    def make(self, count):
        """Of ten rows six compare two things, two order dates, one asks after one date, one adds."""
        makers = [self.compared] * 6 + [self.order] * 2 + [self.dated, self.total]
        for number in range(count):
            self.rows.begin(f'comparisons {number}')
            makers[number % len(makers)]()
