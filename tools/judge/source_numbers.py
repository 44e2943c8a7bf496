"""Texts with a quantity, and questions that compare it: prices, ages, durations, dates, times, weights and the like."""
import dataclasses
import re

from bank import fill_slots
from wording import Wordings

MORE = 'Is {x} more than {t}?|{X} is above {t}.|Is {x} over {t}?|{x} exceeds {t}|Is {x} higher than {t}?'.split('|')
LESS = 'Is {x} less than {t}?|{X} is below {t}.|Is {x} under {t}?|{x} is smaller than {t}|Is {x} lower than {t}?'.split('|')
LEAST = ('Is {x} at least {t}?|{X} is {t} or more.|{X} is no less than {t}.|Is {x} {t} or higher?|{X} is not under {t}.|{x} not less than {t}|'
         '{X} is not below {t}.').split('|')
MOST = ('Is {x} at most {t}?|{X} is {t} or less.|{X} is no more than {t}.|Is {x} {t} or lower?|{X} is not over {t}.|{x} not more than {t}|'
        '{X} does not exceed {t}.').split('|')
SAME = 'Is {x} {t}?|{X} is {t}.|Is {x} exactly {t}?|{X} equals {t}.'.split('|')


@dataclasses.dataclass
class Quantity:
    name: str
    subject: str       # what the question calls it
    texts: list        # sentences with {v}
    values: list       # numbers as printed, in ascending order
    show: str = '{}'   # how the threshold is printed
    extra: list = dataclasses.field(default_factory=list)  # (question, test of the value); a leading ! marks test wording
    held: bool = False


