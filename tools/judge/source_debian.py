"""Rows from Debian package descriptions: debtags (set by people), archive sections, summaries, long lists, languages."""
import collections
import dataclasses
import pathlib
import re

from rows import bucket
from wording import (ABOUT, IS_A, PAIR_ABOUT, PAIR_SUMMARY, PAIR_TRANSLATION, SOME_ABOUT, SOME_IS, TEXT_IS)

BANKS = pathlib.Path(__file__).parent / 'banks'
LONG_FACETS = ('use', 'x11', 'hardware', 'suite', 'game', 'devel', 'protocol', 'field', 'sound', 'culture')
# Facets whose absence on a package says nothing unless the package has tags of another field.
SPARSE_FACETS = ('sound', 'field', 'culture', 'suite', 'hardware', 'protocol', 'accessibility', 'web', 'mail', 'security',
                 'science')
LANGUAGES = {'de': 'German', 'fr': 'French', 'es': 'Spanish', 'it': 'Italian', 'pl': 'Polish', 'pt_BR': 'Portuguese',
             'ru': 'Russian', 'da': 'Danish'}
HELD_LANGUAGES = ('Italian', 'Danish')


@dataclasses.dataclass
class Package:
    name: str
    summary: str
    body: str
    section: str
    tags: frozenset
    source: str


@dataclasses.dataclass
class Rule:
    tag: str
    relation: str
    phrases: list
    held: bool


def read_rules(name):
    rules, held = [], False
    for line in (BANKS / f'{name}.txt').read_text(encoding='utf8').splitlines():
        held = held or line == '[held]'
        if line and line[0] not in '#[':
            tag, relation, phrases = line.split(' ', 2)
            rules.append(Rule(tag, relation, phrases.split('|'), held))
    return rules


def wordings_of(rule):
    return IS_A if rule.relation == 'isa' else ABOUT


def _unfold(text):
    text = re.sub(r'^ ', '', text, flags=re.M).replace('\n.\n', '\n\n')
    return re.sub(r'[ \t]+', ' ', re.sub(r'\n ?\.?\n?', '\n', text)).strip()


def read_translations(path, language='en'):
    """{package: (summary, body)} of one Translation-xx file."""
    found = {}
    pattern = re.compile(rf'Package: (\S+)\n.*?Description-{language}: (.*?)\n((?: .*\n?)*)', re.S)
    for block in path.read_text(encoding='utf8').split('\n\n'):
        match = pattern.match(block + '\n')
        if match:
            found.setdefault(match.group(1), (match.group(2).strip(), _unfold(match.group(3))))
    return found


def read_packages(directory, pick):
    """Packages with a description, at most three of one source (their texts repeat)."""
    descriptions = read_translations(directory / 'Translation-en')
    packages, seen = [], collections.Counter()
    for block in (directory / 'avail.txt').read_text(encoding='utf8').split('\n\n'):
        fields = dict(re.findall(r'^(Package|Section|Source|Tag): (.*(?:\n .*)*)', block, re.M))
        name = fields.get('Package')
        if name in descriptions:
            tags = frozenset(tag.strip() for tag in fields.get('Tag', '').replace('\n', '').split(',')) - {''}
            packages.append(Package(name, *descriptions[name], fields.get('Section', '').split('/')[-1], tags,
                                    fields.get('Source', name).split()[0]))
    packages.sort(key=lambda package: package.name)
    pick.shuffle(packages)
    kept = []
    for package in packages:
        seen[package.source] += 1
        if seen[package.source] <= 3 and len(package.body) > 40:
            kept.append(package)
    return kept


