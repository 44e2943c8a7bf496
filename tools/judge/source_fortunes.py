"""Rows from fortunes: topics of short texts, surface marks."""
import re

from naming import can_deny, names
from rows import bucket
from source_debian import read_rules, wordings_of
from wording import wordings

MIXED_FILES = ('fortunes', 'cookie', 'miscellaneous', 'zippy', 'wisdom', 'platitudes', 'goedel')
SURFACE = [
    (lambda text: '?' in text, wordings('Does the text ask a question?|There is a question in the text.'
                                        '|Is a question asked?', 'Is there a question mark in it?')),
    (lambda text: bool(re.search(r'\d', text)), wordings('Does the text contain a number?|There are digits in it.'
                                                         '|contains a number', 'Is a figure written in digits?')),
    (lambda text: bool(re.search(r'\n\s*-- ', text)),
     wordings('Is the quotation attributed to somebody?|An author or source is named at the end.'
              '|Does it say who said it?', 'Is the source of the quote given?')),
]


def read_fortunes(directory):
    files = {}
    for path in sorted(directory.iterdir()):
        if '.' not in path.name:
            texts = path.read_text(encoding='utf8', errors='replace').split('\n%\n')
            files[path.name] = [re.sub(r'\s*\n\s*', '\n', text).strip() for text in texts if 40 < len(text) < 1200]
    return files


class FortuneSource:
    def __init__(self, directory, rows):
        self.files, self.rows, self.pick = read_fortunes(directory), rows, rows.random
        self.texts = [text for texts in self.files.values() for text in texts if len(text) < 500]
        self.pick.shuffle(self.texts)

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

    def surface_rows(self, count=900):
        for number in range(count):
            has, asked = SURFACE[number % 3]
            text = self.pick.choice(self.texts)
            if has(text) == (number // 3) % 2:
                self.put(asked, text, has(text), f'surface:{number % 3}')

    def make(self):
        self.rows.run(self.topic_rows, self.surface_rows)
