"""The many ways to ask one thing. Each relation has wordings for training, others for tests, and negated ones."""
import dataclasses
import re

from rows import filled


@dataclasses.dataclass
class Wordings:
    train: list
    test: list
    negated: list = dataclasses.field(default_factory=list)
    negated_share: float = .08


def wordings(train, test, negated='', share=.08):
    cut = lambda text: [part.strip() for part in text.split('|') if part.strip()]
    return Wordings(cut(train), cut(test), cut(negated), share)


IS_A = wordings(
    'Is this {x}?|Is the thing described {x}?|Does the text describe {x}?|This is {x}.|The text describes {x}.'
    '|the item is {x}|Check whether the document is {x}.|Decide if this describes {x}.|Is it {x}?|describes {x}'
    '|Would you call this {x}?|What is described here is {x}.|Is the document {x}?|Say whether this is {x}.|it is {x}'
    '|Is the document about {x}?|True if it is {x}.|{x}',
    'Is what the document describes {x}?|The subject of this text is {x}.'
    '|Determine whether the thing in question is {x}.|Could this be called {x}?',
    'This is not {x}.|Is this something other than {x}?|The text does not describe {x}.')
TEXT_IS = wordings(
    'Is this {x}?|This is {x}.|Is the text {x}?|the document is {x}|Check whether the document is {x}.|Is it {x}?'
    '|Would you call this {x}?|Say whether this is {x}.|it is {x}|Does the text look like {x}?|{x}|True if this is {x}.'
    '|What we have here is {x}.|Is the message {x}?|Could it be {x}?',
    'Is what we read here {x}?|Determine whether the text in question is {x}.|One would classify the document as {x}.',
    'This is not {x}.|Is this anything other than {x}?|The text is not {x}.')
KIND_OF = wordings(
    'Is this a kind of {x}?|Is the thing described a kind of {x}?|Does the text describe some sort of {x}?'
    '|This is a type of {x}.|It is a {x}.|Is it {x}?|a kind of {x}|Is this a {x}?|Does the definition fit a {x}?'
    '|Decide whether this is a type of {x}.|Is the described thing an example of {x}?'
    '|Does this belong to the category {x}?',
    'Is this an instance of {x}?|What is described is a kind of {x}.'
    '|Determine if the described thing falls under {x}.|Could one count this as {x}?',
    'This is not a kind of {x}.|It is no {x}.')
ABOUT = wordings(
    'Is this about {x}?|Is the text about {x}?|This is about {x}.|Does it deal with {x}?|The topic is {x}.|about {x}'
    '|Does this text discuss {x}?|The document concerns {x}.|Check if the text is related to {x}.|Is its subject {x}?'
    '|Does this have to do with {x}?|Is the main topic {x}?|it is related to {x}|topic: {x}'
    '|Tell me if this is on the subject of {x}.|Is the document about {x}?|True if the text is about {x}.',
    'Is this passage about {x}?|Does this document have {x} among its themes?|The text relates to {x}.'
    '|Would someone interested in {x} find this relevant?',
    'This is not about {x}.|The text has nothing to do with {x}.')
MENTIONS = wordings(
    'Does the text mention {x}?|mentions {x}|{x} is mentioned.|Is {x} mentioned?|The text speaks of {x}.'
    '|Does {x} occur in the document?|Does the author refer to {x}?|Look for {x} in the text.'
    '|There is a mention of {x}.|Is there anything about {x} in it?|Check if {x} is mentioned.',
    'Does this document refer to {x}?|Can {x} be found in the text?|The passage names {x}.|Is {x} brought up?',
    '{x} is not mentioned.|The text says nothing about {x}.')
FACT = wordings(
    'Is this true?|Is the statement true?|The statement is true.|Is this claim true or false?|Is what it says right?'
    '|Is that so?|Is this a fact?|the claim is right|Check whether the statement holds.',
    'Is this statement correct?|The sentence is factually accurate.|Does the statement agree with reality?',
    'The statement is false.|Is this wrong?')
DEFINES = wordings(
    'Is this a definition of {x}?|Does the text define {x}?|This is the meaning of {x}.|Does it describe {x}?'
    '|the definition fits the word {x}|Is {x} the word for this?|Check if this explains the word {x}.'
    '|Is this what {x} means?',
    'Would a dictionary print this under {x}?|Does the word {x} match this description?'
    '|The explanation is of the term {x}.', 'This is not the meaning of {x}.')
SOME_IS = wordings(
    'Is one of the described programs {x}?|Does the document describe {x} somewhere?|One of the items is {x}.'
    '|Is there {x} in the list?|mentions {x}',
    'Can {x} be found among the described items?|At least one of the things described is {x}.')
SOME_ABOUT = wordings(
    'Is any part of it about {x}?|Does the document mention {x}?|One of the items is about {x}.'
    '|Some of the text deals with {x}.|Does any of the descriptions concern {x}?',
    'Does the document touch on {x} anywhere?|There is something about {x} in this text.')

