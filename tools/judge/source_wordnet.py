"""Rows from WordNet: hypernyms, topics, definitions, is-a facts, synonyms and opposites."""
import collections
import dataclasses
import functools
import re

from naming import stem_names
from rows import bucket, with_article
from wording import (ABOUT, DEFINES, FACT, KIND_OF, PAIR_DEFINES, PAIR_KIND, PAIR_OPPOSITE, PAIR_SYNONYM)

COMMON = dict(animal='n00015388', person='n00007846', plant='n00017222', disease='n14070360', tool='n04451818',
              food='n00021265', vehicle='n04524313', building='n02913152', emotion='n07480068', city='n08524735',
              country='n08544813', substance='n00019613', clothing='n03051540', language='n06282651',
              weapon='n04565375', sport='n00523513', bird='n01503061', fish='n02512053', tree='n13104059',
              occupation='n00582388')
FEWEST_COUNTED, MAINLY = 3, .75  # occurrences of a word that say which of its senses is meant, and the share that it needs
SHORTEST_ON_TOPIC = 20  # characters: a gloss of one word may be of any topic
PLURAL = (('s', ('',)), ('es', ('',)), ('ies', ('y',)))
ENDINGS = PLURAL + (('ed', ('', 'e')), ('ing', ('', 'e')), ('er', ('', 'e')), ('est', ('', 'e')))
HELD_COMMON = ('vehicle', 'tree', 'weapon')


@dataclasses.dataclass
class Synset:
    words: list
    gloss: str
    examples: list
    pointers: list  # (symbol, target key, source/target word numbers)
    lexicographer: int


def _read_synset(line):
    head, gloss = line.split(' | ', 1)
    head = head.split()
    count = int(head[3], 16)
    words = [re.sub(r'\(.*\)', '', word).replace('_', ' ') for word in head[4:4 + 2 * count:2]]
    at = 4 + 2 * count
    pointers = [(head[k], head[k + 2].replace('s', 'a') + head[k + 1], head[k + 3])
                for k in range(at + 1, at + 1 + 4 * int(head[at]), 4)]
    parts = re.split(r'; (?=")', gloss.strip())
    return head[0], Synset(words, re.sub(r'^\(.*?\) ', '', parts[0].strip()), [part.strip().strip('";') for part in
                           parts[1:]], pointers, int(head[1]))


