"""Texts with two quantities that are compared: prices, ages, dates, opening hours, limits, scores, number words, sums."""
from bank import NAMES, THINGS, fill_slots
from source_numbers import MONTHS
from wording import Wordings

WORDS = ('zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen'
         '|eighteen|nineteen|twenty').split('|')
FIRST_NAMES = sorted({name.split()[0] for name in NAMES})
COUNTED = ('cats|brothers|rooms|tickets|chairs|eggs|emails|trees|bottles|windows|pupils|cups|parcels|letters|bags|hens|boats|keys'
           '|photos|days').split('|')
# quantity: (sentence of one thing, names, low, high, word for more, word for less)
COMPARED = {
    'price': ('The {x} costs {v} euros.|{x}: {v} euros.|{v} euros for the {x}.', THINGS, 2, 900, 'more expensive', 'cheaper'),
    'age': ('{x} is {v} years old.|{x} ({v}).|{x} turned {v} in May.', FIRST_NAMES, 2, 95, 'older', 'younger'),
    'height': ('{x} is {v} cm tall.|{x} measures {v} cm.', FIRST_NAMES, 90, 205, 'taller', 'shorter'),
    'load': ('The {x} weighs {v} kg.|{x}, {v} kg.', THINGS, 1, 90, 'heavier', 'lighter'),
}
MORE_THAN = ['Is {a} {w} than {b}?', '{a} is {w} than {b}.', '{a} is the {w} of the two.', 'Of {a} and {b}, {a} is {w}.']
SCORES = ['{a} {v} : {u} {b}', '{a} beat nobody and lost to nobody so far; today it was {v} to {u} against {b}.', '{a} - {b} {v}:{u}',
          'Final score: {a} {v}, {b} {u}.', '{v} points for {a}, {u} for {b}.']
TEAMS = 'Rovers|United|Athletic|Wanderers|the Bears|the Hawks|Green Hill|Port Vale|the Lions|Dynamo|the Sharks|City'.split('|')
HOURS = ['Open from {v} to {u}.', 'Opening hours: {v}:00 to {u}:00.', 'We are here for you between {v} and {u} o\'clock.',
         'The counter is staffed from {v}:00 until {u}:00.']
AGES = ['For children from {v} to {u} years.', 'Ages {v} to {u}.', 'The course takes pupils between {v} and {u}.',
        'Minimum age {v}, maximum age {u}.']
BUDGETS = ['I can spend {v} euros at most. The {x} costs {u}.', 'Our budget is {v}. They ask {u} for the {x}.',
           'There are {v} euros in the jar, and the {x} is {u}.', 'The {x} costs {u} euros. She has {v} in her purse.']
SUMS = ['One {x} for {v} and one {y} for {u}.', '{v} euros for the {x}, {u} for the {y}.', 'Bill: {x} {v}.00, {y} {u}.00.',
        'The {x} was {v}, plus {u} for the {y}.']
HAPPENED = ('the lease was signed|the roof was mended|the parcel was sent|the exam took place|the boat was sold|the baby came'
            '|the letter arrived|the shop opened|the fence was painted|the fair began|the lamp was ordered|the tooth was pulled').split('|')


