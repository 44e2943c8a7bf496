"""Pairs of a customer profile and a product: who might buy what. banks/needs.txt has the near misses."""
from bank import fill_slots
from wording import PAIR_BUYS, wordings

HOBBY_FILLER = ('Works as a {j}.|Lives in {c}.|Has two children.|Drives a small car.|Prefers to pay by card.|Is {age}.'
                '|Goes to bed early.|Never misses the news.|Has a sister in {c}.|Likes crosswords.|Hates being late.'
                '|Reads our newsletter.').split('|')
PRODUCT_FORMS = ['{p}', '{p}', '{p}', '{p}', '{p} In stock.', '{p} Black, grey or red.', '{p} Made to last.', 'New: {p} Ships in two days.',
                 '{p} Comes with a bag and a manual.', '{p} A favourite of our customers.', 'Product: {p}', '{p} New, {k} euros.', 'On sale: {p}', '{p} Good quality for everyday use.',
                 '{p} In three sizes.', '{p} With a two-year guarantee.', 'Item no. {k}{k}. {p}']
ONE_TEXT = wordings('Would this customer like the following: {x}|Might this person buy this? {x}'
                    '|The customer could use this product: {x}|This person is likely to buy: {x}',
                    'Should a shop recommend this to the customer? {x}')


class InterestSource:
    def __init__(self, bank, rows):
        self.rows, self.pick = rows, rows.random
        self.labels = list(bank.labels.values())

    def profile(self, labels, is_test):
        lines = [self.split(label.plants, is_test) for label in labels]
        if self.pick.random() < .55:
            lines += self.pick.sample(HOBBY_FILLER, self.pick.randint(1, 3))
        self.pick.shuffle(lines)
        head = self.pick.choice(['', '', '{n}. ', '{n}, {age}. ', 'Customer {n}: '])
        return fill_slots(head + ' '.join(lines), self.pick)

    def split(self, pool, is_test):
        chosen = [text for text in pool if self.rows.is_test_text(text, 6) == is_test] or pool
        return self.pick.choice(chosen)

    def make_one(self, number):
        is_test = self.rows.is_tenth(number)
        wanted = self.pick.sample(self.labels, self.pick.choice([1, 1, 1, 2]))
        truth = self.pick.random() < .48
        near = {name for label in wanted for name in label.near} | {
            label.name for label in self.labels if label.near & {want.name for want in wanted}}
        far = [label for label in self.labels if label not in wanted and label.name not in near]
        offered = self.pick.choice(wanted if truth else far)
        named = [self.split(offered.products, is_test) for _ in range(self.pick.choice([1, 1, 2]))]
        product = ' '.join(dict.fromkeys(named))
        product = fill_slots(self.pick.choice(PRODUCT_FORMS).replace('{p}', product), self.pick)
        profile = self.profile(wanted, is_test)
        if self.pick.random() < .2:
            self.rows.put(ONE_TEXT, profile, truth, 'interest:product', 'interests', is_test=is_test, x=product)
        else:
            self.rows.put_pair(PAIR_BUYS, (profile, product), truth, 'pair:buys', is_test=is_test)

    def make(self, count):
        for number in range(count):
            self.rows.begin(f'interests {number}')
            self.make_one(number)


class NeedSource:
    """Customers with goods that suit them and near misses (scenes of banks/needs.txt)."""

    def __init__(self, needs, rows):
        self.rows, self.pick, self.needs = rows, rows.random, needs

    def profile(self, need, other):
        lines = [need.text] + ([other.text] if other else [])
        lines += self.pick.sample(HOBBY_FILLER, self.pick.choice([0, 0, 1, 2]))
        self.pick.shuffle(lines)
        return fill_slots(self.pick.choice(['', '', '{n}. ', '{n}, {age}. ']) + ' '.join(lines), self.pick)

    def make_one(self, need, is_test):
        """`is_test` needs have neither profile nor goods in training, but for those of a second need."""
        same_side = [item for item in self.needs if self.rows.is_test_text(item.text, 8) == is_test and item is not need]
        other = self.pick.choice(same_side) if self.pick.random() < .2 else None
        truth, chance = self.pick.random() < .48, self.pick.random()
        if truth:
            product = self.pick.choice(need.true)
        else:
            product = self.pick.choice(need.false if chance < .7 else self.pick.choice(same_side).true)
            if other and product in other.true:
                other = None
        product = fill_slots(self.pick.choice(PRODUCT_FORMS).replace('{p}', product), self.pick)
        if self.pick.random() < .2:
            self.rows.put(ONE_TEXT, self.profile(need, other), truth, 'interest:product', 'interests', is_test=is_test, x=product)
        else:
            self.rows.put_pair(PAIR_BUYS, (self.profile(need, other), product), truth, 'pair:buys near', is_test=is_test)

    def make(self, each):
        for need in self.needs:
            self.rows.begin('need ' + need.text)
            for _ in range(each):
                self.make_one(need, self.rows.is_test_text(need.text, 8))
