"""Training rows about quantities and calendar questions that no test row has: volumes, powers, areas, balances, weekdays in a set and the like.

Kept apart from source_numbers.py, whose quantities are tests as well; the unseen ones (temperature, distance, people, speed, weekend, fee) are
neither shown nor asked here.
"""
from source_numbers import EVENTS, MONTHS, WEEKDAYS, NumberSource, Quantity

DAY_SETS = [('in the first three days of the week', {0, 1, 2}), ('between Tuesday and Thursday', {1, 2, 3}), ('on a Monday or a Tuesday', {0, 1}),
            ('on a Wednesday or a Friday', {2, 4}), ('between Wednesday and Friday', {2, 3, 4}), ('on a Thursday or a Saturday', {3, 5}),
            ('on a Sunday or a Monday', {6, 0}), ('on a Friday or a Saturday', {4, 5}), ('on a Tuesday or a Sunday', {1, 6})]
DATE_FORMS = ['{e} on {w}, {d} {m}.', '{e} on {d} {m}, a {w}.', '{w}, {m} {d}: {e}.', '{e}: {w}, {d} {m}.', '{e} ({w}, {m} {d}).']


def more_quantities(pick):
    """Quantities with values drawn for one batch of rows."""
    draw = lambda low, high, step=1: sorted({pick.randrange(low, high, step) for _ in range(12)})
    return [
        Quantity('volume', 'the volume', ['The bucket holds {v} litres.', 'A tank of {v} litres.', 'We used {v} litres of paint.', 'Contents: {v} l.'], draw(1, 120), '{} litres',
                 [('Does it hold more than 50 litres?', lambda v: v > 50), ('less than 10 litres', lambda v: v < 10)]),
        Quantity('power', 'the power', ['The motor has {v} watts.', 'Power: {v} W.', 'It draws {v} watts at full load.'], draw(50, 2400, 50), '{} watts',
                 [('Is it stronger than 1000 watts?', lambda v: v > 1000), ('It needs less than 500 watts.', lambda v: v < 500)]),
        Quantity('memory', 'the memory', ['The phone has {v} GB of memory.', 'Storage: {v} GB.', '{v} GB are free on the disk.'], [2, 4, 8, 12, 16, 32, 64, 128, 256, 512], '{} GB',
                 [('Does it have at least 16 GB?', lambda v: v >= 16), ('less than 100 GB', lambda v: v < 100)]),
        Quantity('area', 'the area', ['The flat has {v} square metres.', 'A garden of {v} square metres.', 'Living space: {v} m2.', '{v} square metres of roof have to be tiled.'], draw(12, 400), '{} square metres',
                 [('Is it larger than 100 square metres?', lambda v: v > 100), ('It is smaller than 50 square metres.', lambda v: v < 50)]),
        Quantity('summit', 'the altitude', ['The hut lies at {v} metres.', 'The peak is {v} m high.', 'We camped at {v} metres above the sea.'], draw(200, 4800, 50), '{} metres',
                 [('Is it above 3000 metres?', lambda v: v > 3000), ('lower than 1000 metres', lambda v: v < 1000)]),
        Quantity('depth', 'the depth', ['The well is {v} metres deep.', 'They dived to {v} metres.', 'Depth of the lake: {v} m.'], draw(2, 200), '{} metres',
                 [('Is it deeper than 100 metres?', lambda v: v > 100), ('It is less than 20 metres deep.', lambda v: v < 20)]),
        Quantity('balance', 'the balance', ['The account stands at {v} euros.', 'Balance: {v} EUR.', 'After the rent my balance is {v} euros.', 'At the end of the month it says {v} euros.'], draw(-300, 400, 5), '{} euros',
                 [('Is the account overdrawn?', lambda v: v < 0), ('The balance is positive.', lambda v: v > 0), ('Is there more than 100 euros in the account?', lambda v: v > 100)]),
        Quantity('floor', 'the floor', ['The office is on floor {v}.', 'She lives on floor {v}.', 'Take the lift to floor {v}.', 'The car stands on level {v}.'], list(range(-3, 13)), '{}',
                 [('Is it below the ground?', lambda v: v < 0), ('It is above the fifth floor.', lambda v: v > 5)]),
        Quantity('profit', 'the result', ['The firm closed the year at {v} million.', 'Result of the quarter: {v} million euros.', 'The club ended the season with {v} million.'], draw(-40, 60), '{} million',
                 [('Was there a loss?', lambda v: v < 0), ('They made a profit.', lambda v: v > 0)]),
        Quantity('level', 'the water level', ['The river stands at {v} cm.', 'Water level: {v} cm.', 'The gauge shows {v} cm.'], draw(20, 900, 5), '{} cm',
                 [('Is the river above five metres?', lambda v: v > 500), ('The level is under two metres.', lambda v: v < 200)]),
        Quantity('rain', 'the rainfall', ['{v} mm of rain fell overnight.', 'Rainfall: {v} mm.', 'The station measured {v} mm.'], draw(1, 90), '{} mm',
                 [('Did more than 30 mm fall?', lambda v: v > 30)]),
        Quantity('pulse', 'the pulse', ['His pulse is {v}.', 'Heart rate {v}.', 'At rest she has a pulse of {v}.'], draw(42, 180), '{}',
                 [('Is the heart beating faster than 100 times a minute?', lambda v: v > 100), ('The pulse is slower than 60.', lambda v: v < 60)]),
        Quantity('dose', 'the dose', ['Take {v} mg in the evening.', 'Each tablet holds {v} mg.', 'The doctor wrote down {v} mg.'], draw(5, 900, 5), '{} mg',
                 [('Is the dose above 400 mg?', lambda v: v > 400)]),
        Quantity('energy', 'the consumption', ['We used {v} kWh this month.', 'Consumption: {v} kWh.', 'The meter counted {v} kWh.'], draw(20, 600), '{} kWh',
                 [('Was it more than 300 kWh?', lambda v: v > 300)]),
        Quantity('calories', 'the number of calories', ['One bar has {v} calories.', '{v} kcal per portion.', 'The soup comes to {v} calories.'], draw(20, 950, 10), '{}',
                 [('Does it have more than 500 calories?', lambda v: v > 500), ('fewer than 200 calories', lambda v: v < 200)]),
        Quantity('screen', 'the size of the screen', ['A {v}-inch screen.', 'Screen: {v} inches.', 'We bought one with {v} inches.'], draw(5, 86), '{} inches',
                 [('Is the screen larger than 30 inches?', lambda v: v > 30)]),
        Quantity('votes', 'the number of votes', ['The proposal got {v} votes.', '{v} votes were cast for her.', 'In the end it was {v} votes.'], draw(3, 900), '{}',
                 [('Did it get more than 500 votes?', lambda v: v > 500)]),
        Quantity('stars', 'the number of stars', ['{v} of 5 stars.', 'Rated {v} out of 5.', 'The hotel has {v} stars.'], [1, 2, 3, 4, 5], '{}',
                 [('Are there at least four stars?', lambda v: v >= 4), ('two stars or fewer', lambda v: v <= 2)]),
        Quantity('months', 'the number of months', ['The contract runs for {v} months.', 'Paid off in {v} months.', 'The baby is {v} months old.', 'They built for {v} months.'], draw(2, 60), '{}',
                 [('Is it longer than a year?', lambda v: v > 12), ('It is less than half a year.', lambda v: v < 6), ('Is it more than two years?', lambda v: v > 24)]),
        Quantity('seconds', 'the time in seconds', ['She swam it in {v} seconds.', 'The page loads in {v} seconds.', 'Hold your breath for {v} seconds.'], draw(2, 200), '{}',
                 [('Does it take more than a minute?', lambda v: v > 60), ('It takes less than ten seconds.', lambda v: v < 10)]),
        Quantity('thickness', 'the thickness', ['The board is {v} mm thick.', 'Ice of {v} mm.', 'Thickness: {v} mm.'], draw(1, 120), '{} mm',
                 [('Is it thicker than 2 cm?', lambda v: v > 20), ('thinner than 1 cm', lambda v: v < 10)]),
        Quantity('row', 'the row', ['Our seats are in row {v}.', 'Row {v}, on the aisle.', 'He sat in row {v}.'], list(range(1, 40)), '{}',
                 [('Is it one of the first five rows?', lambda v: v <= 5), ('It is behind the twentieth row.', lambda v: v > 20)]),
    ]


