"""Rows on what a short text mentions: kinds of things, by the senses of its words, and single words."""
import pathlib
import re

from rows import bucket
from source_wordnet import COMMON
from wording import MENTIONS

BANK = pathlib.Path(__file__).parent / 'banks' / 'homographs.txt'
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
MOST_BESIDE_OTHERS = 7500
HELD_MENTIONED = ('weapon', 'clothing', 'sport')
# Kinds of things that are mostly named by their own names.
PLACES = ('city', 'country', 'body_of_water', 'mountain')
# Kinds of things that WordNet draws more narrowly than people: a text with something of the wider kind is no FALSE row.
VAGUE = ('professional', 'artist', 'scientist', 'machine', 'tool', 'document', 'publication', 'ceremony', 'shop', 'school', 'criminal', 'liquid', 'medicine',
         'weapon', 'furniture', 'fabric', 'crime')
# Words without a sense in WordNet, or with one that nobody means: a text never mentions a thing by them.
FUNCTION_WORDS = frozenset(
    'am are is was were be been being do does did done doing has have had having may might can could will would shall should must ought '
    'the and nor but not yet for than then thus though although because while unless until whether since when whenever where why how '
    'what which who whom whose that this these those his her hers him its our ours their theirs them they she you your yours mine '
    'all any both each either every few many more most much neither none other another some such same several own '
    'about above across after against along among around before behind below beneath beside between beyond down during except from '
    'into like near off onto out over past per through toward towards under upon via with within without too very just only also '
    'even ever never always often here there now once again one two three let lets get got else via etc'.split())
WORD = re.compile(r"(?<![\w-])[A-Za-z]{3,}(?![\w-])(?!['’](?!s\b))")  # no part of a compound or of a contraction
CLAUSE_START = re.compile(r'(?:^|[.!?:;"\n(\[*-]|--)\s*["\'`(]*$')


def words_of(text):
    return set(re.findall(r'[a-z]{3,}', text.lower()))


def listed_homographs():
    """Words that are counted under a kind of thing and mostly mean something else."""
    lines = BANK.read_text(encoding='utf8').splitlines()
    return frozenset(word for line in lines if line[:1] != '#' for word in line.split())


class MentionSource:
    def __init__(self, wordnet, texts, others, rows):
        """`texts`: everyday sentences, in which a tree is a plant; in the `others`, descriptions of software, it is none."""
        self.net, self.pool, self.others, self.rows, self.pick = wordnet, texts, others, rows, rows.random
        self.homographs = listed_homographs()

    def put(self, text, truth, kind, **options):
        self.rows.put(MENTIONS, text, truth, kind, 'fortunes', is_test=bucket(text, 10) == 0, **options)

    def tokens(self, text):
        """[(token as written, whether it begins a clause)]"""
        return [(match[0], bool(CLAUSE_START.search(text[max(0, match.start() - 8):match.start()])))
                for match in WORD.finditer(text)]

    def is_meant(self, token, begins, members, names):
        """Whether a token, one of the proper `names` or written small, mainly means one of the synsets `members`. What a capital at the
        beginning of a clause means is left open."""
        lower = token.lower()
        if lower in self.homographs:
            return False
        if token != lower:
            return not begins and token in names
        return lower not in FUNCTION_WORDS and self.net.is_mainly(token, members)

    def mention_rows(self, each=140, sampled=3000):
        categories = [(name, phrase, COMMON[name]) for name, phrase in MENTIONED.items()]
        categories += [(word, phrase, self.net.senses[word][sense]) for (word, sense), phrase in MENTIONED_SENSES.items()]
        tokens = {text: self.tokens(text) for text in self.pool}
        for name, phrase, key in categories:
            self.rows.begin('mention:' + name)
            members, proper, anyhow = self.members(name, key)
            positive = [text for text in self.pool if any(self.is_meant(*token, members, proper) for token in tokens[text])]
            negative = [text for text in self.pick.sample(self.pool, sampled) if not self.may_name(text, anyhow)]
            for text, truth in self.rows.balanced(positive, negative, each):
                self.put(text, truth, 'mention:' + name, held=name in HELD_MENTIONED, x=phrase)

    def members(self, name, key):
        """(synsets of the category without persons and places that are cases of it, its proper names, all words that come near it)."""
        net = self.net
        all_below = net.below(key) | {key}
        members = frozenset(item for item in all_below if item not in net.instances)
        named = all_below if name in PLACES else members
        proper = {word for item in named for word in net.synsets[item].words if word[0].isupper() and net.is_mainly(word, named, known=True)}
        touching = set(all_below) | (net.below(net.hypernyms[key][0]) if name in VAGUE else set())
        for item in list(touching):
            touching.update(target for symbol, target, _ in net.synsets[item].pointers if symbol in ('+', '=', '\\'))
        return members, proper, {word.lower().replace(' ', '_') for item in touching for word in net.synsets[item].words}

    def may_name(self, text, anyhow):
        words = re.findall(r'[a-z]{2,}', text.lower())
        pairs = {f'{one}_{other}' for one, other in zip(words, words[1:])}
        return any(base in anyhow for word in {*words, *pairs} for base in self.net.bases(word))

    def word_rows(self, count=6000):
        vocabulary = {word for word in self.net.senses if len(word) > 4 and '_' not in word}
        texts = self.pool[:MOST_BESIDE_OTHERS] + self.others
        for _ in range(count):
            text, other = self.pick.choice(texts), self.pick.choice(texts)
            truth = self.pick.random() < .5
            words = sorted(words_of(text if truth else other) & vocabulary)
            words = [word for word in words if truth or word not in text.lower()]
            if words:
                self.put(text, truth, 'mention word', x=self.pick.choice(words))

    def make(self):
        self.rows.run(self.mention_rows, self.word_rows)
