"""The rules by which rows of judge data get their labels and questions: judge_rows_test.py [unittest arguments]"""

import random
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/judge"))

import domain_tests  # noqa: E402
import judge_data  # noqa: E402
import naming  # noqa: E402
import source_debian  # noqa: E402
import source_reviews  # noqa: E402
from bank import fill_slots, read_bank, read_more  # noqa: E402
from rows import Collector, filled  # noqa: E402
from source_amounts import AmountSource  # noqa: E402
from source_marked import MarkedSource, read_marked  # noqa: E402
from source_measures import MeasureSource, more_quantities  # noqa: E402
from source_mentions import MentionSource  # noqa: E402
from source_numbers import quantities  # noqa: E402
from source_scenes import read_scenes  # noqa: E402
from source_wordnet import WordNet  # noqa: E402
from wording import Wordings, inverted, phrase_wordings, third_person  # noqa: E402

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
        self.assertEqual({tag.lstrip("+-") for tag in naming._listed()} - known, set())

    def test_a_dictionary_is_no_processing_of_text(self):
        text = rule("text")
        for heading in ("aspell-fa Persian dictionary for GNU Aspell", "wmanx Manx Gaelic dictionary words", "hyphen-kn Kannada hyphenation patterns"):
            self.assertTrue(naming.is_something_else(text, heading), heading)
        self.assertFalse(naming.is_something_else(text, "enchant spell checker"))
        self.assertTrue(naming.can_affirm(text, "splits text into words"))
        self.assertFalse(naming.can_affirm(text, "a viewer of PDF documents"))

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

    def test_articles_before_slots(self):
        pick = random.Random(0)
        texts = {fill_slots("Works as a {j}.", pick) for _ in range(200)}
        self.assertIn("Works as an accountant.", texts)
        self.assertNotIn("Works as a accountant.", texts)

    def test_clauses_become_questions(self):
        self.assertEqual(inverted("a will is the subject"), "Is a will the subject?")
        self.assertEqual(inverted("something that is lost was found"), "Is it true that something that is lost was found?")

    def test_modal_verbs_have_no_third_person(self):
        self.assertEqual(third_person("would like to pay less"), "would like to pay less")

    def test_many_things_are(self):
        self.assertEqual(source_reviews.agreeing("Is the {x} called good?", "edges"), "Are the {x} called good?")
        self.assertEqual(source_reviews.agreeing("Is the {x} called good?", "glass"), "Is the {x} called good?")


class FactTest(unittest.TestCase):
    """A fact is not denied of a text that may tell of it."""

    def test_two_dates_both_have_a_year_or_neither(self):
        rows = Collector(0)
        amounts = AmountSource(rows, ["The cat sat on the mat."] * 20)
        for number in range(400):
            rows.begin(str(number))
            amounts.order(False)
        years = {len(re.findall(r"\b(?:19|20)\d\d\b", row.text)) for row in rows.rows["train"]}
        self.assertEqual(years, {0, 2})

    def test_a_review_that_tells_of_a_repair_is_not_denied_a_defect(self):
        source = source_reviews.ReviewSource(Collector(0))
        self.assertFalse(source.can_deny("broken", ["I love it.", "A video showed me how to fix it."]))
        self.assertFalse(source.can_deny("service", ["The hotline was awful."]))
        self.assertTrue(source.can_deny("broken", ["I love it.", "No cracks, no dents, nothing missing."]))

    def test_no_review_is_false_of_a_fact_that_a_sentence_may_tell(self):
        rows = Collector(3)
        source = source_reviews.ReviewSource(rows)
        source.shared["noservice"] = ["I repaired it with wire."]
        source.make(900, 900)
        asked = [row for row in rows.rows["train"] + rows.rows["word"] if row.kind == "review:broken" and "repaired" in row.text]
        told = [row.truth for row in asked if row.question not in source_reviews.BROKEN.negated]
        self.assertGreater(len(told), 5)
        self.assertTrue(all(told))

    def test_every_fact_that_may_be_told_is_asked(self):
        known = set(source_reviews.DENIALS) | {f"issues:{name}" for name in read_bank(BANKS / "issues.txt").labels}
        self.assertEqual(set(naming._tells()) - known, set())


class MentionTest(unittest.TestCase):
    """A text mentions a kind of thing by words that mainly mean it, written as WordNet writes them."""

    def mentions(self, text, net, members=("animal",), proper=("May", "Paris")):
        source = MentionSource(net, [], [], Collector(0))
        return any(source.is_meant(*token, members, proper) for token in source.tokens(text))

    def test_case_function_words_and_names(self):
        class Net:
            def is_mainly(self, form, members):
                return form in ("python", "john", "are", "dog")

        for text, truth in (("the dog barked", True), ("written in Python", False), ("his brother John", False), ("we are here", False),
                            ("May I come in?", False), ("in May it rains", True), ("a dog-eared book", False), ("the dog's bone", True), ("it isn't", False), ("lost in Paris", True)):
            self.assertEqual(self.mentions(text, Net()), truth, text)

    def test_forms_of_other_words_count_against_a_sense(self):
        net = small_wordnet()
        self.assertTrue(net.is_mainly("cows", frozenset(["cow"])))
        self.assertFalse(net.is_mainly("are", frozenset(["area"])), "mostly a form of be")
        self.assertFalse(net.is_mainly("shipped", frozenset(["ship"])), "no noun")
        self.assertTrue(net.is_mainly("wombat", frozenset(["wombat"])), "a noun alone, never counted")