class MeasureSource(NumberSource):

    def dates(self):
        """A day with its weekday, asked after sets of weekdays, parts of the month and of the year."""
        day, month, date = self.pick.randrange(7), self.pick.randrange(12), self.pick.randint(1, 28)
        form = self.pick.choice(DATE_FORMS)
        text = self.document(form.format(e=self.pick.choice(EVENTS), w=WEEKDAYS[day], d=date, m=MONTHS[month]))
        wanted = self.pick.random() < .5
        name, days = self.pick.choice([item for item in DAY_SETS if (day in item[1]) == wanted])
        limit = self.pick.choice([number for number in range(2, 28) if number != date and (date < number) == wanted] or [29 if wanted else 1])
        first, last = sorted(self.pick.sample(range(12), 2))
        kind, questions, truth = self.pick.choice([
            ('days', [f'Is it {name}?', f'It takes place {name}.', name, f'The day is {name}.'], wanted),
            ('days', [f'Is it {name}?', f'The date falls {name}.', f'Does it happen {name}?'], wanted),
            ('day of month', [f'Is it before day {limit} of the month?', f'The day of the month is lower than {limit}.'], date < limit),
            ('half year', ['Is it in the first half of the year?', 'It happens before July.', 'between January and June'], month < 6),
            ('months', [f'Is it between {MONTHS[first]} and {MONTHS[last]}?', f'The month lies between {MONTHS[first]} and {MONTHS[last]}.'], first <= month <= last)])
        self.put(text, self.pick.choice(questions), truth, 'dates ' + kind, False, False)

    def make(self, count, dates):
        for number in range(count):
            self.rows.begin(f'measures {number}')
            self.compare(self.pick.choice(more_quantities(self.pick)), False)
        for number in range(dates):
            self.rows.begin(f'dates {number}')
            self.dates()
