"""The rules by which rows of judge data get their labels and questions: judge_rows_test.py [unittest arguments]"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/judge"))

import naming  # noqa: E402
import source_debian  # noqa: E402
from rows import filled  # noqa: E402
from wording import phrase_wordings  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
