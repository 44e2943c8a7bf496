"""Texts that tokenizers get wrong: all scripts, marks, white space, look-alikes of control tokens."""

import random

SCRIPTS = {
    "ascii": [(0x20, 0x7E)],
    "control": [(0x00, 0x1F), (0x7F, 0x9F)],
    "latin": [(0xA0, 0x24F), (0x1E00, 0x1EFF)],
    "marks": [(0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0xFE20, 0xFE2F)],
    "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "cyrillic": [(0x400, 0x52F), (0x1C80, 0x1C8F)],
    "hebrew": [(0x590, 0x5FF), (0xFB1D, 0xFB4F)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0x860, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)],
    "devanagari": [(0x900, 0x97F), (0xA8E0, 0xA8FF)],
    "indic": [(0x980, 0xDFF)],
    "thai": [(0xE00, 0xE7F)],
    "lao_tibetan": [(0xE80, 0xFFF)],
    "myanmar_georgian": [(0x1000, 0x10FF)],
    "jamo": [(0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF)],
    "hangul": [(0xAC00, 0xD7A3)],
    "ethiopic_khmer_mongolian": [(0x1200, 0x18AF)],
    "punctuation": [(0x2000, 0x206F), (0x3000, 0x303F)],
    "symbols": [(0x2070, 0x2BFF)],
    "kana": [(0x3040, 0x30FF), (0x31F0, 0x31FF), (0x1B000, 0x1B16F)],
    "han": [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2FFFF), (0x30000, 0x323AF)],
    "fullwidth": [(0xFF00, 0xFFEF)],
    "emoji": [(0x1F300, 0x1FAFF), (0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x1F1E6, 0x1F1FF), (0xE0020, 0xE007F)],
    "numbers": [(0x30, 0x39), (0xB2, 0xB3), (0xBC, 0xBE), (0x660, 0x669), (0x2150, 0x218B), (0x2460, 0x249B),
                (0xFF10, 0xFF19), (0x1D7CE, 0x1D7FF), (0x11DE0, 0x11DE9)],
    "historic": [(0x10000, 0x11FFF), (0x12000, 0x143FF), (0x16100, 0x16FFF)],
    "anything": [(0x0, 0xD7FF), (0xE000, 0x10FFFF)],
}

PIECES = [
    " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\u3000", "\u00A0", "\u2028", "\u0085", "\u200B", "\uFEFF", "\u180E",
    "'s", "'S", "'re", "'LL", "'d", "'\u017F", "\u2019s", "''s", "'", " 's",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</tool_call>", "<|im_", "|>", "<s>", "[INST]",
    "e\u0301", "\u00E9", "a\u0323\u0302", "\u1EAD", "\u1100\u1161\u11A8", "\uAC01", "\uAC00\u11A8", "\u0344", "\u212B",
    "\u0928\u093C", "\u0958", "o\u031B\u0301", "q\u0323\u0307", "q\u0307\u0323", "\u0BC7\u0BD7\u0BBE",
    "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F1E9\U0001F1EA", "\u2764\uFE0F", "\U0001F44D\U0001F3FD",
    "0", "12", "345", "6789", "3.14", "1,000", "0000", "12345", " zqxj", " zqxjv", "\uFF11\uFF12", "\u0664\u0665", "\u00BD", "\u2167",
    "hello", " world", "Hello", " THE", "don't", "I'm", "foo_bar", "camelCase", "http://a.b/c?d=e&f", "\x00", "\x01",
    "\u1E9E", "\uFB01", "\uFB05", "\u0130", "\u00DF", "...", "!!!", "--", " = ", "{\"a\": {0}}", "\\n", "$x^2$", "ANSWER:",
    "\U00011938", "\U00011935\U00011930", "\U00016D67\U00016D67", "\u0C3C\u0301", "\u0897\u0323",
]


def random_text(rng):
    """One text: runs of one or several scripts, and pieces between."""
    scripts = rng.sample(list(SCRIPTS), rng.choice((1, 1, 2, 3)))
    parts = []
    for _ in range(rng.randrange(1, 24)):
        choice = rng.random()
        if choice < 0.45:
            parts.append(rng.choice(PIECES))
        elif choice < 0.48:
            parts.append(rng.choice((" ", "\n", "\u3000", "a", "'", "\u0301", "1")) * rng.randrange(1, 90))
        else:
            ranges = SCRIPTS[rng.choice(scripts)]
            for _ in range(rng.randrange(1, 9)):
                first, last = rng.choice(ranges)
                parts.append(chr(rng.randint(first, last)))
    return "".join(c for c in "".join(parts) if not 0xD800 <= ord(c) <= 0xDFFF)


def fuzz_texts(count, seed):
    rng = random.Random(seed)
    return [random_text(rng) for _ in range(count)]


def edge_texts():
    """Fixed texts: each piece alone and between letters, long runs, every code point that matters."""
    texts = ["", "a" * 5000, " " * 3000, " " * 3000 + "x", "\n" * 500, "ab" * 4000, "1" * 300, "\u0301" * 300, "'" * 99]
    texts += PIECES + [f"x{piece}y" for piece in PIECES] + [f" {piece} " for piece in PIECES]
    texts += [f"{a}{b}" for a in PIECES for b in PIECES]
    for start in range(0, 0x110000, 64):
        points = [chr(c) for c in range(start, start + 64) if not 0xD800 <= c <= 0xDFFF]
        if points and start < 0x34000 or start >= 0xE0000:
            texts.append("a ".join(points))
            texts.append("".join(points))
    return texts
