#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quail::base {
namespace {

TEST(Utf8Test, FindsTheFirstIllFormedByte) {
  EXPECT_EQ(FirstInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("plain, é, €, 😀, \xF4\x8F\xBF\xBF, and \x7F"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8(std::string_view("a\0b", 3)), std::nullopt);
  struct {
    std::string_view text;
    std::size_t at;
  } const cases[] = {
      {"\xff\xfe", 0},
      {"long enough \xed\xa0\x80", 12},
      {"é\xc3", 2},
      {"\xc0\xaf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf4\x90\x80\x80", 0},
      {"\x80", 0},
      {"ab\xe2\x82", 2},
      {"\xf5\x80\x80\x80", 0},
      {"12345678\xe2\x28\xa1", 8},
  };
  for (const auto& [text, at] : cases) EXPECT_EQ(FirstInvalidUtf8(text), at);
}

TEST(Utf8Test, ReadsEveryCodePointThatItWrote) {
  for (char32_t point = 1; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string text = "a";
    AppendUtf8(point, text);
    ASSERT_EQ(FirstInvalidUtf8(text), std::nullopt) << static_cast<std::uint32_t>(point);
    const CodePoint code = DecodeUtf8(text.data() + 1);
    ASSERT_EQ(code.value, point);
    ASSERT_EQ(code.length, text.size() - 1);
    ASSERT_EQ(Utf8SequenceLength(text, 1), code.length);
    ASSERT_EQ(FirstInvalidUtf8(text.substr(0, text.size() - 1)),
              code.length == 1 ? std::nullopt : std::optional<std::size_t>(1));
  }
}

TEST(Utf8Test, ShowsWhatIsNoText) {
  EXPECT_EQ(Escaped("plain \xc3\xa9"), "plain \xc3\xa9");
  EXPECT_EQ(Escaped(std::string_view("a\0\x1b[1m\n\x7f\xff\xc3", 10)),
            "a\\x00\\x1b[1m\\x0a\\x7f\\xff\\xc3");
}

}  // namespace
}  // namespace quail::base
