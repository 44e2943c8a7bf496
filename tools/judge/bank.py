"""Documents from banks of hand-written sentences (banks/*.txt) with planted truth.

A bank has labels; each label has sentences that plant it (+), sentences that deny it or nearly say it (-), and phrases
that ask for it. Mode `mix` puts several labels into one document, mode `one` keeps to a single label, mode `own` asks a
label of its own sentences only. A sentence is a test sentence by its hash. Labels marked `held` are unseen kinds: neither their questions nor their sentences train.
"""
import dataclasses
import re

from naming import may_tell
from rows import with_article
from wording import (PAIR_ABOUT, PAIR_CLAIM, PAIR_SAME_ISSUE, PAIR_SAME_SORT, PAIR_TOPIC, phrase_wordings,
                     third_person)

NAMES = ('Anna Weber|Tom Hughes|Priya Nair|Lars Olsen|Maria Lopez|Chen Wei|Fatima Haddad|John Carter|Elif Kaya'
         '|Sofia Rossi|Peter Novak|Amara Okafor|Yuki Tanaka|Claire Dubois|Ivan Petrov|Grace Kim').split('|')
CITIES = ('Leeds|Lyon|Hamburg|Porto|Chicago|Osaka|Nairobi|Toronto|Madrid|Oslo|Mumbai|Denver|Krakow|Cork|Perth'
          '|Turin').split('|')
JOBS = ('nurse|teacher|plumber|lawyer|software developer|baker|pilot|farmer|accountant|waiter|carpenter|driver'
        '|librarian|electrician').split('|')
DAYS = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday'.split('|')
THINGS = ('lamp|kettle|chair|printer|backpack|blender|radio|tent|bicycle|clock|sofa|heater|camera|umbrella|shelf'
          '|toaster|drill|jacket|monitor|carpet|pan|desk|scooter|vacuum cleaner|mirror').split('|')
NUMBERS = [2, 3, 5, 7, 8, 10, 12, 15, 20, 25, 40, 50, 70, 100]


@dataclasses.dataclass
class Label:
    name: str
    held: bool = False
    often: bool = False
    phrases: dict = dataclasses.field(default_factory=dict)  # style -> (train phrases, test phrases)
    near: set = dataclasses.field(default_factory=set)
    plants: list = dataclasses.field(default_factory=list)
    denies: list = dataclasses.field(default_factory=list)
    products: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Bank:
    name: str
    options: dict
    labels: dict


def _sentences(text):
    return [part.strip().replace('\\n', '\n') for part in text.split(' | ') if part.strip()]


def _header(line):
    name, rest = re.match(r'\[(\w+)\]\s*(.*)', line).groups()
    label = Label(name)
    while rest.startswith(('held', 'often')):
        word, _, rest = rest.partition(' ')
        setattr(label, word, True)
    rest, _, near = rest.partition('~')
    label.near = {item.strip() for item in near.split(',') if item.strip()}
    for part in filter(None, (part.strip() for part in rest.split(';'))):
        style, _, phrases = part.partition(':')
        train, test = label.phrases.setdefault(style[0], ([], []))
        (test if style.endswith('t') else train).extend(phrases.split('/'))
    return label


def read_bank(path):
    bank = Bank(path.stem, {}, {})
    for line in path.read_text(encoding='utf8').splitlines():
        if line.startswith('@'):
            key, _, value = line[1:].partition(' ')
            bank.options[key] = value
        elif line.startswith('['):
            label = _header(line)
            bank.labels[label.name] = label
        elif line[:1] in ('+', '-', '*'):
            target = {'+': label.plants, '-': label.denies, '*': label.products}[line[0]]
            target.extend(_sentences(line[1:]))
    return bank