class AmountSource:
    def __init__(self, rows, filler):
        self.rows, self.pick, self.filler = rows, rows.random, filler
        self.makers = [self.compared, self.counted, self.score, self.hours, self.ages, self.budget, self.total, self.order,
                       self.stars]

    def put(self, text, questions, truth, kind, is_test):
        """The last of the questions is the test wording."""
        if self.pick.random() < .35:
            lines = [text, *self.pick.sample(self.filler, self.pick.randint(1, 3))]
            self.pick.shuffle(lines)
            text = ' '.join(lines)
        wordings = Wordings(questions[:-1], questions[-1:])
        self.rows.put(wordings, fill_slots(text, self.pick), truth, 'number:' + kind, 'numbers', is_test=is_test)

    def two(self, low, high):
        return self.pick.sample(range(low, high), 2)

    def compared(self, is_test):
        kind = self.pick.choice(list(COMPARED))
        forms, names, low, high, more, less = COMPARED[kind]
        a, b = self.pick.sample(names, 2)
        high = self.pick.choice([high, low + (high - low) // 8])
        v, u = self.two(low, high)
        form = self.pick.choice(forms.split('|'))
        text = ' '.join(form.replace('{x}', x).replace('{v}', str(n)) for x, n in self.pick.sample([(a, v), (b, u)], 2))
        wants_more = self.pick.random() < .5
        article = 'the ' if names is THINGS else ''
        questions = [form.replace('{a}', article + a).replace('{b}', article + b).replace('{w}', more if wants_more else less)
                     for form in MORE_THAN]
        self.put(text[0].upper() + text[1:], [q[0].upper() + q[1:] for q in questions], (v > u) == wants_more, 'two ' + kind, is_test)

    def counted(self, is_test):
        """A number in words against one in words or digits."""
        thing, value = self.pick.choice(COUNTED), self.pick.randint(2, 20)
        text = self.pick.choice(['There are {v} {x}.', 'She counted {v} {x}.', '{V} {x}, no more.', 'I have {v} {x}.', 'He left {v} {x} behind.'])
        text = text.replace('{v}', WORDS[value]).replace('{V}', WORDS[value].capitalize()).replace('{x}', thing)
        limit = self.pick.choice([n for n in range(1, 21) if n != value])
        shown = self.pick.choice([WORDS[limit], str(limit)])
        if self.pick.random() < .4:
            truth = self.pick.random() < .5
            shown = self.pick.choice([WORDS[value], str(value)]) if truth else shown
            questions = [f'Is the number of {thing} {shown}?', f'There are {shown} {thing}.', f'exactly {shown} {thing}',
                         f'The text speaks of {shown} {thing}.']
            self.put(text, questions, truth, 'count in words', is_test)
            return
        more = self.pick.random() < .5
        word = 'more' if more else 'fewer'
        questions = [f'Are there {word} than {shown} {thing}?', f'There are {word} than {shown} {thing}.', f'{word} than {shown} {thing}',
                     f'The number of {thing} is {"above" if more else "below"} {shown}.']
        self.put(text, questions, (value > limit) == more, 'count in words', is_test)

    def score(self, is_test):
        a, b = self.pick.sample(TEAMS, 2)
        v, u = self.pick.randint(0, 6), self.pick.randint(0, 6)
        text = self.pick.choice(SCORES)
        for name, value in (('{a}', a), ('{b}', b), ('{v}', str(v)), ('{u}', str(u))):
            text = text.replace(name, value)
        team, truth = self.pick.choice([(a, v > u), (b, u > v)])
        questions = [f'Did {team} win?', f'{team[0].upper() + team[1:]} won.', f'Is {team} the winner?', f'The victory went to {team}.']
        if v == u or self.pick.random() < .1:
            questions, truth = ['Did the game end in a draw?', 'It was a draw.', 'Both sides have the same score.'], v == u
        self.put(text[0].upper() + text[1:], questions, truth, 'score', is_test)

    def within(self, forms, low, high, ask, kind, is_test):
        """A range from v to u and a value inside or outside."""
        v, u = sorted(self.two(low, high))
        inside = self.pick.random() < .5
        pool = [n for n in range(max(0, low - 3), high + 4) if (v < n < u if inside else n < v or n > u)]
        if pool:
            value = self.pick.choice(pool)
            text = self.pick.choice(forms).replace('{v}', str(v)).replace('{u}', str(u))
            self.put(text, [question.replace('{n}', str(value)) for question in ask], inside, kind, is_test)

    def hours(self, is_test):
        self.within(HOURS, 6, 22, ['Is it open at {n}:00?', 'One can go there at {n} o\'clock.', 'open at {n}:00',
                                   'Would one find the door open at {n}:00?'], 'opening hours', is_test)

    def ages(self, is_test):
        self.within(AGES, 3, 18, ['Can a child of {n} take part?', 'A {n}-year-old may come.', 'suitable for a child aged {n}',
                                  'Somebody of {n} fits the age limits.'], 'age limits', is_test)

    def budget(self, is_test):
        v, u = self.two(1, self.pick.choice([20, 100, 1000]))
        thing = self.pick.choice(THINGS)
        text = self.pick.choice(BUDGETS).replace('{v}', str(v)).replace('{u}', str(u)).replace('{x}', thing)
        self.put(text, [f'Is there enough money for the {thing}?', f'The {thing} can be paid.', f'The money suffices for the {thing}.',
                        f'The {thing} is within the budget.'], v >= u, 'budget', is_test)

    def total(self, is_test):
        v, u = self.pick.randint(1, 50), self.pick.randint(1, 50)
        x, y = self.pick.sample(THINGS, 2)
        text = self.pick.choice(SUMS)
        for name, value in (('{v}', str(v)), ('{u}', str(u)), ('{x}', x), ('{y}', y)):
            text = text.replace(name, value)
        over = self.pick.random() < .5
        limit = max(1, v + u + (-1 if over else 1) * self.pick.randint(1, max(2, (v + u) // 2)))
        if v + u != limit:
            self.put(text, [f'Is the total more than {limit}?', f'Together it comes to more than {limit}.',
                            f'The sum of both is above {limit}.'], v + u > limit, 'total', is_test)

    def order(self, is_test):
        """Two dates of a year, or of two years."""
        a, b = self.pick.sample(HAPPENED, 2)
        days = [(self.pick.choice([0, 0, 1]), self.pick.randrange(12), self.pick.randint(1, 28)) for _ in range(2)]
        if days[0] == days[1]:
            return
        first_year = self.pick.randint(1990, 2023)
        with_years = days[0][0] != days[1][0] or self.pick.random() < .5  # said of both dates or of neither
        shown = [f'{day} {MONTHS[month]}' + f' {first_year + year}' * with_years for year, month, day in days]
        sentences = [f'On {when} {what}.' for what, when in zip((a, b), shown)]
        text = ' '.join(self.pick.sample(sentences, 2))
        before = self.pick.random() < .5
        word = 'before' if before else 'after'
        self.put(text, [f'Is it true that {a} {word} {b}?', f'{a[0].upper() + a[1:]} {word} {b}.', f'It holds that {a} {word} {b}.',
                        f'According to the dates, {a} {word} {b}.'], (days[0] < days[1]) == before, 'order of dates', is_test)

    def stars(self, is_test):
        most = self.pick.choice([5, 5, 10, 100])
        value, limit = self.two(1, most + 1)
        text = self.pick.choice(['{v} of {m} stars', 'Rating: {v}/{m}', 'I give {v} out of {m}.', 'Score {v} ({m} is best).', 'Grade: {v} of {m} points.'])
        text = text.replace('{v}', str(value)).replace('{m}', str(most))
        better = self.pick.random() < .5
        word = 'more' if better else 'less'
        self.put(text, [f'Is the rating {word} than {limit}?', f'It got {word} than {limit}.', f'The score is {"above" if better else "below"} {limit}.',
                        f'The mark is {"higher" if better else "lower"} than {limit}.'], (value > limit) == better, 'stars', is_test)

    def make(self, count):
        for number in range(count):
            self.rows.begin(f'amounts {number}')
            self.makers[number % len(self.makers)]((number // len(self.makers)) % 10 == 0)