PAIR_DEFINES = wordings(
    'Does the description in {0} fit the word {1}?|Is {0} a definition of {1}?|{0} describes {1}.'
    '|Does {0} define the word in {1}?|Is {1} the word that {0} defines?|The word {1} means {0}.|Do {0} and {1} match?',
    'Does {1} name what {0} describes?|{1} is the right term for {0}.')
PAIR_ABOUT = wordings(
    'Is {0} about {1}?|Is {0} about the subject in {1}?|The topic of {0} is {1}.|Does {0} belong to the category {1}?'
    '|Does {0} deal with {1}?|{0} is related to {1}.|Does {1} describe what {0} is about?|{1} is the right label for {0}.',
    'Is {0} about the topic in {1}?|Should {0} be filed under {1}?')
PAIR_SUMMARY = wordings(
    'Is {1} a summary of {0}?|Do {0} and {1} describe the same thing?|Does the title {1} fit the text {0}?'
    '|{0} and {1} are about the same program.|Is {1} a heading for {0}?|Does {1} match {0}?',
    'Could {1} be the headline of {0}?|Are {0} and {1} about one and the same thing?')
PAIR_SYNONYM = wordings(
    'Do {0} and {1} mean the same?|Are {0} and {1} synonyms?|{0} has the same meaning as {1}.'
    '|Is {1} another word for {0}?',
    'Could one replace {0} by {1} without changing the meaning?|{0} and {1} are equivalent.')
PAIR_OPPOSITE = wordings('Are {0} and {1} opposites?|{0} is the opposite of {1}.',
                         'Does {0} mean the contrary of {1}?')
PAIR_KIND = wordings(
    'Is {0} a kind of {1}?|{0} is a type of {1}.|Does {0} belong to the category {1}?|Is {0} an example of {1}?',
    'Would you file {0} under {1}?|Is {1} the right category for {0}?')
PAIR_CLAIM = wordings(
    'Does {0} support the claim {1}?|{1} is true of {0}.|Does {0} say that {1}?|Is the statement {1} right, given {0}?'
    '|According to {0}, {1} holds.|Is {1} a correct remark about {0}?|{0} proves {1}.',
    'Can {1} be concluded from {0}?|Judging by {0}, is {1} correct?', 'Does {0} contradict {1}?', .05)
PAIR_TOPIC = wordings(
    'Are {0} and {1} about the same topic?|{0} and {1} deal with the same subject.|Do {0} and {1} share a topic?'
    '|Is {1} on the same subject as {0}?', 'Would {0} and {1} appear in the same section of a newspaper?',
    'Are {0} and {1} about different subjects?', .1)
PAIR_SAME_SORT = wordings(
    'Are {0} and {1} the same kind of text?|{0} and {1} are of the same sort.|Do {0} and {1} serve the same purpose?'
    '|{1} is the same type of message as {0}.', 'Would you put {0} and {1} into the same category?',
    'Are {0} and {1} different kinds of text?', .1)
PAIR_SAME_ISSUE = wordings(
    'Do {0} and {1} have the same problem?|{0} and {1} are about the same request.|Is {1} the same issue as {0}?',
    'Could one answer serve both {0} and {1}?')
PAIR_TRANSLATION = wordings(
    'Is {1} a translation of {0}?|{0} and {1} say the same in two languages.|Does {1} mean the same as {0}?',
    'Would a translator render {0} as {1}?')
PAIR_BUYS = wordings(
    'Would the person in {0} like the product in {1}?|Does {1} suit the interests of {0}?|Should we offer {1} to {0}?'
    '|{1} is a good present for {0}.|Does {1} match the needs in {0}?|{0} could use this: {1}|{0} may want {1}.'
    '|{0} is likely to buy {1}|Is {1} useful for {0}?|{1} would interest {0}.|The customer {0} needs the product {1}.'
    '|{0} will probably purchase this: {1}|Is {0} a possible buyer of {1}?|Would {0} be interested in {1}?'
    '|Does {0} have any use for {1}?|{0} has a reason to order {1}.|{1} is the right thing for {0}.|Would {1} solve a problem of {0}?'
    '|For the customer {0} we recommend {1}.|{0} and {1} go well together.|{0} would be glad of {1}.',
    'Is {1} something the customer in {0} might buy?|{0} might buy this: {1}|Would a shop recommend {1} to {0}?')

_V_TRAIN = ('Does the {s} {v}?|The {s} {v3}.|the {s} {v3}|{v3}|Check whether the {s} {v3}.'
            '|Is it true that the {s} {v3}?|Would you say that the {s} {v3}?|Tell me if the {s} {v3}.'
            '|Can we say that the {s} {v3}?|In this text the {s} {v3}.|Decide if the {s} {v3}'
            '|Is there any sign that the {s} {v3}?|True if the {s} {v3}.|Does the {s} of the document {v}?'
            '|Does the {s} {v}?|The {s} {v3}.|Do we have a {s} here who {v3}?|Is this a case in which the {s} {v3}?'
            '|We are looking for texts in which the {s} {v3}.|Please find out whether the {s} {v3}.')
