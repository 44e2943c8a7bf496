#include "text/prompt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quail::text {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kInstruction = "Evaluate TRUE or FALSE for the following question:\n";

/// Slots print as <n>.
std::string Parsed(std::string_view canonical) {
  std::string shown;
  for (const PromptTemplate::Part& part : PromptTemplate::Parse(canonical).parts) {
    shown += part.slot >= 0 ? fmt::format("<{}>", part.slot) : part.literal;
  }
  return shown;
}

Strings Shown(const std::vector<PromptPiece>& pieces) {
  Strings shown;
  for (const PromptPiece& piece : pieces) {
    shown.push_back(piece.argument >= 0 ? fmt::format("<{}>", piece.argument) : piece.literal);
  }
  return shown;
}

FilterPrompt Filter(std::string_view canonical) {
  return LayOutFilter(PromptTemplate::Parse(canonical), AnswerWords{});
}

/// What stands between the instruction and the cue.
std::string Question(std::string_view canonical) {
  const FilterPrompt layout = Filter(canonical);
  EXPECT_EQ(layout.question.size(), 1U);
  const std::string text = layout.question.front().literal;
  const std::size_t begin = text.find(kInstruction) + kInstruction.size();
  const std::size_t end = text.size() - std::string_view("\nANSWER:").size();
  EXPECT_EQ(text.substr(end), "\nANSWER:");
  return text.substr(begin, end - begin);
}

TEST(PromptTemplate, ReadsSlotsAndDoubledBraces) {
  EXPECT_EQ(Parsed("Is {0} like {1}?"), "Is <0> like <1>?");
  EXPECT_EQ(Parsed("{{0}} {0}"), "{0} <0>");
  EXPECT_EQ(Parsed("{{{0}}}"), "{<0>}");
  EXPECT_EQ(Parsed("{12}{0}"), "<12><0>");
  EXPECT_EQ(Parsed(""), "");
}

/// Case 38 (braces, JSON and placeholders in data): what is no slot is text, so JSON in a prompt is
/// fine.
TEST(PromptTemplate, Case38AnyOtherBraceIsText) {
  EXPECT_EQ(Parsed(R"({"a": {0}})"), R"({"a": <0>})");
  EXPECT_EQ(Parsed("{ 0}"), "{ 0}");
  EXPECT_EQ(Parsed("{01}"), "{01}");
  EXPECT_EQ(Parsed("{-1}"), "{-1}");
  EXPECT_EQ(Parsed("{name} {"), "{name} {");
  EXPECT_EQ(Parsed("{0"), "{0");
  EXPECT_EQ(Parsed("}0{"), "}0{");
  EXPECT_EQ(Parsed("{99999999999999999999}"), "{99999999999999999999}");
}

/// Case 38: arguments stay references; nothing an argument contains can reach the formatter.
TEST(PromptTemplate, Case38ArgumentsAreNeverFormatted) {
  const FilterPrompt layout = Filter("{0} against {1}");
  EXPECT_EQ(Shown(layout.document),
            (Strings{"DOCUMENT {0}:\n", "<0>", "\nDOCUMENT {1}:\n", "<1>"}));
  for (const PromptPiece& piece : layout.document) {
    EXPECT_TRUE(piece.argument < 0 || piece.literal.empty());
  }
}

TEST(PromptTemplate, CountsTheArgumentsThatSlotsUse) {
  EXPECT_EQ(PromptTemplate::Parse("no slot").slot_count, 0);
  EXPECT_EQ(PromptTemplate::Parse("{1} then {0} and {1}").slot_count, 2);
}

TEST(FilterLayout, DocumentFirstQuestionAfter) {
  const FilterPrompt layout = Filter("Is {0} about food?");
  EXPECT_EQ(Shown(layout.document), (Strings{"DOCUMENT:\n", "<0>"}));
  EXPECT_EQ(Shown(layout.question),
            (Strings{"\nEvaluate TRUE or FALSE for the following question:\n"
                     "Is the document about food?\nANSWER:"}));
}

TEST(FilterLayout, NamesTheWordsOfTheReadout) {
  const FilterPrompt layout = LayOutFilter(PromptTemplate::Parse("Good? {0}"), {"True", "False"});
  EXPECT_EQ(layout.question.front().literal,
            "\nEvaluate True or False for the following question:\nGood?\nANSWER:");
}

TEST(FilterLayout, OneSlotAtTheEndIsDropped) {
  EXPECT_EQ(Question("Is this about food? {0}"), "Is this about food?");
  EXPECT_EQ(Question("Is this about food?{0}"), "Is this about food?");
  EXPECT_EQ(Question("Is this about food?\n\n{0}\n"), "Is this about food?");
  EXPECT_EQ(Question("Is this about food? '{0}'"), "Is this about food?");
  EXPECT_EQ(Question("Is this about food: \"{0}\" "), "Is this about food");
  EXPECT_EQ(Question("Is this about food? \u201C{0}\u201D"), "Is this about food?");
  EXPECT_EQ(Question("Does it say \"yes\" {0}"), "Does it say \"yes\"")
      << "those quotes are not around it";
}

TEST(FilterLayout, OneSlotAtTheBeginningIsDropped) {
  EXPECT_EQ(Question("{0} Is this about food?"), "Is this about food?");
  EXPECT_EQ(Question("{0}: is this about food?"), "is this about food?");
  EXPECT_EQ(Question(" \"{0}\"\nIs this about food?"), "Is this about food?");
}

