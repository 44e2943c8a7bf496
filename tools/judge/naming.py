"""Whether a text names what a question asks for, so that labels which sources give sparingly are not taken at their word.

People tag a package by what they know of it: a tag can be missing though its text speaks of nothing else, and it can be there though the
text says nothing of it. Hence: a row about X is FALSE only where the text does not name X, and of properties that a text either states or
leaves open (a language, a format, a desktop), TRUE only where it does.
"""
import functools
import pathlib
import re

BANK = pathlib.Path(__file__).parent / 'banks' / 'names.txt'
# Values of these facets are names and technical properties.
STATED_FACETS = ('suite', 'protocol', 'works-with-format', 'uitoolkit', 'implemented-in', 'culture', 'accessibility', 'admin',
                 'security', 'mail', 'science')
STATED_PREFIXES = ('devel::lang', 'devel::ecma', 'sound::', 'hardware::', 'interface::3d', 'interface::daemon', 'game::', 'web::wiki',
                   'x11::', 'field::', 'made-of::')
# Words of phrases and tags that name nothing in particular.
GENERAL = set('program programs programming something written library module tool tools data files file text with that only other others like '
              'kind development application applications software system systems support service services analysis processing things thing '
              'debian project language languages internet devices reader desktop version output input about'.split())


@functools.cache
def _listed():
    """{tag or topic: expression} of banks/names.txt; `+tag` is what a text must name to be believed TRUE, `-tag` what its heading must not."""
    lines = BANK.read_text(encoding='utf8').splitlines()
    return dict(line.split(' ', 1) for line in lines if line and line[0] != '#')


def _stem(word):
    return word[:-1] if word.endswith('s') and len(word) > 4 else word


@functools.cache
def _expression(tag, phrases):
    words = {_stem(word) for word in re.findall(r'[a-z+.]{3,}', ' '.join(phrases).lower())} - {_stem(word) for word in GENERAL}
    words |= {part for part in re.split(r'[:-]+', tag)[1:] if len(part) > 2 and part not in GENERAL and part != 'lang'}
    listed = _listed().get(tag)
    parts = [re.escape(word) for word in sorted(words)] + ([listed] if listed else [])
    return re.compile(r'(?<![a-z])(?:' + '|'.join(parts) + ')', re.I) if parts else None


def names(rule, text):
    """Whether `text` names what the rule's phrases ask for."""
    expression = _expression(rule.tag, tuple(rule.phrases))
    return bool(expression and expression.search(text))


def is_stated(tag):
    return tag.split('::')[0] in STATED_FACETS or tag.startswith(STATED_PREFIXES)


def can_affirm(rule, text):
    """Whether a TRUE label of the source may be believed of this text."""
    needed = _listed().get('+' + rule.tag)
    if needed and not _matches(needed, text):
        return False
    return not is_stated(rule.tag) or names(rule, text)


def is_something_else(rule, heading):
    """Whether a heading shows that the source files things under the rule that are not what its question asks."""
    other = _listed().get('-' + rule.tag)
    return bool(other and _matches(other, heading))


def _matches(expression, text):
    return re.search('(?<![a-z])(?:' + expression + ')', text, re.I)


def can_deny(rule, text):
    """Whether a missing label may be believed. What a thing is (`isa`) is not what its text names: a tool for fonts is no font."""
    return rule.relation == 'isa' or not names(rule, text)


@functools.lru_cache(maxsize=1 << 14)
def _stems(words):
    stems = [re.escape(_stem(word.lower())[:max(4, len(word) - 3)]) for word in words if len(word) > 2]
    return re.compile('(?<![a-z])(?:' + '|'.join(stems) + ')') if stems else None


def stem_names(words, text):
    """Whether one of `words`, cut to its stem, begins a word of `text`."""
    expression = _stems(tuple(words))
    return bool(expression and expression.search(text.lower()))


@functools.cache
def _tells():
    """{fact: expression} of banks/tells.txt."""
    lines = (BANK.parent / 'tells.txt').read_text(encoding='utf8').splitlines()
    return dict(line.split(' ', 1) for line in lines if line and line[0] != '#')


def may_tell(fact, sentence):
    """Whether a sentence that was not written for a fact may tell of it all the same."""
    expression = _tells().get(fact)
    return bool(expression and _matches(expression, sentence))