def _money(low, high, pick):
    digits = pick.choice([1, 5, 10, 50, 100])
    return sorted({pick.randint(low, high) // digits * digits or digits for _ in range(12)})


def quantities(pick):
    """A fresh set of quantities with values drawn for one batch of rows."""
    draw = lambda low, high, step=1: sorted({pick.randrange(low, high, step) for _ in range(12)})
    return [
        Quantity('price', 'the price', ['The {p} costs {v} euros.', 'Price: {v} euros.', 'Yours for only {v} euros!',
                 'I paid {v} euros for the {p}.', 'They ask {v} euros, shipping included.', '{v} euros, used once.'],
                 _money(2, pick.choice([60, 300, 3000]), pick), '{} euros',
                 [('Does it cost more than 100 euros?', lambda v: v > 100), ('cheaper than 50 euros', lambda v: v < 50),
                  ('Can one get it for under 20 euros?', lambda v: v < 20), ('!Is it dearer than 200 euros?', lambda v: v > 200),
                  ('costs over 500 euros', lambda v: v > 500)]),
        Quantity('dollars', 'the price', ['${v}, free shipping.', 'It sells for ${v}.', 'The ticket was ${v}.',
                 'Was ${v} last year as well.', 'The repair came to ${v}.'], _money(2, pick.choice([90, 900, 9000]), pick), '${}',
                 [('Is it under $100?', lambda v: v < 100), ('It costs more than $30.', lambda v: v > 30)]),
        Quantity('age', 'the age', ['{n} is {v} years old.', '{n}, {v}, from {c}.', 'Aged {v}, works as a {j}.',
                 'She turned {v} last week.', 'A {v}-year-old {j}.', 'He celebrates his birthday number {v}.'], draw(3, 96), '{}',
                 [('Is the person older than 50?', lambda v: v > 50), ('The person is a minor.', lambda v: v < 18),
                  ('Is the person an adult?', lambda v: v >= 18), ('younger than 30', lambda v: v < 30),
                  ('The person is over 65.', lambda v: v > 65), ('!Has this person passed the age of 40?', lambda v: v > 40),
                  ('Is the person in their twenties?', lambda v: 20 <= v < 30)]),
        Quantity('duration', 'the duration in minutes', ['The film runs for {v} minutes.', 'Ready in {v} minutes.',
                 'The talk takes {v} minutes.', 'We waited {v} minutes.', 'Simmer for {v} minutes.', 'The ride is {v} minutes.'],
                 draw(3, 190, pick.choice([1, 5, 10])), '{}',
                 [('Does it take more than an hour?', lambda v: v > 60), ('It lasts less than half an hour.', lambda v: v < 30),
                  ('Is it over within a quarter of an hour?', lambda v: v <= 15), ('!Is it longer than two hours?', lambda v: v > 120)]),
        Quantity('stay', 'the number of days', ['We stayed for {v} days.', 'Delivery takes {v} days.', 'The course runs {v} days.',
                 'It has been raining for {v} days.', 'A {v}-day tour.', 'He was ill for {v} days.'], draw(2, 40), '{}',
                 [('Did it take longer than a week?', lambda v: v > 7), ('less than a fortnight', lambda v: v < 14),
                  ('!Was it over within three days?', lambda v: v <= 3)]),
        Quantity('weight', 'the weight', ['It weighs {v} kg.', 'Weight: {v} kg.', 'The parcel has {v} kg.',
                 'A suitcase of {v} kilos.', 'The dog weighs {v} kilos.'], draw(1, pick.choice([30, 120])), '{} kg',
                 [('Is it heavier than 20 kg?', lambda v: v > 20), ('It is lighter than 5 kg.', lambda v: v < 5)]),
        Quantity('length', 'the length', ['The table is {v} cm long.', 'Length: {v} cm.', 'A rope of {v} cm.', 'The snake measured {v} cm.'],
                 draw(5, 400, 5), '{} cm', [('Is it longer than a metre?', lambda v: v > 100), ('shorter than two metres', lambda v: v < 200)]),
        Quantity('temperature', 'the temperature', ['It is {v} degrees outside.', 'The water has {v} degrees.', 'Today: {v} degrees and sun.',
                 'Bake at {v} degrees.'], draw(-15, 40), '{} degrees', [('Is it freezing?', lambda v: v < 0),
                 ('Is it warmer than 20 degrees?', lambda v: v > 20)], held=True),
        Quantity('distance', 'the distance', ['The station is {v} km away.', 'We walked {v} km.', 'A run of {v} km.', 'It is {v} km to {c}.'],
                 draw(1, 90), '{} km', [('Is it farther than 10 km?', lambda v: v > 10)], held=True),
        Quantity('people', 'the number of people', ['{v} people came.', 'There were {v} guests.', 'A team of {v}.', 'The hall was booked for {v} people.'],
                 draw(2, 300), '{}', [('Were there more than a hundred people?', lambda v: v > 100)], held=True),
        Quantity('year', 'the year', ['Founded in {v}.', 'The house was built in {v}.', '{n} was born in {v}.', 'Since {v} we live in {c}.',
                 'The bridge opened in {v}.', 'A wine of {v}.'], draw(1700, 2024), '{}',
                 [('Was it before 1900?', lambda v: v < 1900), ('It was in the 20th century.', lambda v: 1900 < v <= 2000),
                  ('after the year 2000', lambda v: v > 2000), ('!Did it happen in the 19th century?', lambda v: 1800 < v <= 1900),
                  ('Was it later than 1950?', lambda v: v > 1950)]),
        Quantity('percent', 'the share', ['{v} percent agreed.', 'Sales rose by {v} percent.', '{v}% off.', 'The battery is at {v}%.',
                 'Only {v} percent of the seats were taken.'], draw(1, 100), '{} percent',
                 [('Is it more than half?', lambda v: v > 50), ('less than a quarter', lambda v: v < 25)]),
        Quantity('rating', 'the rating', ['{v} out of 10.', 'I give it {v} of 10 points.', 'Rating: {v}/10.', 'A clear {v} out of ten from me.'],
                 list(range(1, 11)), '{}', [('Is the rating good?', lambda v: v >= 7), ('a bad mark', lambda v: v <= 4)]),
        Quantity('rooms', 'the number of rooms', ['{v} rooms, kitchen and bath.', 'A flat with {v} rooms in {c}.', 'The house has {v} rooms.'],
                 list(range(2, 9)), '{}', [('Does it have more than three rooms?', lambda v: v > 3)]),
        Quantity('count', 'the quantity', ['We ordered {v} chairs.', '{v} pieces in a box.', 'I need {v} of them.', 'There are {v} left in stock.',
                 'She bought {v} apples.'], draw(2, pick.choice([12, 60, 500])), '{}', [('more than a dozen', lambda v: v > 12)]),
        Quantity('clock', 'the hour', ['It starts at {v}:00.', 'The train leaves at {v}:15.', 'Meet me at {v}:30.', 'Closed from {v}:00 on.'],
                 list(range(0, 24)), '{} o\'clock', [('Is it in the morning?', lambda v: 5 <= v < 12), ('in the evening', lambda v: 18 <= v < 23),
                 ('Is it after noon?', lambda v: v >= 12), ('!Is the time before midday?', lambda v: v < 12)]),
        Quantity('speed', 'the speed', ['He drove at {v} km/h.', 'Top speed {v} km/h.', 'Gusts of {v} km/h.'], draw(5, 260, 5), '{} km/h',
                 [('Is it faster than 100 km/h?', lambda v: v > 100)], held=True),
    ]


WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']
SEASONS = {'winter': (11, 0, 1), 'spring': (2, 3, 4), 'summer': (5, 6, 7), 'autumn': (8, 9, 10)}
FREE = ['Admission free.', 'No ticket needed, just come.', 'Entry costs nothing.', 'It is free of charge.', 'No fee.', 'Free for all.']
PAID = ['Tickets are {k} euros.', 'Entry {k} pounds at the door.', 'A fee of {k} dollars applies.', '{k} euros a head.', 'Pay at the gate.']
EVENTS = ['Concert in {c}', 'Lecture at the library', 'Flea market in {c}', 'Film night', 'Workshop: bees', 'Choir practice', 'Meeting of the board',
          'The exam takes place', 'The shop opens', 'Delivery of the sofa', 'Her flight leaves', 'Deadline for papers']


class NumberSource:
    def __init__(self, rows, filler):
        self.rows, self.pick, self.filler = rows, rows.random, filler

    def document(self, sentence):
        lines = [sentence]
        if self.pick.random() < .45:
            lines += self.pick.sample(self.filler, self.pick.randint(1, 4))
        self.pick.shuffle(lines)
        return re.sub(r'\b([aA]) (?=(?:8\d?|11|18)\b)', r'\1n ', fill_slots(' '.join(lines), self.pick))

    def put(self, text, question, truth, kind, held, is_test):
        self.rows.put(Wordings([question], [question]), text, truth, 'number:' + kind, 'numbers', held=held, is_test=is_test)

    def compare(self, quantity, is_test):
        value = self.pick.choice(quantity.values)
        text = self.document(self.pick.choice(quantity.texts).replace('{v}', str(value)))
        wanted = self.pick.random() < .5
        test = is_test or quantity.held
        extras = [(question, holds) for question, holds in quantity.extra if holds(value) == wanted
                  and (quantity.held or question.startswith('!') == test)]
        if extras and self.pick.random() < .35:
            question = self.pick.choice(extras)[0].lstrip('!')
            self.put(text, question, wanted, quantity.name, quantity.held, is_test)
            return
        self.threshold(quantity, value, text, wanted, is_test)

    def threshold(self, quantity, value, text, wanted, is_test):
        form = self.pick.choice([MORE, MORE, LESS, LESS, LEAST, MOST, SAME])
        limits = [other for other in quantity.values if other != value] or [value + 1]
        above, below = [x for x in limits if x > value], [x for x in limits if x < value]
        wants_low = (form in (MORE, LEAST)) == wanted
        pool = [value] if form is SAME and wanted else limits if form is SAME else below if wants_low else above
        if not pool:
            return
        question = self.pick.choice(form[-1:] if is_test or quantity.held else form[:-1] or form)
        subject = quantity.subject
        question = question.replace('{x}', subject).replace('{X}', subject.capitalize()).replace(
            '{t}', quantity.show.format(self.pick.choice(pool)))
        self.put(text, question, wanted, quantity.name, quantity.held, is_test)

    def calendar(self, is_test):
        day, month, date = self.pick.randrange(7), self.pick.randrange(12), self.pick.randint(1, 28)
        free = self.pick.random() < .5
        when = self.pick.choice([f'on {WEEKDAYS[day]}, {date} {MONTHS[month]}', f'on {WEEKDAYS[day]} ({MONTHS[month]} {date})'])
        text = self.document(self.pick.choice(EVENTS) + f' {when}. ' + self.pick.choice(FREE if free else PAID))
        season = self.pick.choice(list(SEASONS))
        other, named = self.pick.randrange(7), self.pick.randrange(12)
        asked = self.pick.choice([
            ('weekend', 'Is it at the weekend?|It takes place on a weekend.|at the weekend', day >= 5),
            ('season', f'Is it in {season}?|It takes place in {season}.', month in SEASONS[season]),
            ('month', f'Is it in {MONTHS[named]}?|The month is {MONTHS[named]}.', month == named),
            ('weekday', f'Is it on a {WEEKDAYS[other]}?|The day is a {WEEKDAYS[other]}.', day == other),
            ('free', 'Is it free of charge?|One does not have to pay.|free entry', free),
            ('fee', 'Does one have to pay?|There is a fee.|It costs money.', not free),
            ('halfmonth', 'Is it in the first half of the month?|The date is before the 15th.', date < 15)])
        kind, questions, truth = asked
        if kind in ('month', 'weekday', 'season') and not truth and self.pick.random() < .6:
            return
        held = kind in ('weekend', 'fee')
        self.put(text, self.pick.choice(questions.split('|')), truth, 'calendar ' + kind, held, is_test)

    def make(self, count, calendar):
        self.rows.begin('numbers')
        for number in range(count):
            if number % 50 == 0:
                batch = quantities(self.pick)
            self.compare(self.pick.choice(batch), number % 10 == 0)
        self.rows.begin('calendar')
        for number in range(calendar):
            self.calendar(number % 10 == 0)