class WordNet:
    def __init__(self, directory):
        self.synsets = {}
        for part in ('noun', 'verb', 'adj', 'adv'):
            for line in (directory / f'data.{part}').read_text(encoding='utf8').splitlines():
                if not line.startswith(' '):
                    offset, synset = _read_synset(line)
                    self.synsets[{'adv': 'r'}.get(part, part[0]) + offset] = synset
        self.senses = {}
        for line in (directory / 'index.noun').read_text(encoding='utf8').splitlines():
            if not line.startswith(' '):
                fields = line.split()
                self.senses[fields[0]] = ['n' + offset for offset in fields[-int(fields[2]):]]
        self.read_forms(directory)
        self.counts = collections.defaultdict(dict)  # word: {(part of speech, sense): occurrences}
        for line in (directory / 'cntlist.rev').read_text(encoding='utf8').splitlines():
            key, number, count = line.split()
            word, _, rest = key.partition('%')
            self.counts[word][rest[0], int(number)] = int(count)
        self.hypernyms = {key: [target for symbol, target, _ in synset.pointers if symbol in ('@', '@i')]
                          for key, synset in self.synsets.items() if key[0] == 'n'}
        self.instances = {key for key in self.hypernyms if any(symbol == '@i' for symbol, _, _ in self.synsets[key].pointers)}
        self.children = collections.defaultdict(list)
        for key, parents in self.hypernyms.items():
            for parent in parents:
                self.children[parent].append(key)
        self.nouns = [key for key in self.hypernyms if len(self.synsets[key].gloss) > 12]
        self.examples = [text for synset in self.synsets.values() for text in synset.examples if len(text) > 20]

    @functools.lru_cache(maxsize=None)
    def below(self, key):
        found, stack = set(), list(self.children[key])
        while stack:
            child = stack.pop()
            if child not in found:
                found.add(child)
                stack += self.children[child]
        return frozenset(found)

    def depth(self, key):
        depth = 0
        while self.hypernyms.get(key) and depth < 30:
            key, depth = self.hypernyms[key][0], depth + 1
        return depth

    def read_forms(self, directory):
        """The words of each part of speech, and the irregular forms of words: {part of speech: {form: words}}."""
        self.other_words = {line.split(' ', 1)[0] for part in ('verb', 'adj', 'adv') for line in
                            (directory / f'index.{part}').read_text(encoding='utf8').splitlines()}
        self.irregular = {part: collections.defaultdict(list) for part in ('noun', 'verb', 'adj', 'adv')}
        for part, forms in self.irregular.items():
            for line in (directory / f'{part}.exc').read_text(encoding='utf8').splitlines():
                forms[line.split()[0]] += line.split()[1:]

    @functools.lru_cache(maxsize=None)
    def bases(self, form, endings=ENDINGS):
        """The words of which `form` may be a form: itself and, where it is irregular or has one of the endings, those without."""
        form = form.lower().replace(' ', '_')
        found = [form]
        for part, forms in self.irregular.items():
            found += forms.get(form, []) if endings is ENDINGS or part == 'noun' else []
        for ending, others in endings:
            if form.endswith(ending) and len(form) - len(ending) > 1 and not form.endswith('ss'):
                found += [form[:-len(ending)] + other for other in others]
        return tuple(word for word in dict.fromkeys(found) if word in self.senses or word in self.other_words)

    @functools.lru_cache(maxsize=None)
    def is_mainly(self, form, keys, known=False):
        """Whether `form`, a noun or its plural, mostly means one of the noun synsets `keys`: by WordNet's counts of all words of which it
        may be a form, over all parts of speech. Where there are hardly any, all of them must be nouns with no other sense (or not `known`)."""
        words = self.bases(form)
        meant = {word: [number for number, key in enumerate(self.senses.get(word, []), 1) if key in keys] for word in self.bases(form, PLURAL)}
        counted = sum(sum(self.counts.get(word, {}).values()) for word in words)
        if known or counted >= FEWEST_COUNTED:
            return sum(self.counts.get(word, {}).get(('1', number), 0) for word in meant for number in meant[word]) > MAINLY * counted
        return bool(words) and all(word not in self.other_words and len(meant.get(word, [])) == len(self.senses[word]) for word in words)

    def senses_of(self, word):
        return self.senses.get(word.lower().replace(' ', '_'), [])


