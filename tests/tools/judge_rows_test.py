"""The rules by which rows of judge data get their labels and questions: judge_rows_test.py [unittest arguments]"""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/judge"))

import judge_data  # noqa: E402
import naming  # noqa: E402
import source_debian  # noqa: E402
import source_reviews  # noqa: E402
from bank import read_bank, read_more  # noqa: E402
from rows import Collector, filled  # noqa: E402
from source_scenes import read_scenes  # noqa: E402
from wording import Wordings, phrase_wordings  # noqa: E402

BANKS, TRAINING_BANKS = judge_data.BANKS, judge_data.TRAINING_BANKS


def rule(tag):
    for name in ("debtags", "sections", "fortunes"):
        for found in source_debian.read_rules(name):
            if found.tag == tag:
                return found
    raise KeyError(tag)


class LabelTest(unittest.TestCase):
    def test_a_topic_that_is_named_is_not_denied(self):
        self.assertFalse(naming.can_deny(rule("works-with-format::pdf"), "Turns SVG drawings into PDF documents."))
        self.assertTrue(naming.can_deny(rule("works-with-format::pdf"), "A clock for the panel."))

    def test_what_a_thing_is_may_be_denied_where_it_is_named(self):
        self.assertTrue(naming.can_deny(rule("x11::font"), "A tool that converts fonts."))

    def test_a_property_that_is_not_stated_is_not_affirmed(self):
        self.assertFalse(naming.can_affirm(rule("suite::gnome"), "Document viewer"))
        self.assertTrue(naming.can_affirm(rule("suite::gnome"), "Document viewer for GNOME"))
        self.assertTrue(naming.can_affirm(rule("use::searching"), "Where did I put it?"), "an open topic needs no word")

    def test_names_begin_words(self):
        self.assertFalse(naming.names(rule("protocol::irc"), "a virtual circus"))
        self.assertTrue(naming.names(rule("devel::lang:c++"), "bindings for C++"))
        self.assertFalse(naming.names(rule("devel::lang:c"), "written in C++"))

    def test_every_listed_name_belongs_to_a_rule(self):
        known = {found.tag for name in ("debtags", "sections", "fortunes") for found in source_debian.read_rules(name)}
        self.assertEqual(set(naming._listed()) - known, set())

    def test_a_category_is_named_by_any_of_its_words(self):
        self.assertTrue(naming.stem_names(["beginning"], "marks the beginnings of each month"))
        self.assertFalse(naming.stem_names(["palm"], "an open hand"))


class QuestionTest(unittest.TestCase):
    def test_articles(self):
        self.assertEqual(filled("Is this a {x}? A {x}.", "amount"), "Is this an amount? An amount.")
        self.assertEqual(filled("a {x} of {x}", "unit"), "a unit of unit")

    def test_being_is_asked_with_is(self):
        asked = phrase_wordings("v", ["be taken aback"], ["be taken aback"], ["writer"])
        for question in asked.train + asked.test + asked.negated:
            self.assertNotIn(" be ", question)
        self.assertIn("Is the writer taken aback?", asked.train)


def phrases_of(bank, is_held=(False, True)):
    """(phrases that train, phrases of tests) of a bank's labels."""
    groups = [group for label in bank.labels.values() if label.held in is_held for group in label.phrases.values()]
    return {text for train, _ in groups for text in train}, {text for _, test in groups for text in test}


class TrainingBankTest(unittest.TestCase):
    """banks/training/ holds nothing of what the tests ask or show."""

    tested = Collector(0)

    def test_no_sentence_of_the_banks(self):
        for name in judge_data.MORE_BANK_ROWS:
            known = read_bank(BANKS / f"{name}.txt")
            more = read_more(TRAINING_BANKS / f"{name}.txt", known)
            sentences = lambda bank: {text for label in bank.labels.values() for text in label.plants + label.denies}
            self.assertEqual(sentences(more) & sentences(known), set(), name)

    def test_no_phrase_of_the_tests(self):
        asked = set()
        for path in BANKS.glob("*.txt"):
            if path.stem in judge_data.BANK_ROWS:
                train, test = phrases_of(read_bank(path), is_held=(True,))
                asked |= train | test | phrases_of(read_bank(path))[1]
        new = {text for scene in read_scenes(TRAINING_BANKS / "scenes.txt") for text in scene.true + scene.false}
        for name in judge_data.MORE_BANK_ROWS:
            known = read_bank(BANKS / f"{name}.txt")
            more = read_more(TRAINING_BANKS / f"{name}.txt", known)
            new |= {text for label in more.labels.values() if label.name not in known.labels
                    for group in label.phrases.values() for text in group[0] + group[1]}
        self.assertEqual(new & asked, set())

    def test_an_unseen_kind_cannot_be_given_more_texts(self):
        known = read_bank(BANKS / "kinds.txt")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kinds.txt"
            path.write_text("[found]\n+ A glove lay on the fence.\n- My glove is gone.\n")
            with self.assertRaisesRegex(ValueError, "unseen kind"):
                read_more(path, known)

    def test_no_need_or_product_of_a_tested_need(self):
        needs = [need for need in read_scenes(BANKS / "needs.txt") if self.tested.is_test_text(need.text, 8)]
        parts = lambda scenes: {text for need in scenes for text in [need.text, *need.true, *need.false]}
        self.assertGreater(len(needs), 5)
        self.assertEqual(parts(read_scenes(TRAINING_BANKS / "needs.txt")) & parts(needs), set())
        goods = lambda bank: {text for label in bank.labels.values() for text in label.plants + label.products}
        interests = {text for text in goods(read_bank(BANKS / "interests.txt")) if self.tested.is_test_text(text, 6)}
        more = parts(read_scenes(TRAINING_BANKS / "needs.txt")) | goods(read_bank(TRAINING_BANKS / "interests.txt"))
        self.assertEqual(more & interests, set())

    def test_no_phrase_or_wording_of_the_reviews(self):
        (_, old), (_, new) = source_reviews.read_subjects(BANKS), source_reviews.read_subjects(TRAINING_BANKS)
        for name, texts in new.items():
            self.assertEqual(set(texts) & set(old.get(name, [])), set(), name)
        tested = {text for value in vars(source_reviews).values() if isinstance(value, Wordings) for text in value.test}
        self.assertEqual({text for name in new if name.startswith("ask_") for text in new[name]} & tested, set())

    def test_all_rows_train_and_none_asks_in_a_test_wording(self):
        more = judge_data.collect_more(1, ["The cat sat on the mat."] * 20)
        self.assertEqual([len(more.rows[split]) for split in ("word", "kind")], [0, 0])
        frames = ("According to the dates", "Of the ", "The sum of both", "Is this an endorsement", "One can infer that")
        self.assertEqual([row.question for row in more.rows["train"] if row.question.startswith(frames)], [])


if __name__ == "__main__":
    unittest.main()
