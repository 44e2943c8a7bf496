"""Rows from Debian package descriptions: debtags (set by people), archive sections, summaries, long lists, languages."""
import collections
import dataclasses
import itertools
import pathlib
import re

from naming import can_affirm, can_deny, is_something_else, names
from rows import bucket, with_article
from wording import (ABOUT, IS_A, PAIR_ABOUT, PAIR_SUMMARY, PAIR_TRANSLATION, SOME_ABOUT, SOME_IS, TEXT_IS)

BANKS = pathlib.Path(__file__).parent / 'banks'
LONG_FACETS = ('use', 'x11', 'hardware', 'suite', 'game', 'devel', 'protocol', 'field', 'sound', 'culture')
# Facets whose absence on a package says nothing unless the package has tags of another field.
SPARSE_FACETS = ('sound', 'field', 'culture', 'suite', 'hardware', 'protocol', 'accessibility', 'web', 'mail', 'security',
                 'science')
# Other tags that say as much: a package with one of them is no FALSE row of the first.
AS_MUCH = {'interface::x11': ('interface::graphical', 'uitoolkit::gtk', 'uitoolkit::qt', 'interface::3d'),
           'interface::graphical': ('interface::x11', 'x11::application', 'uitoolkit::gtk', 'uitoolkit::qt', 'interface::3d'),
           'interface::commandline': ('interface::text-mode', 'interface::shell'),
           'interface::text-mode': ('interface::commandline', 'interface::shell', 'uitoolkit::ncurses'),
           'uitoolkit::ncurses': ('interface::text-mode',), 'interface::web': ('web::application', 'web::cgi'),
           'web::application': ('interface::web', 'web::cgi'), 'devel::library': ('role::shared-lib', 'role::devel-lib'),
           'role::shared-lib': ('devel::library', 'role::devel-lib'), 'role::devel-lib': ('devel::library',),
           'role::documentation': ('devel::doc',), 'devel::doc': ('role::documentation',), 'network::server': ('interface::daemon',),
           'interface::daemon': ('network::server',), 'use::editing': ('devel::editor', 'devel::ide'), 'devel::editor': ('devel::ide',),
           'sound::player': ('use::playing',), 'game::arcade': ('game::platform', 'game::fps', 'game::tetris'),
           'game::puzzle': ('game::tetris', 'game::board'), 'game::board': ('game::card', 'game::puzzle', 'game::strategy'),
           'game::strategy': ('game::board', 'game::simulation'), 'game::simulation': ('game::strategy',),
           'game::adventure': ('game::rpg:rogue', 'game::rpg'), 'game::rpg:rogue': ('game::rpg', 'game::adventure'),
           'x11::font': ('made-of::font',), 'devel::compiler': ('devel::interpreter',), 'devel::interpreter': ('devel::compiler',)}
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


