"""Writes src/text's Unicode tables as C++ from Python's unicodedata.

usage: generate_unicode_tables.py OUTPUT.cpp

Ids must equal those of HF `tokenizers` 0.23.3, whose parts follow three versions of Unicode:
  * \\p{L}, \\p{N}, \\s of the split patterns (Oniguruma): 16.0
  * the numeric characters of the Digits pre-tokenizer (Rust): 17.0
  * NFC (unicode-normalization-alignments): 9.0
The constants below lead from any unicodedata of 14.0 to 18.0 (Python 3.11 or later) to exactly these; the digest at the
end fails the build when a newer unicodedata would lead elsewhere.
"""

import hashlib
import sys
import unicodedata

# Letters and numbers of 16.0 that 14.0 lacks, and those of 17.0 and 18.0 that 16.0 lacks.
LETTERS_ADDED = """1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 1123F-11240
11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 11F04-11F10 11F12-11F33 1342F 13441-13446
13460-143FA 16100-1611D 16D40-16D6C 18CFF 1B132 1B155 1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 1E5D0-1E5ED 1E5F0 2B739
2EBF0-2EE5D 31350-323AF"""
LETTERS_LATER = """558 58B-58C 88F C5C CDC 208F 209D-209F A7CE-A7CF A7D2 A7D4 A7DD A7E2 A7F1 AB6C-AB6D 107BB-107BF
10940-10959 10EC5-10EC7 10ED9-10EEE 11B0A 11DB0-11DDB 11DF1 16EA0-16EB8 16EBB-16ED3 16FF2-16FF3 187F8-187FF 18CD6-18CDA
18D09-18D20 18D80-18DF2 18E00-19191 191A0-191D2 1B123-1B128 1B168 1D6A6 1DF1F-1DF24 1DF2B-1DF81 1DF90-1DF96 1DFCD-1DFFF
1E6C0-1E6DE 1E6E0-1E6E2 1E6E4-1E6E5 1E6E7-1E6ED 1E6F0-1E6F4 1E6FE-1E6FF 2B73A-2B73F 2B81E 2CEA2-2CEAD 323B0-33479
3D000-3FC3F"""
NUMBERS_ADDED = """10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 16D70-16D79 1CCF0-1CCF9 1D2C0-1D2D3
1E4F0-1E4F9 1E5F1-1E5FA"""
NUMBERS_17 = "11DE0-11DE9 16FF4-16FF6"
NUMBERS_18 = "1246F 12475-1247F 12550-12686"
# Combining marks and canonical compositions that 9.0 lacks.
MARKS_LATER = """5C8-5C9 7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1AF0 1DF6-1DFA A82C 10D24-10D27 10D69-10D6D
10EAB-10EAC 10ECB-10ECF 10EF0-10EFB 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 113CE-113D0 1145E 11839-1183A
1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 1612F 16FF0-16FF1 1D127-1D128 1D250-1D252
1D25B-1D25C 1D25F 1D280-1D281 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF
1E6F5"""
COMPOSITIONS_LATER = """105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 11938 16121-16128 16D68-16D6A"""

EXPECTED_DIGEST = "1fe3055268c0210141b9ff2cbcfa495beae05e0b98670b5f25ddde755142de6d"

LETTER, NUMBER, SPACE, NUMERIC, MARK, NFC_MAYBE = 1, 2, 4, 8, 16, 32  # the bits of text/unicode.h
SURROGATES = range(0xD800, 0xE000)
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
HANGUL_VOWELS_AND_FINALS = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
BLOCK = 128


def parse_ranges(text):
    points = set()
    for item in text.split():
        first, _, last = item.partition("-")
        points.update(range(int(first, 16), int(last or first, 16) + 1))
    return points


def in_category(initial):
    return {c for c in range(0x110000)
            if c not in SURROGATES and unicodedata.category(chr(c))[0] == initial}


def canonical_decomposition(point):
    """The one-step canonical decomposition as a list of code points, or None."""
    text = unicodedata.decomposition(chr(point))
    if not text or text.startswith("<"):
        return None
    return [int(part, 16) for part in text.split()]


def full_decomposition(point, single):
    parts = single.get(point)
    if parts is None:
        return [point]
    return [final for part in parts for final in full_decomposition(part, single)]