TEST(FilterLayout, OneSlotInsideASentenceIsTheDocument) {
  EXPECT_EQ(Question("Is {0} about food?"), "Is the document about food?");
  EXPECT_EQ(Question("Is '{0}' about food?"), "Is 'the document' about food?");
  EXPECT_EQ(Question("Is it food? {0}."), "Is it food? the document.");
  EXPECT_EQ(Question("Use JSON {{\"a\": 1}} for {0}?"), "Use JSON {\"a\": 1} for the document?");
}

TEST(FilterLayout, ABareSlotAsksTheDocument) {
  EXPECT_EQ(Question("{0}"), "the document");
  EXPECT_EQ(Question(" '{0}' "), "the document");
}

TEST(FilterLayout, ARepeatedSlotRepeatsTheNameNotTheText) {
  const FilterPrompt layout = Filter("Is {0} fair? Is {0} true?");
  EXPECT_EQ(Shown(layout.document), (Strings{"DOCUMENT:\n", "<0>"}));
  EXPECT_EQ(Question("Is {0} fair? Is {0} true?"), "Is the document fair? Is the document true?");
  EXPECT_EQ(Question("Is {0} like {1}, or {1} like {0}?"),
            "Is DOCUMENT {0} like DOCUMENT {1}, or DOCUMENT {1} like DOCUMENT {0}?");
}

TEST(FilterLayout, SeveralColumnsAreLabelledDocuments) {
  const FilterPrompt layout = Filter("{1} and {0} agree with {2}");
  EXPECT_EQ(Shown(layout.document), (Strings{"DOCUMENT {0}:\n", "<0>", "\nDOCUMENT {1}:\n", "<1>",
                                             "\nDOCUMENT {2}:\n", "<2>"}));
  EXPECT_EQ(Question("{1} and {0} agree with {2}"),
            "DOCUMENT {1} and DOCUMENT {0} agree with DOCUMENT {2}");
}

TEST(FilterLayout, WithoutSlotsThereIsNoDocument) {
  const FilterPrompt layout = Filter("Is water wet?");
  EXPECT_TRUE(layout.document.empty());
  EXPECT_EQ(layout.question.front().literal,
            "Evaluate TRUE or FALSE for the following question:\nIs water wet?\nANSWER:");
}

TEST(JoinLayout, AnchorNoteQuestionAndLabelThenPerPairPartner) {
  const JoinPrompt layout =
      LayOutJoin(PromptTemplate::Parse("Does {0} need {1}?"), {true, false}, AnswerWords{});
  EXPECT_EQ(Shown(layout.anchor), (Strings{"DOCUMENT:\n", "<0>"}));
  EXPECT_EQ(
      Shown(layout.kept),
      (Strings{"\n(The document above is DOCUMENT {0}.)\nEvaluate TRUE or FALSE for the following "
               "question:\nDoes DOCUMENT {0} need DOCUMENT {1}?",
               "\nDOCUMENT {1}:\n"}));
  EXPECT_EQ(Shown(layout.partner), (Strings{"<1>", "\nANSWER:"}));
}

TEST(JoinLayout, NumbersStayWhicheverSideIsTheAnchor) {
  const JoinPrompt layout =
      LayOutJoin(PromptTemplate::Parse("Does {0} need {1}?"), {false, true}, AnswerWords{});
  EXPECT_EQ(Shown(layout.anchor), (Strings{"DOCUMENT:\n", "<1>"}));
  EXPECT_EQ(layout.kept[0].literal.substr(0, 42), "\n(The document above is DOCUMENT {1}.)\nEva");
  EXPECT_EQ(layout.kept[1].literal, "\nDOCUMENT {0}:\n");
  EXPECT_EQ(Shown(layout.partner), (Strings{"<0>", "\nANSWER:"}));
}

TEST(JoinLayout, AnchorBeginsLikeAFilteredDocument) {
  const JoinPrompt join =
      LayOutJoin(PromptTemplate::Parse("{0} with {1}"), {true, false}, AnswerWords{});
  EXPECT_EQ(Shown(join.anchor), Shown(Filter("Good? {0}").document));
}

TEST(JoinLayout, SeveralColumnsOfOneSideAreLabelledDocumentsOfThatSide) {
  const JoinPrompt layout = LayOutJoin(PromptTemplate::Parse("{0} {1} {2} {3}"),
                                       {true, false, true, false}, AnswerWords{});
  EXPECT_EQ(Shown(layout.anchor), (Strings{"DOCUMENT {0}:\n", "<0>", "\nDOCUMENT {2}:\n", "<2>"}));
  EXPECT_EQ(layout.kept[0].literal,
            "\nEvaluate TRUE or FALSE for the following question:\n"
            "DOCUMENT {0} DOCUMENT {1} DOCUMENT {2} DOCUMENT {3}");
  EXPECT_EQ(layout.kept[1].literal, "\nDOCUMENT {1}:\n");
  EXPECT_EQ(Shown(layout.partner), (Strings{"<1>", "\nDOCUMENT {3}:\n", "<3>", "\nANSWER:"}));
}

}  // namespace
}  // namespace quail::text