_V_TEST = ('Can one conclude that the {s} {v3}?|Determine whether the {s} {v3}.'
           '|Judging by the document, does the {s} {v}?|One can read here that the {s} {v3}.')
_V_NEGATED = 'The {s} does not {v}.|Is it false that the {s} {v3}?'
_J_TRAIN = ('Is the {s} {j}?|The {s} is {j}.|{j}|Does the {s} sound {j}?|Check if the {s} is {j}.'
            '|The {s} seems to be {j}.|Is it true that the {s} is {j}?|Would you call the {s} {j}?'
            '|Do you have the impression that the {s} is {j}?|Find the texts whose {s} is {j}.|Is this a {s} who is {j}?')
_J_TEST = 'Could the {s} be described as {j}?|The {s} comes across as {j}.|Determine whether the {s} is {j}.'
_J_NEGATED = 'The {s} is not {j}.'
_S_TRAIN = ('Is it true that {c}?|{C}.|{c}|Does the text say that {c}?|According to the text, {c}.|Check whether {c}.'
            '|True if {c}.|{Q}|{Q}|Can you tell from the document that {c}?|We learn that {c}.'
            '|Do you agree that {c}?|Is it right to say that {c}?|Find out if {c}.|It follows that {c}.'
            '|Please tell me whether {c}.|Would a careful reader say that {c}?')
_S_TEST = 'Does the document imply that {c}?|One can infer that {c}.|Determine if {c}.'
_S_NEGATED = 'It is not said that {c}.|Is it untrue that {c}?'


def third_person(verb_phrase):
    """`ask for a refund` -> `asks for a refund`."""
    verb, _, rest = verb_phrase.partition(' ')
    irregular = {'have': 'has', 'be': 'is', 'do': 'does', 'go': 'goes'} | {modal: modal for modal in 'would could should will can may must'.split()}
    if verb in irregular:
        verb = irregular[verb]
    elif re.search(r'(s|x|z|ch|sh)$', verb):
        verb += 'es'
    elif re.search(r'[^aeiou]y$', verb):
        verb = verb[:-1] + 'ies'
    else:
        verb += 's'
    return f'{verb} {rest}'.strip()


def _of_being(question):
    """`Does the writer be late?` -> `Is the writer late?`"""
    question = re.sub(r'\b([dD])oes (the [^?]*?) be ', lambda match: f"{'I' if match[1] == 'D' else 'i'}s {match[2]} ", question)
    return question.replace('does not be ', 'is not ')


def inverted(clause):
    """`the delivery is late` -> `Is the delivery late?`; other clauses are asked with `Is it true that`."""
    match = re.match(r'(.*?)(?<!\ba)(?<!\bthe)(?<!\bno) (is|was|were|has|are|will) (.*)', clause)
    if (not match or re.search(r'\b(that|who|which|what|whose|where|how|if|whether|when|why)\b', match.group(1))
            or ' or ' in match.group(3) and re.search(r' (is|was|has) ', match.group(3))):
        return f'Is it true that {clause}?'
    subject, verb, rest = match.groups()
    return f'{verb.capitalize()} {subject} {rest}?'


def _fill(patterns, values):
    questions = patterns.split('|')
    for name, value in values.items():
        questions = [filled(question, value, name) for question in questions]
    return questions


def phrase_wordings(style, phrases, test_phrases, subjects):
    """Wordings of one phrase style (v, j, s; x and a are noun phrases) over its paraphrases and subjects."""
    if style in 'xa':
        base = TEXT_IS if style == 'x' else ABOUT
        fill = lambda patterns, names: [p.replace('{x}', name) for p in patterns for name in names]
        return Wordings(fill(base.train, phrases), fill(base.test, test_phrases or phrases), fill(base.negated, phrases))
    patterns = {'v': (_V_TRAIN, _V_TEST, _V_NEGATED), 'j': (_J_TRAIN, _J_TEST, _J_NEGATED),
                's': (_S_TRAIN, _S_TEST, _S_NEGATED)}[style]
    out = ([], [], [])
    for part, pattern in enumerate(patterns):
        for phrase in (test_phrases or phrases) if part == 1 else phrases:
            for subject in subjects if style != 's' else subjects[:1]:
                values = {'s': subject, 'v3': third_person(phrase), 'v': phrase, 'j': phrase, 'c': phrase,
                          'C': phrase[0].upper() + phrase[1:], 'Q': inverted(phrase)}
                out[part].extend(map(_of_being, _fill(pattern, values)))
    return Wordings(*out)