class WordNetSource:
    def __init__(self, wordnet, rows):
        self.net, self.rows, self.pick = wordnet, rows, rows.random

    def text(self, key):
        synset = self.net.synsets[key]
        word, gloss = self.pick.choice(synset.words[:2]), synset.gloss
        forms = [gloss] * 8 + [f'{word}: {gloss}'] * 6 + [f'{word} ({gloss})']
        if self.net.senses_of(word)[:1] == [key]:  # alone it means that
            forms += [word] * 2
        forms += [f'{with_article(word).capitalize()}. {gloss[0].upper()}{gloss[1:]}.']
        return self.pick.choice(forms + ['; '.join([gloss] + synset.examples[:2])] * 2)

    def test_of(self, text):
        return bucket(text, 10) == 0

    def category_rows(self, categories=1600, each=11):
        net = self.net
        fits = lambda key: (40 <= len(net.below(key)) <= 9000 and net.depth(key) >= 3
                            and net.synsets[key].words[0][0].islower() and len(net.synsets[key].words[0]) < 22
                            and net.senses_of(net.synsets[key].words[0])[:1] == [key])
        chosen = [key for key in net.hypernyms if fits(key)]
        self.pick.shuffle(chosen)
        for key in chosen[:categories]:
            below, parent = net.below(key), net.hypernyms[key][0]
            siblings = [item for item in net.below(parent) if item not in below and item != key]
            negative = [item for item in self.pick.sample(net.nouns, 60) if item not in below][:14]
            if len(siblings) > 30 and net.hypernyms.get(parent):
                negative = self.pick.sample(sorted(siblings), 9) + negative[:8]
            held = bucket(key, 8) == 0
            self.kind_rows(key, sorted(below), negative, each, held)

    def can_deny(self, item, key):
        """Whether an item outside a category may be called none of it: its gloss does not name the category, and no sense of its
        words is in it."""
        net, below = self.net, self.net.below(key)
        synset = net.synsets[item]
        shown = ' '.join([synset.gloss, *synset.words[:2], *synset.examples[:2]])
        return (not stem_names(net.synsets[key].words, shown)
                and not any(sense in below for word in synset.words[:2] for sense in net.senses_of(word)))

    def kind_rows(self, key, positive, negative, most, held, name=None):
        words = [word for word in self.net.synsets[key].words[:2] if self.net.senses_of(word)[:1] == [key]] or [name]
        negative = [item for item in negative if self.can_deny(item, key)]
        for item, truth in self.rows.balanced(positive, negative, most):
            text = self.text(item)
            shown = name or (self.pick.choice(words) if self.pick.random() < .25 else words[0])
            self.rows.put(KIND_OF, text, truth, 'wordnet:' + (name or words[0]), 'wordnet', held=held,
                          is_test=self.test_of(text), x=shown)

    def common_rows(self):
        for name, key in COMMON.items():
            self.rows.begin('common:' + name)
            below = self.net.below(key)
            close = self.net.below(COMMON['person']) if name == 'occupation' else ()  # whoever follows one
            negative = [item for item in self.pick.sample(self.net.nouns, 900) if item not in below and item not in close]
            self.kind_rows(key, sorted(below), negative, 150, name in HELD_COMMON, name)

    def topic_rows(self, each=50):
        topics = collections.defaultdict(list)
        for key, synset in self.net.synsets.items():
            for symbol, target, _ in synset.pointers:
                if symbol == ';c':
                    topics[target].append(key)
        topics = {topic: members for topic, members in topics.items() if len(members) >= 12}
        everything = [(topic, key) for topic, members in topics.items() for key in members]
        for topic, members in topics.items():
            self.rows.begin('topic:' + topic)
            related = self.net.below(topic) | {topic} | {other for other in topics if topic in self.net.below(other)}
            shown = lambda key: ' '.join([self.net.synsets[key].gloss, *self.net.synsets[key].words[:2], *self.net.synsets[key].examples])
            negative = [key for other, key in self.pick.sample(everything, 120) if other not in related and key not in members
                        and not stem_names(self.net.synsets[topic].words, shown(key))]
            for key, truth in self.rows.balanced(list(members), negative, each):
                synset = self.net.synsets[key]
                head = self.pick.choice(synset.words[:2]) + ': ' if self.pick.random() < .5 else ''
                text = head + '; '.join([synset.gloss] + synset.examples[:self.pick.randint(0, 2)])
                if len(text) < SHORTEST_ON_TOPIC:
                    continue
                name = self.net.synsets[topic].words[0]
                self.rows.put(ABOUT, text, truth, 'topic:' + name, 'wordnet', held=bucket(topic, 6) == 0,
                              is_test=self.test_of(text), x=name)

    def definition_rows(self, count=13000):
        keys = [key for key, synset in self.net.synsets.items() if len(synset.gloss) > 15]
        similar = collections.defaultdict(list)
        for key in keys:
            similar[key[0], self.net.synsets[key].lexicographer].append(key)
        for number, key in enumerate(self.pick.sample(keys, count)):
            synset = self.net.synsets[key]
            truth = self.pick.random() < .5
            pool = similar[key[0], synset.lexicographer] if self.pick.random() < .6 else keys
            word = self.pick.choice(self.net.synsets[key if truth else self.pick.choice(pool)].words)
            if not truth and word in synset.words:
                continue
            if number % 2:
                self.rows.put(DEFINES, synset.gloss, truth, 'definition', 'wordnet', is_test=self.test_of(synset.gloss),
                              x=word)
            else:
                self.rows.put_pair(PAIR_DEFINES, (synset.gloss, word), truth, 'pair:definition',
                                   is_test=self.test_of(synset.gloss))
        self.synonym_rows(keys, similar)

    def synonym_rows(self, keys, similar):
        several = [key for key in keys if len(self.net.synsets[key].words) > 1 and key[0] != 'n']
        for key in self.pick.sample(several, 700):
            synset = self.net.synsets[key]
            first, second = self.pick.sample(synset.words, 2)
            other = self.pick.choice(similar[key[0], synset.lexicographer])
            truth = self.pick.random() < .5
            if truth or other != key:
                partner = second if truth else self.pick.choice(self.net.synsets[other].words)
                self.rows.put_pair(PAIR_SYNONYM, (first, partner), truth, 'pair:synonym', is_test=self.test_of(first))
        for key, synset in self.net.synsets.items():
            for symbol, target, numbers in synset.pointers:
                if symbol == '!' and key[0] in 'av' and bucket(key, 4) == 0:
                    self.opposite_rows(key, target, numbers, similar)

    def opposite_rows(self, key, target, numbers, similar):
        synset = self.net.synsets[key]
        first = synset.words[int(numbers[:2], 16) - 1]
        second = self.net.synsets[target].words[int(numbers[2:], 16) - 1]
        self.rows.put_pair(PAIR_OPPOSITE, (first, second), True, 'pair:opposite', is_test=self.test_of(first))
        other = self.net.synsets[self.pick.choice(similar[key[0], synset.lexicographer])].words[0]
        wordings = PAIR_OPPOSITE if self.pick.random() < .5 else PAIR_SYNONYM
        partner = other if wordings is PAIR_OPPOSITE else second
        self.rows.put_pair(wordings, (first, partner), False, 'pair:opposite', is_test=self.test_of(first))

    def fact_rows(self, count=9000):
        net = self.net
        for number in range(count):
            key = self.pick.choice(net.nouns)
            word, parents = net.synsets[key].words[0], net.hypernyms[key]
            if not parents or not word[0].islower() or net.senses_of(word)[:1] != [key]:
                continue
            parent = parents[0]
            if self.pick.random() < .5 and net.hypernyms.get(parent):
                parent = net.hypernyms[parent][0]
            truth = self.pick.random() < .5
            if not truth:
                parent = (net.hypernyms[self.pick.choice(net.nouns)][:1] or [parent])[0]
                name = net.synsets[parent].words[0]
                if any(a in net.below(b) or a == b for a in net.senses_of(word) for b in net.senses_of(name)):
                    continue
            self.fact_row(word, net.synsets[parent].words[0], truth, number % 2)

    def fact_row(self, word, category, truth, as_text):
        if not as_text:
            self.rows.put_pair(PAIR_KIND, (word, category), truth, 'pair:kind', is_test=self.test_of(word))
            return
        text = self.pick.choice([f'{with_article(word).capitalize()} is {with_article(category)}.',
                                 f'{with_article(word).capitalize()} is a kind of {category}.',
                                 f'{word.capitalize()} is a type of {category}.'])
        self.rows.put(FACT, text, truth, 'fact', 'wordnet', is_test=self.test_of(text))

    def make(self):
        self.rows.run(self.category_rows, self.common_rows, self.topic_rows, self.definition_rows, self.fact_rows)
