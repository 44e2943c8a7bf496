#include "base/text_position.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace quail::base {
namespace {

std::pair<std::size_t, std::size_t> LineAndColumn(std::string_view text, std::size_t offset) {
  const TextPosition position = Locate(text, offset);
  return {position.line, position.column};
}

TEST(LocateTest, CountsLinesAndColumnsFromOne) {
  const std::string_view text = "ab\ncd\n";
  EXPECT_EQ(LineAndColumn(text, 0), std::pair(1ul, 1ul));
  EXPECT_EQ(LineAndColumn(text, 2), std::pair(1ul, 3ul));
  EXPECT_EQ(LineAndColumn(text, 3), std::pair(2ul, 1ul));
  EXPECT_EQ(LineAndColumn(text, 6), std::pair(3ul, 1ul));
}

TEST(LocateTest, ColumnsAreCharactersNotBytes) {
  const std::string_view text = "\u00e9\u20ac\U0001F426x";
  EXPECT_EQ(LineAndColumn(text, text.find('x')), std::pair(1ul, 4ul));
}

TEST(LocateTest, OffsetBehindTheEndIsTheEnd) {
  const TextPosition position = Locate("abc", 99);
  EXPECT_EQ(position.offset, 3u);
  EXPECT_EQ(position.column, 4u);
}

Error ErrorAt(std::string_view text, std::size_t offset) {
  return Error(ErrorCode::kSyntax, "unexpected word", Locate(text, offset));
}

TEST(DescribeTest, ShowsTheLineAndACaret) {
  const std::string_view text = "SELECT *\nFROM \u00e9t\u00e9 WERE x\nLIMIT 1";
  EXPECT_EQ(Describe(ErrorAt(text, text.find("WERE")), text),
            "error: unexpected word\n"
            "line 2, column 10\n"
            "FROM \u00e9t\u00e9 WERE x\n"
            "         ^");
}

TEST(DescribeTest, WithoutPositionIsTheMessageAlone) {
  EXPECT_EQ(Describe(Error(ErrorCode::kIo, "disk full"), "SELECT 1"), "error: disk full");
}

TEST(DescribeTest, EndOfTextAndNewlineBelongToTheLineBefore) {
  EXPECT_EQ(Describe(ErrorAt("ab", 2), "ab"), "error: unexpected word\nline 1, column 3\nab\n  ^");
  EXPECT_EQ(Describe(ErrorAt("ab\ncd", 2), "ab\ncd"),
            "error: unexpected word\nline 1, column 3\nab\n  ^");
}

TEST(DescribeTest, TabsStayTabsAndNoCarriageReturnIsShown) {
  const std::string_view text = "SELECT\r\n\t\u00e9,\tx y\r\nFROM t";
  EXPECT_EQ(Describe(ErrorAt(text, text.find('y')), text),
            "error: unexpected word\n"
            "line 2, column 7\n"
            "\t\u00e9,\tx y\n"
            "\t  \t  ^");
  EXPECT_EQ(Describe(ErrorAt(text, 7), text),
            "error: unexpected word\nline 1, column 8\nSELECT\n      ^");
}

TEST(DescribeTest, EmptyTextAndEmptyLine) {
  EXPECT_EQ(Describe(ErrorAt("", 0), ""), "error: unexpected word\nline 1, column 1\n\n^");
  EXPECT_EQ(Describe(ErrorAt("a\n\nb", 2), "a\n\nb"),
            "error: unexpected word\nline 2, column 1\n\n^");
}

}  // namespace
}  // namespace quail::base
