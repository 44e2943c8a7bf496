"""Pairs of a customer profile and a product: who might buy what."""
from bank import fill_slots
from rows import bucket
from wording import PAIR_BUYS, wordings

HOBBY_FILLER = ('Works as a {j}.|Lives in {c}.|Has two children.|Drives a small car.|Prefers to pay by card.|Is {age}.'
                '|Goes to bed early.|Never misses the news.|Has a sister in {c}.|Likes crosswords.|Hates being late.'
                '|Reads our newsletter.').split('|')
PRODUCT_FORMS = ['{p}', '{p}', '{p}', 'Product: {p}', '{p} New, {k} euros.', 'On sale: {p}', '{p} Good quality for everyday use.',
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
        chosen = [text for text in pool if (bucket(text, 6) == 0) == is_test] or pool
        return self.pick.choice(chosen)

    def make_one(self, number):
        is_test = number % 10 == 0
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
        if self.pick.random() < .12:
            self.rows.put(ONE_TEXT, profile, truth, 'interest:product', 'interests', is_test=is_test, x=product)
        else:
            self.rows.put_pair(PAIR_BUYS, (profile, product), truth, 'pair:buys', is_test=is_test)

    def make(self, count):
        for number in range(count):
            self.make_one(number)
