"""The product's `plain` prompt layout (src/text/prompt.h) as token ids: each piece is tokenised alone, ids are concatenated."""
import functools

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

INSTRUCTION = '\nEvaluate True or False for the following question:\n'
CUE = '\nANSWER:'
TRUE_IDS, FALSE_IDS = (2787, 3635), (4245, 4178)  # True, ␣True; False, ␣False
MOST_TEXT_TOKENS = 940  # training rows only; the product never cuts


def make_tokenizer(metadata):
    """Byte-level BPE from a GGUF's vocabulary with the `smollm` splitter. Text never becomes a control token."""
    if metadata['tokenizer.ggml.pre'] != 'smollm':
        raise ValueError('the splitter of ' + metadata['tokenizer.ggml.pre'] + ' is not supported')
    tokens = metadata['tokenizer.ggml.tokens']
    merges = [tuple(merge.split(' ')) for merge in metadata['tokenizer.ggml.merges']]
    unknown = tokens[metadata['tokenizer.ggml.unknown_token_id']]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def make_encoder(metadata):
    """A function from a piece of text to its ids, which remembers: questions and texts come back often."""
    tokenizer = make_tokenizer(metadata)
    return functools.lru_cache(1 << 18)(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def pieces(row):
    """[(text, is data)] of a row (a dict as in the .jsonl files)."""
    partner, anchor = row.get('partner'), row.get('anchor', 0)
    question = INSTRUCTION + row['question']
    if partner is None:
        return [('DOCUMENT:\n', False), (row['text'], True), (question + CUE, False)]
    other = 1 - anchor
    if row.get('columns'):
        return [(f'DOCUMENT {{{anchor}}}:\n', False), (row['text'], True), (f'\nDOCUMENT {{{other}}}:\n', False),
                (partner, True), (question + CUE, False)]
    return [('DOCUMENT:\n', False), (row['text'], True),
            (f'\n(The document above is DOCUMENT {{{anchor}}}.)' + question, False),
            (f'\nDOCUMENT {{{other}}}:\n', False), (partner, True), (CUE, False)]


def token_pieces(encode, row, most_text=None):
    """The ids of each piece."""
    cut = lambda ids, is_data: ids[:most_text] if is_data and most_text else ids
    return [cut(encode(text), is_data) for text, is_data in pieces(row)]


def token_ids(encode, row, most_text=None):
    return [token for piece in token_pieces(encode, row, most_text) for token in piece]


def likelihood_parts(encode, row, most_text=None):
    """(head, text, between, scored) ids: `scored` is what the text should make likelier, the question or the partner."""
    head, text, *between = token_pieces(encode, row, most_text)
    if row.get('partner') is not None and not row.get('columns'):
        between.pop()
    *between, scored = between
    return head, text, [token for piece in between for token in piece], scored