def has(package, tag):
    return any(own == tag or own.startswith(tag + ':') for own in package.tags)


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

    @staticmethod
    def cut(text, most=1000):
        return text if len(text) <= most else text[:most].rsplit('. ', 1)[0] + '.'

    def text(self, package):
        body = self.cut(package.body)
        if self.pick.random() < .6:
            body = body.replace('\n', ' ')
        name, summary = package.name, package.summary
        forms = [f'{summary}\n{body}'] * 10 + [body] * 4 + [f'{name}: {summary}\n{body}'] * 3 + [summary] * 2
        return self.pick.choice(forms + [f'{name} - {summary}'])

    def is_test(self, package):
        return bucket(package.source, 10) == 0

    def believed(self, rule, package, truth):
        """The package as a text whose label can be believed, None where there is none (naming.py)."""
        whole = f'{package.name} {package.summary} {package.body}'
        if not truth:
            return self.text(package) if can_deny(rule, whole) else None
        heading = f'{package.name} {package.summary}'
        if not can_affirm(rule, whole) or not self.fits_section(rule, package) or is_something_else(rule, heading):
            return None
        text = self.text(package)
        return text if can_affirm(rule, text) else self.cut(f'{package.summary}\n{package.body}')

    def put_believed(self, rule, positive, negative, most, kind):
        believed = []
        self.rows.begin(kind + rule.tag)
        for pool, truth in ((positive, True), (negative, False)):
            self.pick.shuffle(pool)
            texts = ((package, self.believed(rule, package, truth)) for package in pool)
            believed.append(list(itertools.islice(((package, text) for package, text in texts if text), most)))
        for (package, text), truth in self.rows.balanced(*believed, most):
            self.rows.put(wordings_of(rule), text, truth, kind + rule.tag, 'debian', held=rule.held,
                          is_test=self.is_test(package), x=self.pick.choice(rule.phrases))

    def tag_rows(self, most=170, most_held=20):
        for rule in read_rules('debtags'):
            facet = rule.tag.split('::')[0]
            positive = [package for package in self.by_facet[facet] if has(package, rule.tag)]
            tags = (rule.tag, *AS_MUCH.get(rule.tag, ()))
            negative = [package for package in self.by_facet[facet] if not any(has(package, tag) for tag in tags)]
            if facet in SPARSE_FACETS:
                foreign = lambda package: package.tags and not any(tag.startswith(facet + '::') for tag in package.tags)
                negative = negative[:400] + [package for package in self.packages[:1500] if foreign(package)]
            self.put_believed(rule, positive, negative, most_held if rule.held else most, 'deb:')

    def section_rows(self, most=190, most_held=20):
        for rule in read_rules('sections'):
            positive = list(self.by_section[rule.tag])
            negative = [package for package in self.packages[:9000] if package.section != rule.tag]
            self.put_believed(rule, positive, negative, most_held if rule.held else most, 'section:')

    def fits_section(self, rule, package):
        """A package lies in one section, whatever else it is about. A topic must be named to be believed."""
        return '::' in rule.tag or rule.relation == 'isa' or names(rule, f'{package.summary} {package.body}')

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
        rules = {rule.tag: rule for rule in read_rules('sections')}
        for package in self.packages[start:start + count]:
            if package.section not in rules:
                continue
            self.rows.begin('pair:section ' + package.name)
            truth = self.pick.random() < .5
            section = package.section if truth else self.pick.choice([n for n in rules if n != package.section])
            rule, held = rules[section], rules[section].held or rules[package.section].held
            text = self.believed(rule, package, truth)
            if text:
                name = re.sub(r'^(an?) ', '', rule.phrases[0])
                self.rows.put_pair(PAIR_ABOUT, (text, name), truth, 'pair:section', held=held, is_test=self.is_test(package))

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
                line = self.line(package)
                if not has(package, rule.tag) and can_deny(rule, line):
                    listed.append(line)
            if truth:
                lines = [self.line(self.pick.choice(self.by_tag[rule.tag])) for _ in range(12)]
                named = [line for line in lines if can_affirm(rule, line)]
                if not named:
                    continue
                listed[self.pick.randrange(size)] = named[0]
            self.rows.put(SOME_IS if rule.relation == 'isa' else SOME_ABOUT, self.pick.choice(['\n\n', '\n']).join(listed),
                          truth, 'long:' + rule.tag, 'long', held=rule.held, is_test=number % 10 == 0,
                          x=self.pick.choice(rule.phrases))

    def line(self, package):
        return f'{package.name}: {package.summary}. ' + package.body.replace('\n', ' ')[:self.pick.choice([200, 400, 700])]

    def language_rows(self, count=5000):
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
            phrase = self.pick.choice([with_article(asked) + ' text', f'in {asked}', f'written in {asked}', f'in the {asked} language'])
            self.rows.put(TEXT_IS, text, truth, 'language:' + asked, 'language', held=held, is_test=is_test, x=phrase)

    def make(self):
        self.rows.run(self.tag_rows, self.section_rows, self.summary_pairs, self.section_pairs, self.long_rows, self.language_rows)