class Tables:
    """Properties by code point, and what canonical normalisation needs."""

    def __init__(self):
        later = parse_ranges(COMPOSITIONS_LATER)
        marks_later = parse_ranges(MARKS_LATER)
        self.classes = {}
        for point in range(0x110000):
            klass = unicodedata.combining(chr(point))
            if klass and point not in marks_later:
                self.classes[point] = klass
        single = {}
        for point in range(0x110000):
            parts = canonical_decomposition(point)
            if parts and point not in later and point not in HANGUL_SYLLABLES:
                single[point] = parts
        self.decompositions = {p: full_decomposition(p, single) for p in sorted(single)}
        # A pair composes where its composition is its own NFC (the exclusions are not).
        self.compositions = {tuple(parts): point for point, parts in sorted(single.items())
                             if len(parts) == 2 and unicodedata.normalize("NFC", chr(point)) == chr(point)}
        self.properties = self._properties()

    def _properties(self):
        numbers_18 = parse_ranges(NUMBERS_18)
        numbers_17 = parse_ranges(NUMBERS_17)
        letters = (in_category("L") | parse_ranges(LETTERS_ADDED)) - parse_ranges(LETTERS_LATER)
        numeric = (in_category("N") | parse_ranges(NUMBERS_ADDED) | numbers_17) - numbers_18
        numbers = numeric - numbers_17
        # Python counts the separators 1C to 1F as space; the White_Space property does not.
        spaces = {c for c in range(0x110000) if chr(c).isspace()} - set(range(0x1C, 0x20))
        excluded = {p for p in self.decompositions if p not in self.compositions.values()}
        seconds = {second for _, second in self.compositions} | HANGUL_VOWELS_AND_FINALS
        table = bytearray(0x110000)
        for bit, points in ((LETTER, letters), (NUMBER, numbers), (SPACE, spaces), (NUMERIC, numeric),
                            (MARK, self.classes), (NFC_MAYBE, excluded | seconds)):
            for point in points:
                table[point] |= bit
        return bytes(table)

    def digest(self):
        content = repr((self.properties, sorted(self.classes.items()), sorted(self.decompositions.items()),
                        sorted(self.compositions.items())))
        return hashlib.sha256(content.encode()).hexdigest()


def two_stage(table):
    """(block number of each run of BLOCK values, the distinct blocks in a row)."""
    numbers, blocks, index = {}, [], []
    for start in range(0, len(table), BLOCK):
        block = table[start:start + BLOCK]
        if block not in numbers:
            numbers[block] = len(numbers)
            blocks.extend(block)
        index.append(numbers[block])
    assert len(numbers) <= 256
    return index, blocks


def emit_array(out, declaration, values):
    out.write(f"{declaration} = {{\n")
    for start in range(0, len(values), 20):
        out.write(" ".join(f"{value}," for value in values[start:start + 20]) + "\n")
    out.write("};\n")


def emit(tables, out):
    out.write('#include "text/unicode.h"\n\nnamespace quail::text::unicode {\n')
    for name, table in (("Property", tables.properties),
                        ("CombiningClass", bytes(tables.classes.get(c, 0) for c in range(0x110000)))):
        index, blocks = two_stage(table)
        emit_array(out, f"const std::uint8_t k{name}Index[{len(index)}]", index)
        emit_array(out, f"const std::uint8_t k{name}Blocks[]", blocks)
    pool, entries = [], []
    for point, parts in sorted(tables.decompositions.items()):
        entries.append(f"{{0x{point:X},{len(pool)},{len(parts)}}}")
        pool.extend(parts)
    emit_array(out, "const Decomposition kDecompositions[]", entries)
    out.write(f"const std::size_t kDecompositionCount = {len(entries)};\n")
    emit_array(out, "const char32_t kDecompositionPool[]", pool)
    pairs = [f"{{0x{a:X},0x{b:X},0x{c:X}}}" for (a, b), c in sorted(tables.compositions.items())]
    emit_array(out, "const Composition kCompositions[]", pairs)
    out.write(f"const std::size_t kCompositionCount = {len(pairs)};\n")
    out.write("}  // namespace quail::text::unicode\n")


def main():
    tables = Tables()
    if tables.digest() != EXPECTED_DIGEST:
        sys.exit(f"{sys.argv[0]}: the tables made from Unicode {unicodedata.unidata_version} of this Python are not the "
                 f"expected ones: digest {tables.digest()}, expected {EXPECTED_DIGEST}")
    with open(sys.argv[1], "w", encoding="ascii") as out:
        emit(tables, out)


if __name__ == "__main__":
    main()
