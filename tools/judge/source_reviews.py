"""Generated reviews of things and places with planted opinion, aspects, defects, delivery, service and price."""
import dataclasses
import pathlib
import re

from bank import fill_slots
from naming import may_tell, stem_names
from wording import wordings

BANKS = pathlib.Path(__file__).parent / 'banks'
SENTIMENT = wordings(
    'Is this review positive?|Does the reviewer like it?|The review is positive.|Is the writer satisfied?'
    '|positive review|Did they enjoy it?|The sentiment is positive.|Is the author happy with it?'
    '|The customer is content.|Is the customer satisfied?|Is the {x} good according to the reviewer?'
    '|The reviewer likes the {x}.|Was it a good experience?|Is the overall impression good?|positive',
    'Is the opinion expressed here favourable?|Overall, the writer is pleased.|Would the writer give a good mark?'
    '|Is the customer happy with the {x}?',
    'Is this review negative?|The review is negative.|Is the writer disappointed?|The sentiment is negative.'
    '|Does the reviewer dislike it?|Is this a complaint?|The customer is unhappy.|Is the customer dissatisfied?'
    '|Did the {x} disappoint them?', .35)
RECOMMEND = wordings('Would the author recommend it?|The writer recommends it.|Would they buy or visit again?'
                     '|Is this a recommendation?', 'Is this an endorsement?',
                     'Does the author advise against it?|The writer warns others.', .3)
MENTION = wordings('Does the review mention the {x}?|There is a mention of the {x}.|mentions the {x}|Is there talk of the {x}?'
                   '|Does the writer say anything about the {x}?|the {x}',
                   'Is there a comment on the {x}?|One of the points raised concerns the {x}.', 'There is nothing about the {x}.')
PRAISE = wordings('Does the reviewer praise the {x}?|There is praise for the {x}.|Did they like the {x}?'
                  '|Does it call the {x} good?|The writer is happy with the {x}.',
                  'Is the opinion of the {x} favourable?|A good mark goes to the {x}.')
BLAME = wordings('Does the reviewer complain about the {x}?|There is criticism of the {x}.|Does it call the {x} bad?'
                 '|complains about the {x}|The writer is unhappy with the {x}.',
                 'Is the opinion of the {x} unfavourable?|A bad mark goes to the {x}.')
BROKEN = wordings('Is the product broken?|Does the review report a defect?|The item was damaged.|broken or defective'
                  '|Did it arrive in pieces or stop working?|The product has a defect.|Was there any damage?'
                  '|Does the customer say that it broke?|It is faulty.|Did something break?',
                  'Did the product break or come damaged?|The article failed or was not whole.',
                  'The product is intact.|Was everything whole and working?', .12)
LATE = wordings('Was it delivered late?|The delivery took too long.|late delivery|Did it arrive after the promised date?'
                '|Does the customer complain about slow shipping?|The parcel was late.|Was the shipment delayed?'
                '|Does the text say that it came late?', 'Did they have to wait too long for it?'
                '|The review says that the delivery was not on time.', 'It came on time.', .08)
SERVICE = wordings('Did the customer contact the customer service?|customer service is mentioned'
                   '|The writer dealt with support.|Is there anything about the support team?'
                   '|Did they call or write to the company?', 'Was there any contact with the seller?'
                   '|The reviewer got in touch with those who sell or make it.')
PRICEY = wordings('Is it considered too expensive?|The writer finds the price too high.|too expensive'
                  '|Does the reviewer complain about the price?', 'Is the cost seen as excessive?',
                  'The price is seen as fair.', .1)

DENIALS = {'broken': 'intact', 'late': 'intime', 'service': 'noservice', 'pricey': 'cheapgood'}
PLURAL = re.compile('[^s]s$')


def agreeing(question, name):
    """`Is the {x} good?` -> `Are the {x} good?` for legs and edges."""
    if not PLURAL.search(name):
        return question
    question = question.replace('Is the {x}', 'Are the {x}').replace('Was the {x}', 'Were the {x}').replace('Does the {x}', 'Do the {x}')
    return question.replace('{x} is ', '{x} are ').replace('{x} was ', '{x} were ').replace('{x} gets ', '{x} get ').replace('are one of', 'are among')