def read_more(path, known):
    """A bank of more texts for labels of the bank `known`: labels without phrases take theirs from there, as do all options."""
    bank = read_bank(path)
    bank.options = known.options | bank.options
    for name, label in bank.labels.items():
        if not label.phrases:
            label.phrases, label.near = known.labels[name].phrases, known.labels[name].near
            if known.labels[name].held:
                raise ValueError(f'{path}: [{name}] is an unseen kind')
    return bank


def fill_slots(text, pick):
    """Replaces {n}ame, {c}ity, {d}ay, {k} number, {p} thing, {j}ob, {age}."""
    text = re.sub(r'\b([aA]) \{(j|p)\}', lambda match: match[1] + with_article(pick.choice(JOBS if match[2] == 'j' else THINGS))[1:], text)
    choices = {'n': NAMES, 'c': CITIES, 'd': DAYS, 'k': NUMBERS, 'p': THINGS, 'j': JOBS, 'age': range(18, 85)}
    return re.sub(r'\{(n|c|d|k|p|j|age)\}', lambda match: str(pick.choice(choices[match.group(1)])), text)


class BankSource:
    """Makes rows from one bank."""

    def __init__(self, bank, rows, filler, claims=.14):
        """`claims`: the share of questions that become pairs of a text and a claim or topic."""
        self.bank, self.rows, self.pick, self.filler, self.claims = bank, rows, rows.random, filler, claims
        self.labels = list(bank.labels.values())
        self.subjects = bank.options.get('subject', 'writer').split('/')
        self.several = 'several' in bank.options
        self.wordings = {label.name: {style: phrase_wordings(style, *phrases, self.subjects)
                                      for style, phrases in label.phrases.items()} for label in self.labels}

    def sentences(self, label, is_test, part='plants'):
        own = getattr(label, part)
        chosen = [text for text in own if self.rows.is_test_text(text, 8) == is_test]
        return chosen or own

    def dress(self, sentences):
        """Joins sentences with an opening and a closing."""
        opening = self.pick.choice(self.bank.options.get('open', '').split('/'))
        closing = self.pick.choice(self.bank.options.get('close', '').split('/'))
        glue = self.pick.choice([' ', ' ', ' ', '\n'])
        text = opening.replace('\\n', '\n').lstrip(' ') + glue.join(sentences) + closing.replace('\\n', '\n').rstrip(' ')
        return fill_slots(text, self.pick).strip()

    def visible(self, held):
        """Labels whose sentences may stand in a document."""
        return [label for label in self.labels if held or not label.held]

    def near(self, one, other):
        return other.name in one.near or one.name in other.near

    def wording_of(self, label):
        return self.pick.choice(list(self.wordings[label.name].values()))

    def emit(self, text, label, truth, is_test):
        kind = f'{self.bank.name}:{label.name}'
        options = dict(held=label.held, is_test=is_test)
        if self.pick.random() < self.claims and label.phrases:
            self.emit_claim(text, label, truth, options)
        else:
            self.rows.put(self.wording_of(label), text, truth, kind, 'bank', **options)

    def emit_claim(self, text, label, truth, options):
        """The same question as a pair of a text and a claim or a topic."""
        style = self.pick.choice(list(label.phrases))
        phrases = label.phrases[style]
        test = options['held'] or options['is_test']
        phrase = self.pick.choice(phrases[1] if test and phrases[1] else phrases[0])
        if style in 'xa':
            phrase = re.sub(r'^(an?|the) ', '', phrase)
            self.rows.put_pair(PAIR_ABOUT, (text, phrase), truth, 'pair:label', **options)
            return
        subject = self.pick.choice(self.subjects)
        claim = {'v': f'The {subject} {third_person(phrase)}.', 'j': f'The {subject} is {phrase}.',
                 's': phrase[0].upper() + phrase[1:] + '.'}[style]
        self.rows.put_pair(PAIR_CLAIM, (text, claim), truth, 'pair:claim', **options)

    def mixed(self):
        """A document of one to three planted labels, up to two denied ones and filler."""
        target = self.pick.choice(self.labels)
        is_test = target.held or self.rows.draws_test()
        truth = self.pick.random() < .5
        others = [label for label in self.visible(target.held)
                  if label is not target and (truth or not self.near(label, target))]
        planted = self.pick.sample(others, self.pick.choice([0, 1, 1, 2]) + (not truth))[:3]
        planted += [target] if truth else []
        denied = [label for label in others if label not in planted and label.denies]
        denied = self.pick.sample(denied, self.pick.choice([0, 0, 1]))
        if not truth and target.denies and self.pick.random() < .45:
            denied.append(target)
        lines = [self.pick.choice(self.sentences(label, is_test)) for label in planted]
        if not truth and any(may_tell(f'{self.bank.name}:{target.name}', line) for line in lines):
            return
        lines += [self.pick.choice(label.denies) for label in denied]
        filler = _sentences(self.bank.options.get('filler', ''))
        lines += self.pick.sample(filler, min(len(filler), self.pick.choice([0, 0, 1, 2, 3])))
        if self.pick.random() < .08:
            lines += self.pick.sample(self.filler, self.pick.randint(4, 14))
        self.pick.shuffle(lines)
        if lines:
            self.emit(self.dress(lines), target, truth, is_test)

    def single(self):
        """A document of one label; the question names it, or one that is not near it."""
        weight = [4 if label.often else 1 for label in self.labels]
        target = self.pick.choices(self.labels, weight)[0]
        truth = self.pick.random() < .5
        is_test = target.held or self.rows.draws_test()
        shown = target
        if not truth:
            shown = self.pick.choice([label for label in self.visible(target.held)
                                      if label is not target and not self.near(label, target)])
        self.emit(self.single_text(shown, is_test), target, truth, is_test)

    def single_text(self, label, is_test):
        pool = self.sentences(label, is_test)
        count = min(len(pool), self.pick.choice([1, 1, 2, 3, 4, 5]) if self.several else 1)
        lines = self.pick.sample(pool, count)
        if self.several and self.pick.random() < .2:
            lines.insert(self.pick.randrange(len(lines) + 1), self.pick.choice(self.filler))
        text = self.dress(lines)
        return text.upper() if label.often and self.pick.random() < .07 else text

    def own(self):
        """A document that answers its label's question with yes, or one that comes close."""
        target = self.pick.choice(self.labels)
        is_test, truth = target.held or self.rows.draws_test(), self.pick.random() < .5
        lines = [self.pick.choice(self.sentences(target, is_test, 'plants' if truth else 'denies'))]
        if self.pick.random() < .12:
            lines.insert(self.pick.randrange(2), self.pick.choice(self.filler))
        self.emit(self.dress(lines), target, truth, is_test)

    def twins(self):
        """Two documents: same label or not."""
        first = self.pick.choice([label for label in self.labels if label.plants])
        truth = self.pick.random() < .5
        is_test = first.held or self.rows.draws_test()
        second = first if truth else self.pick.choice(
            [label for label in self.visible(first.held) if label is not first and not self.near(label, first)])
        texts = tuple(self.dress(self.pick.sample(self.sentences(label, is_test), 1)) for label in (first, second))
        mixed, topical = self.bank.options['mode'] == 'mix', 'topic' in self.bank.options
        wordings = PAIR_SAME_ISSUE if mixed else PAIR_TOPIC if topical else PAIR_SAME_SORT
        if texts[0] != texts[1]:
            self.rows.put_pair(wordings, texts, truth, f'twins:{self.bank.name}', held=first.held, is_test=is_test)

    def make(self, count, twins=0):
        make_one = {'mix': self.mixed, 'one': self.single, 'own': self.own}[self.bank.options['mode']]
        for number in range(count):
            self.rows.begin(f'{self.bank.name} {number}')
            make_one()
        for number in range(twins):
            self.rows.begin(f'twins {self.bank.name} {number}')
            self.twins()
