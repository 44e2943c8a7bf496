"""Rows from fortunes and example sentences: topics of short texts, mentioned words and kinds of things, surface marks."""
import re

from naming import can_deny, names
from rows import bucket
from source_debian import read_rules, wordings_of
from source_wordnet import COMMON
from wording import MENTIONS, wordings

MIXED_FILES = ('fortunes', 'cookie', 'miscellaneous', 'zippy', 'wisdom', 'platitudes', 'goedel')
MENTIONED = dict(animal='an animal', plant='a plant', disease='an illness', food='something to eat or drink',
                 vehicle='a vehicle', building='a building', emotion='an emotion', clothing='clothing',
                 weapon='a weapon', sport='a sport', city='a city', country='a country', tool='a tool')
# More categories by WordNet's word and sense number: phrase of the question.
MENTIONED_SENSES = {('furniture', 0): 'a piece of furniture', ('musical_instrument', 0): 'a musical instrument',
                    ('body_part', 0): 'a part of the body', ('relative', 0): 'a relative', ('metal', 0): 'a metal',
                    ('color', 0): 'a colour', ('insect', 0): 'an insect', ('bird', 0): 'a bird', ('fish', 0): 'a fish',
                    ('fruit', 0): 'a fruit', ('vegetable', 0): 'a vegetable', ('machine', 0): 'a machine', ('road', 0): 'a road or street', ('room', 0): 'a room', ('professional', 0): 'a profession', ('scientist', 0): 'a scientist', ('artist', 0): 'an artist',
                    ('ship', 0): 'a ship', ('body_of_water', 0): 'a sea, lake or river',
                    ('mountain', 0): 'a mountain', ('flower', 0): 'a flower', ('liquid', 0): 'a liquid',
                    ('publication', 0): 'something printed', ('document', 0): 'a document', ('crime', 0): 'a crime', ('medicine', 1): 'a medicine',
                    ('ceremony', 0): 'a ceremony', ('weather', 0): 'the weather', ('storm', 0): 'a storm', ('fabric', 0): 'a cloth',
                    ('meal', 0): 'a meal', ('shop', 0): 'a shop', ('school', 0): 'a school', ('soldier', 0): 'a soldier',
                    ('criminal', 0): 'a criminal', ('computer', 0): 'a computer', ('religion', 0): 'a religion',
                    ('science', 0): 'a science', ('unit_of_measurement', 0): 'a unit of measure', ('month', 0): 'a month',
                    ('day_of_the_week', 0): 'a day of the week', ('season', 0): 'a season', ('sound', 0): 'a sound'}
HELD_MENTIONED = ('weapon', 'clothing', 'sport')
SURFACE = [
    (lambda text: '?' in text, wordings('Does the text ask a question?|There is a question in the text.'
                                        '|Is a question asked?', 'Is there a question mark in it?')),
    (lambda text: bool(re.search(r'\d', text)), wordings('Does the text contain a number?|There are digits in it.'
                                                         '|contains a number', 'Is a figure written in digits?')),
    (lambda text: bool(re.search(r'\n\s*-- ', text)),
     wordings('Is the quotation attributed to somebody?|An author or source is named at the end.'
              '|Does it say who said it?', 'Is the source of the quote given?')),
]


def words_of(text):
    return set(re.findall(r'[a-z]{3,}', text.lower()))


def read_fortunes(directory):
    files = {}
    for path in sorted(directory.iterdir()):
        if '.' not in path.name:
            texts = path.read_text(encoding='utf8', errors='replace').split('\n%\n')
            files[path.name] = [re.sub(r'\s*\n\s*', '\n', text).strip() for text in texts if 40 < len(text) < 1200]
    return files


class FortuneSource:
    def __init__(self, directory, wordnet, packages, rows):
        self.files, self.net, self.rows, self.pick = read_fortunes(directory), wordnet, rows, rows.random
        self.texts = [text for texts in self.files.values() for text in texts if len(text) < 500]
        self.pick.shuffle(self.texts)
        bodies = [package.body.replace('\n', ' ')[:500] for package in packages]
        self.pool = wordnet.examples[:5000] + self.texts[:2500] + bodies

    def put(self, wordings_, text, truth, kind, **options):
        self.rows.put(wordings_, text, truth, kind, 'fortunes', is_test=bucket(text, 10) == 0, **options)

    def topic_rows(self, each=90):
        for rule in read_rules('fortunes'):
            others = [text for name, texts in self.files.items() if name != rule.tag and name not in MIXED_FILES
                      for text in self.pick.sample(texts, min(30, len(texts))) if can_deny(rule, text)]
            own = [text for text in self.files[rule.tag] if rule.relation == 'isa' or names(rule, text)]
            for text, truth in self.rows.balanced(own, others, each):
                self.put(wordings_of(rule), text, truth, 'fortune:' + rule.tag, held=rule.held,
                         x=self.pick.choice(rule.phrases))

    def mention_rows(self, each=140, single=6000):
        categories = [(name, phrase, COMMON[name]) for name, phrase in MENTIONED.items()]
        categories += [(word, phrase, self.net.senses[word][sense]) for (word, sense), phrase in MENTIONED_SENSES.items()]
        for name, phrase, key in categories:
            below = self.net.below(key)
            anyhow = {word.lower() for key in below for word in self.net.synsets[key].words}
            mostly = {word for word in anyhow if len(word) > 2 and self.net.is_mainly(word, below)}
            forms = lambda text: words_of(text) | {word[:-1] for word in words_of(text) if word.endswith('s')}
            positive = [text for text in self.pool if forms(text) & mostly]
            negative = [text for text in self.pick.sample(self.pool, 3000) if not forms(text) & anyhow]
            for text, truth in self.rows.balanced(positive, negative, each):
                self.put(MENTIONS, text, truth, 'mention:' + name, held=name in HELD_MENTIONED, x=phrase)
        vocabulary = {word for word in self.net.senses if len(word) > 4 and '_' not in word}
        for _ in range(single):
            text, other = self.pick.choice(self.pool), self.pick.choice(self.pool)
            truth = self.pick.random() < .5
            words = sorted(words_of(text if truth else other) & vocabulary)
            words = [word for word in words if truth or word not in text.lower()]
            if words:
                self.put(MENTIONS, text, truth, 'mention word', x=self.pick.choice(words))

    def surface_rows(self, count=900):
        for number in range(count):
            has, asked = SURFACE[number % 3]
            text = self.pick.choice(self.texts)
            if has(text) == (number // 3) % 2:
                self.put(asked, text, has(text), f'surface:{number % 3}')

    def make(self):
        self.topic_rows()
        self.mention_rows()
        self.surface_rows()