@dataclasses.dataclass
class Subject:
    name: str
    held: bool
    aspects: list
    neutral: list
    good: list
    bad: list


def read_subjects(banks):
    """(subjects, shared): shared maps `=good` and the like to lists."""
    subjects, shared = [], {}
    blocks = (banks / 'reviews.txt').read_text(encoding='utf8').split('\n[')[1:]
    for block in blocks:
        head, *lines = [line for line in block.splitlines() if line.strip()]
        name = head.rstrip(']')
        if name.startswith('='):
            separator = '/' if name in ('=good', '=bad') else ' / '
            shared[name[1:]] = lines[0].split(separator)
            continue
        held = name.startswith('held ')
        subjects.append(Subject(name.removeprefix('held '), held, lines[0].split('/'),
                                *(line.split(' / ') for line in lines[1:4])))
    return subjects, shared


def read_opinions(banks):
    """{True: favourable opinions, False: unfavourable ones}, each a whole text."""
    lines = (banks / 'opinions.txt').read_text(encoding='utf8').splitlines()
    return {sign == '+': [text for line in lines if line[0] == sign for text in line[2:].split(' | ')] for sign in '+-'}


class ReviewSource:
    def __init__(self, rows, banks=BANKS):
        self.rows, self.pick = rows, rows.random
        self.subjects, self.shared = read_subjects(banks)
        self.opinions = read_opinions(banks)
        self.product = Subject('product', False, [], [], self.opinions[True], self.opinions[False])

    def some(self, pool, is_test):
        """A phrase of the pool that belongs to this side of the test split."""
        chosen = [text for text in pool if self.rows.is_test_text(text, 6) == is_test] or pool
        return self.pick.choice(chosen)

    def aspect(self, name, good, is_test):
        pool, other = ('good', 'bad') if good else ('bad', 'good')
        word, more, opposite = (self.some(self.shared[key], is_test) for key in (pool, pool, other))
        forms = ['The {a} was {w}.', '{w} {a}!', 'I found the {a} {w}.', 'The {a}? {w}.', 'The {a} is {w} and {m}.',
                 'As for the {a}, it is {w}.', 'The {a} is anything but {o}.', 'Nobody could call the {a} {o}.',
                 'The {a} turned out to be {w}.', 'Also, {w} {a}.', '{a}: {w}']
        if is_test:
            forms = ['{w}, that is my word for the {a}.', 'The {a} struck me as {w}.', 'The {a} is not {o} at all.']
        form = self.pick.choice(forms)
        if PLURAL.search(name):
            form = form.replace('{a} is', '{a} are').replace('{a} was', '{a} were').replace('it is', 'they are')
        text = form.format(a=name, w=word, m=more, o=opposite)
        return text[0].upper() + text[1:]

    def make_one(self, number):
        subject = self.pick.choice(self.subjects)
        is_test = subject.held or self.rows.is_tenth(number)
        good = self.pick.random() < .5
        aspects = self.pick.sample(subject.aspects, min(self.pick.choice([0, 0, 1, 2, 3, 5]), len(subject.aspects) - 1))
        opinions = {name: good if self.pick.random() < .75 else not good for name in aspects}
        lines = [self.aspect(name, opinion, is_test) for name, opinion in opinions.items()]
        clear = any(opinion != good for opinion in opinions.values())
        verdict = self.some(self.shared['yes' if good else 'no'], is_test)
        implied = self.some(subject.good if good else subject.bad, is_test)
        if not lines or self.pick.random() < .6:
            lines.append(implied if self.pick.random() < .6 else verdict)
        if self.pick.random() < .2:
            lines.append(self.some(self.shared['butyes' if good else 'butno'], is_test))
        flags = self.side_facts(lines, is_test)
        if self.pick.random() < .4:
            lines.insert(0, self.pick.choice(subject.neutral))
        if clear or any(flags.values()) or self.pick.random() < .2:
            lines.append(verdict)
        if self.pick.random() < .6:
            self.pick.shuffle(lines)
        self.ask(subject, lines, good, opinions, flags, is_test)

    def side_facts(self, lines, is_test):
        """Plants facts that are not the opinion; returns which."""
        flags = {}
        for name, denial in DENIALS.items():
            chance = self.pick.random()
            flags[name] = chance < .2
            if flags[name]:
                lines.append(self.some(self.shared[name], is_test))
            elif chance < .34:
                lines.append(self.some(self.shared[denial], is_test))
        return flags

    def ask(self, subject, lines, good, opinions, flags, is_test):
        text = fill_slots(' '.join(dict.fromkeys(lines)), self.pick)
        options = dict(held=subject.held, is_test=is_test)
        agree = lambda questions, x: [agreeing(question, x) for question in questions]
        in_number = lambda asked, x: dataclasses.replace(asked, train=agree(asked.train, x), test=agree(asked.test, x), negated=agree(asked.negated, x))
        put = lambda asked, truth, kind, x='': self.rows.put(in_number(asked, x), text, truth, 'review:' + kind, 'reviews', x=x, **options)
        chance = self.pick.random()
        if chance < (.25 if opinions else .42):
            noun = self.pick.choice(['product', 'purchase', subject.name, subject.name])
            put(self.with_more(SENTIMENT, 'sentiment'), good, 'sentiment', noun)
        elif chance < (.31 if opinions else .48):
            put(self.with_more(RECOMMEND, 'recommend'), good, 'recommend')
        elif chance < .78 and opinions:
            self.ask_aspect(subject, opinions, text, put)
        elif flags := {name: value for name, value in flags.items() if value or self.can_deny(name, lines)}:
            name = self.flag_to_ask(flags)
            asked = {'broken': BROKEN, 'late': LATE, 'service': SERVICE, 'pricey': PRICEY}[name]
            put(self.with_more(asked, name), flags[name], name)

    def can_deny(self, fact, lines):
        """Whether no line tells of the fact that was not planted, but for those that were written to deny it."""
        return not any(may_tell(fact, line) for line in lines if line not in self.shared[DENIALS[fact]])

    def with_more(self, asked, name):
        """The wordings with the bank's own for training, `[=ask_broken]` and the like."""
        return dataclasses.replace(asked, train=asked.train + self.shared.get('ask_' + name, []))

    def flag_to_ask(self, flags):
        planted = [name for name, value in flags.items() if value]
        if planted and self.pick.random() < .75:
            return self.pick.choice(planted)
        return self.pick.choice(list(flags))

    def ask_aspect(self, subject, opinions, text, put):
        truth = self.pick.random() < .5
        absent = [name for name in subject.aspects if name not in opinions and not stem_names(name.split(), text)]
        if self.pick.random() < .4:
            if truth or absent:
                put(MENTION, truth, 'aspect', self.pick.choice(list(opinions) if truth else absent))
            return
        want = self.pick.choice(list(opinions.values())) if truth else self.pick.random() < .5
        right = [name for name, opinion in opinions.items() if opinion == want]
        wrong = [name for name, opinion in opinions.items() if opinion != want] or absent
        if right if truth else wrong:
            put(self.with_more(PRAISE if want else BLAME, 'praise' if want else 'blame'), truth, 'polarity', self.pick.choice(right if truth else wrong))

    def make_opinion(self, number):
        """A review made of one or two natural opinions and perhaps a side fact."""
        is_test, good = self.rows.is_tenth(number), self.pick.random() < .5
        lines = [self.some(self.opinions[good], is_test) for _ in range(self.pick.choice([1, 1, 1, 2]))]
        flags = self.side_facts(lines, is_test)
        if self.pick.random() < .5:
            self.pick.shuffle(lines)
        self.ask(self.product, lines, good, {}, flags, is_test)

    def make(self, count, opinions):
        for number in range(count):
            self.rows.begin(f'review {number}')
            self.make_one(number)
        for number in range(opinions):
            self.rows.begin(f'opinion {number}')
            self.make_opinion(number)