class DebianSource:
    def __init__(self, directory, rows):
        self.rows, self.pick, self.directory = rows, rows.random, directory
        self.packages = read_packages(directory, rows.random)
        self.by_facet, self.by_tag, self.by_section = (collections.defaultdict(list) for _ in range(3))
        for package in self.packages:
            self.by_section[package.section].append(package)
            for facet in {tag.split('::')[0] for tag in package.tags}:
                self.by_facet[facet].append(package)
            for tag in package.tags:
                self.by_tag[tag].append(package)

    def text(self, package, most=1000):
        body = package.body
        if len(body) > most:
            body = body[:most].rsplit('. ', 1)[0] + '.'
        if self.pick.random() < .6:
            body = body.replace('\n', ' ')
        name, summary = package.name, package.summary
        forms = [f'{summary}\n{body}'] * 10 + [body] * 4 + [f'{name}: {summary}\n{body}'] * 3 + [summary] * 2
        return self.pick.choice(forms + [f'{name} - {summary}'])

    def is_test(self, package):
        return bucket(package.source, 10) == 0

    def tag_rows(self, most=170, most_held=20):
        for rule in read_rules('debtags'):
            facet = rule.tag.split('::')[0]
            has = lambda package: any(tag == rule.tag or tag.startswith(rule.tag + ':') for tag in package.tags)
            positive = [package for package in self.by_facet[facet] if has(package)]
            negative = [package for package in self.by_facet[facet] if not has(package)]
            if facet in SPARSE_FACETS:
                foreign = lambda package: package.tags and not any(tag.startswith(facet + '::') for tag in package.tags)
                negative = negative[:400] + [package for package in self.packages[:1500] if foreign(package)]
            for package, truth in self.rows.balanced(positive, negative, most_held if rule.held else most):
                self.rows.put(wordings_of(rule), self.text(package), truth, 'deb:' + rule.tag, 'debian',
                              held=rule.held, is_test=self.is_test(package), x=self.pick.choice(rule.phrases))

    def section_rows(self, most=190, most_held=20):
        for rule in read_rules('sections'):
            positive = list(self.by_section[rule.tag])
            negative = [package for package in self.packages[:9000] if package.section != rule.tag]
            for package, truth in self.rows.balanced(positive, negative, most_held if rule.held else most):
                self.rows.put(wordings_of(rule), self.text(package), truth, 'section:' + rule.tag, 'debian',
                              held=rule.held, is_test=self.is_test(package), x=self.pick.choice(rule.phrases))

    def summary_pairs(self, count=6500):
        """A long description against a summary; hard negatives come from the same section."""
        for package in self.packages[:count]:
            truth = self.pick.random() < .5
            pool = self.by_section[package.section] if self.pick.random() < .6 else self.packages
            other = package if truth else self.pick.choice(pool)
            if truth or other.source != package.source:
                body = package.body[:900].replace(package.summary, '')
                self.rows.put_pair(PAIR_SUMMARY, (body, other.summary), truth, 'pair:summary',
                                   is_test=self.is_test(package))

    def section_pairs(self, start=6500, count=4500):
        names = {rule.tag: (re.sub(r'^(an?) ', '', rule.phrases[0]), rule.held) for rule in read_rules('sections')}
        for package in self.packages[start:start + count]:
            if package.section not in names:
                continue
            truth = self.pick.random() < .5
            section = package.section if truth else self.pick.choice([n for n in names if n != package.section])
            held = names[section][1] or names[package.section][1]
            self.rows.put_pair(PAIR_ABOUT, (self.text(package), names[section][0]), truth, 'pair:section', held=held,
                               is_test=self.is_test(package))

    def long_rows(self, count=7500):
        """Lists of 2 to 7 descriptions with the fact in one of them."""
        rules = [rule for rule in read_rules('debtags') if rule.tag.split('::')[0] in LONG_FACETS]
        tagged = [package for package in self.packages if package.tags]
        for number in range(count):
            rule = self.pick.choice(rules)
            if len(self.by_tag[rule.tag]) < 10:
                continue
            truth = self.pick.random() < .5
            listed = []
            size = self.pick.randint(2, 7)
            while len(listed) < size:
                package = self.pick.choice(tagged)
                if not any(tag.startswith(rule.tag) for tag in package.tags):
                    listed.append(package)
            if truth:
                listed[self.pick.randrange(size)] = self.pick.choice(self.by_tag[rule.tag])
            self.rows.put(SOME_IS if rule.relation == 'isa' else SOME_ABOUT, self.listing(listed), truth,
                          'long:' + rule.tag, 'long', held=rule.held, is_test=number % 10 == 0,
                          x=self.pick.choice(rule.phrases))

    def listing(self, packages):
        line = lambda package: f'{package.name}: {package.summary}. ' + package.body.replace('\n', ' ')[
            :self.pick.choice([200, 400, 700])]
        return self.pick.choice(['\n\n', '\n']).join(map(line, packages))

    def language_rows(self, count=1500):
        """Which language is it, and is it a translation: from Debian's translated descriptions."""
        found = {name: read_translations(path, code) for code, name in LANGUAGES.items()
                 if (path := self.directory / f'Translation-{code}').exists()}
        if not found:
            return
        english = {package.name: package for package in self.packages}
        for number in range(count):
            language = self.pick.choice(list(found))
            name = self.pick.choice(list(found[language]))
            summary, body = found[language][name]
            truth, is_test = self.pick.random() < .5, number % 10 == 0
            text = self.pick.choice([body[:500], f'{summary}\n{body[:300]}', summary])
            if number % 3 and name in english:
                other = name if truth else self.pick.choice(self.packages).name
                original = english[other] if other in english else english[name]
                self.rows.put_pair(PAIR_TRANSLATION, (original.summary, summary), original.name == name,
                                   'pair:translation', held=language in HELD_LANGUAGES, is_test=is_test)
                continue
            asked = language if truth else self.pick.choice([x for x in list(found) + ['English'] if x != language])
            if self.pick.random() < .15 and name in english:
                text, truth = english[name].body[:400], asked == 'English'
            held = asked in HELD_LANGUAGES or language in HELD_LANGUAGES
            phrase = self.pick.choice(['a {} text', 'in {}', 'written in {}', 'in the {} language']).format(asked)
            self.rows.put(TEXT_IS, text, truth, 'language:' + asked, 'language', held=held, is_test=is_test, x=phrase)

    def make(self):
        self.tag_rows()
        self.section_rows()
        self.summary_pairs()
        self.section_pairs()
        self.long_rows()
        self.language_rows()
