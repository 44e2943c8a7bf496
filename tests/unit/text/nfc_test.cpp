#include "text/nfc.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace quail::text {
namespace {

std::string Utf8(const std::vector<char32_t>& points) {
  std::string text;
  for (const char32_t point : points) base::AppendUtf8(point, text);
  return text;
}

TEST(Nfc, ComposesDecomposesAndOrders) {
  struct Case {
    const char* text;
    const char* nfc;
  };
  const Case cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"e\u0301", "\u00E9"},
      {"a\u0323\u0302", "\u1EAD"},
      {"a\u0302\u0323", "\u1EAD"},
      {"q\u0307\u0323", "q\u0323\u0307"},
      {"\u212B", "\u00C5"},
      {"\u0344", "\u0308\u0301"},
      {"\u0958", "\u0915\u093C"},
      {"\u1100\u1161\u11A8", "\uAC01"},
      {"\uAC00\u11A8", "\uAC01"},
      {"\uAC01\u11A8", "\uAC01\u11A8"},
      {"e\u0305\u0301", "e\u0305\u0301"},
      {"e\u0327\u0301", "\u0229\u0301"},
      {"\u0301e\u0301", "\u0301\u00E9"},
      {"\U0001D15E", "\U0001D157\U0001D165"},
  };
  for (const Case& c : cases) EXPECT_EQ(ToNfc(c.text), c.nfc) << c.text;
}

/// U+1ABF has class 220 since Unicode 13; under 9.0 it is an unassigned starter, and stays where it
/// is.
TEST(Nfc, FollowsTheReferencesUnicodeVersion) {
  EXPECT_EQ(ToNfc("q\u0301\u1ABF"), "q\u0301\u1ABF");
  EXPECT_EQ(ToNfc("\U00011935\U00011930"), "\U00011935\U00011930");
}

TEST(Nfc, QuickCheckAcceptsCommonNormalisedText) {
  EXPECT_TRUE(QuickCheckNfc("caf\u00E9 \u0E01\u0E49 \u4E2D\u6587 \uAC01 \U0001F600"));
  EXPECT_FALSE(QuickCheckNfc("cafe\u0301"));
  EXPECT_FALSE(QuickCheckNfc("\u212B"));
  EXPECT_FALSE(QuickCheckNfc("\u0E49\u0E38")) << "classes 107, 103 are out of order";
}

rc::Gen<std::string> MarkHeavyText() {
  const auto in = [](std::uint32_t first, std::uint32_t last) {
    return rc::gen::map(rc::gen::inRange(first, last),
                        [](std::uint32_t value) { return static_cast<char32_t>(value); });
  };
  const auto point =
      rc::gen::oneOf(in(0x41, 0x7B), in(0xC0, 0x250), in(0x300, 0x370), in(0x900, 0xE80),
                     in(0x1100, 0x1200), in(0x1E00, 0x2000), in(0xAC00, 0xD7A4));
  return rc::gen::map(rc::gen::container<std::vector<char32_t>>(point), Utf8);
}

RC_GTEST_PROP(Nfc, IsIdempotent, ()) {
  const std::string once = ToNfc(*MarkHeavyText());
  RC_ASSERT(ToNfc(once) == once);
}

RC_GTEST_PROP(Nfc, QuickCheckIsRightWhenItSaysYes, ()) {
  const std::string text = *MarkHeavyText();
  if (QuickCheckNfc(text)) RC_ASSERT(ToNfc(text) == text);
}

TEST(Unicode, CountsOfTheReferencesClasses) {
  std::size_t letters = 0;
  std::size_t numbers = 0;
  std::size_t spaces = 0;
  std::size_t numeric = 0;
  for (char32_t point = 0; point < 0x110000; ++point) {
    const unsigned properties = unicode::Properties(point);
    letters += (properties & unicode::kLetter) != 0;
    numbers += (properties & unicode::kNumber) != 0;
    spaces += (properties & unicode::kSpace) != 0;
    numeric += (properties & unicode::kNumeric) != 0;
  }
  EXPECT_EQ(letters, 141028U) << "Unicode 16.0";
  EXPECT_EQ(numbers, 1911U) << "Unicode 16.0";
  EXPECT_EQ(numeric, 1924U) << "Unicode 17.0";
  EXPECT_EQ(spaces, 25U);
}

}  // namespace
}  // namespace quail::text