def small_wordnet():
    net = WordNet.__new__(WordNet)
    net.senses = {"cow": ["cow"], "ship": ["ship"], "are": ["area"], "wombat": ["wombat"]}
    net.other_words = {"be", "ship"}
    net.counts = {"cow": {("1", 1): 9}, "ship": {("1", 1): 9, ("2", 1): 1}, "are": {("1", 1): 1}, "be": {("2", 1): 900}}
    net.irregular = {"noun": {}, "verb": {"are": ["be"], "shipped": ["ship"]}}
    return net


MARKED = '''@mode mix
@subject writer
@opposite calm angry
@filler My number is {k}. | Best, {n}.
[angry] s:the writer is angry
[calm] s:the writer is calm
[late] often s:the parcel is late
late !angry = It is a week overdue.
angry = You crooks!
?angry !late = Well, well.
'''


class MarkedTextTest(unittest.TestCase):
    """A text is true of its marks, open where they say so, and false of all other labels."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "notes.txt"
        self.path.write_text(MARKED)
        self.addCleanup(self.folder.cleanup)

    def test_marks_and_opposites(self):
        _, (overdue, crooks, well) = read_marked(self.path)
        truths = lambda text: [text.holds(name) for name in ("angry", "calm", "late")]
        self.assertEqual(truths(overdue), [False, True, True])
        self.assertEqual(truths(crooks), [True, False, False])
        self.assertEqual(truths(well), [None, None, False])

    def test_an_unknown_mark_is_refused(self):
        self.path.write_text(MARKED + "lost = Where is it?\n")
        with self.assertRaisesRegex(ValueError, "lost"):
            read_marked(self.path)

    def test_rows_hold_what_the_marks_say(self):
        rows = Collector(0, training_only=True)
        MarkedSource(self.path, rows, [], claims=0).make(400)
        truths = {(text, name): row.truth for row in rows.rows["train"] for text in ("overdue", "crooks", "Well") if text in row.text
                  for name in ("angry", "calm", "late") if row.question.lower().rstrip(".") == {"late": "the parcel is late"}.get(name, f"the writer is {name}")}
        self.assertEqual(truths, {("overdue", "angry"): False, ("overdue", "calm"): True, ("overdue", "late"): True, ("crooks", "angry"): True,
                                  ("crooks", "calm"): False, ("crooks", "late"): False, ("Well", "late"): False})

    def test_two_conditions(self):
        rows = Collector(0, training_only=True)
        source = MarkedSource(self.path, rows, [])
        for number in range(300):
            rows.begin(str(number))
            source.make_conditions()
        asked = {("overdue" in row.text, row.question): row.truth for row in rows.rows["train"] if "Well" not in row.text}
        self.assertTrue(asked[(True, "The parcel is late, and the writer is calm.")])
        self.assertFalse(asked[(True, "The writer is angry, but it is not true that the parcel is late.")])


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
        for name in judge_data.MARKED_ROWS:
            new |= phrases_of(read_bank(TRAINING_BANKS / f"{name}.txt"))[0]
        for name in judge_data.MORE_BANK_ROWS:
            known = read_bank(BANKS / f"{name}.txt")
            more = read_more(TRAINING_BANKS / f"{name}.txt", known)
            new |= {text for label in more.labels.values() if label.name not in known.labels
                    for group in label.phrases.values() for text in group[0] + group[1]}
        self.assertEqual(new & asked, set())

    def test_no_text_repeats_words_of_the_domain_tests(self):
        runs = lambda text: {" ".join(words[k:k + 6]) for words in [re.findall(r"[a-z0-9']+", text.lower())] for k in range(len(words) - 5)}
        tested = [path.read_text(encoding="utf8") for path in [*(domain_tests.ROOT / "examples").glob("*.csv"), Path(judge_data.__file__).parent / "own_tests.tsv"]]
        known = set().union(*(runs(line) for text in tested for line in text.splitlines()))
        self.assertGreater(len(known), 1000)
        for name in judge_data.MARKED_ROWS:
            for marked in read_marked(TRAINING_BANKS / f"{name}.txt")[1]:
                self.assertEqual(runs(marked.text) & known, set(), marked.text)

    def test_no_quantity_of_the_tests(self):
        old, new = (quantities(random.Random(0)), more_quantities(random.Random(0)))
        asked = lambda items: {question for item in items for question, _ in item.extra} | {item.subject for item in items}
        self.assertEqual({text for item in new for text in item.texts} & {text for item in old for text in item.texts}, set())
        self.assertEqual(asked(new) & {question.lstrip("!") for question in asked(item for item in old if item.held)}, set())
        rows = Collector(0, training_only=True)
        MeasureSource(rows, ["The cat sat on the mat."] * 9).make(300, 300)
        self.assertEqual([row.question for row in rows.rows["train"] if "weekend" in row.question], [])

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
