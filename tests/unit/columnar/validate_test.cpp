#include "columnar/validate.h"

#include <gtest/gtest.h>

#include <limits>

#include "arrow_builder.h"
#include "columnar/layout.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

using namespace quail::columnar::testing;  // NOLINT(google-build-using-namespace)

Column GoodTable() {
  return Table({Numbers<std::int32_t>("n", "i", {1, std::nullopt, 3}),
                Texts<std::int32_t>("t", "u", {"a", "b", "c"}), Lists("l", {{{1}}, {{2, 3}}, {}}),
                TextViews("v", {"short", "a text of 20 letters", "another of 20 letters"}),
                Dictionary(Numbers<std::int8_t>("d", "c", {0, 1, 0}),
                           Texts<std::int32_t>("", "u", {"x", "y"}))});
}

/// The message with which a table that `spoil` changed is refused; empty when it passes.
template <typename Spoil>
std::string Refusal(const Spoil& spoil) {
  Column table = GoodTable();
  spoil(table);
  const OwnedSchema schema = MakeSchema(table);
  const OwnedArray array = MakeArray(table);
  try {
    CheckSchema(*schema);
    CheckArray(*schema, *array);
    CheckText(*schema, *array);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  return "";
}

/// The same for what the builder cannot make wrong.
template <typename Spoil>
std::string RawRefusal(const Spoil& spoil) {
  const Column table = GoodTable();
  const OwnedSchema schema = MakeSchema(table);
  const OwnedArray array = MakeArray(table);
  const ArrowSchema good_schema = *schema;
  const ArrowArray good_array = *array;
  std::string message;
  spoil(*schema, *array);
  try {
    CheckSchema(*schema);
    CheckArray(*schema, *array);
  } catch (const Error& error) {
    message = error.what();
  }
  *schema = good_schema;
  *array = good_array;
  return message;
}

#define EXPECT_REFUSED(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << (message)

TEST(ValidateTest, PassesWhatIsRight) {
  EXPECT_EQ(Refusal([](Column&) {}), "");
}

TEST(ValidateTest, RefusesWrongLengthsAndCounts) {
  EXPECT_REFUSED(Refusal([](Column& t) { t.length = -1; }), "negative length");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].offset = -4; }), "'n': negative length");
  EXPECT_REFUSED(Refusal([](Column& t) { t.length = std::numeric_limits<std::int64_t>::max(); }),
                 "overflow");
  EXPECT_REFUSED(Refusal([](Column& t) { t.length = 4; }), "'n': 3 rows, 4 are needed");
  EXPECT_REFUSED(Refusal([](Column& t) { t.offset = 1; }), "'n': 3 rows, 4 are needed");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].null_count = 9; }), "9 nulls in 3 rows");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].null_count = -2; }), "nulls in 3 rows");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[2].children[0].length = 2; }),
                 "'l.item': 2 rows, 3 are needed");
}

TEST(ValidateTest, RefusesMissingBuffers) {
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].buffers[0].reset(); }),
                 "nulls without a validity buffer");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].buffers[1].reset(); }),
                 "values are missing");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[0].buffers.pop_back(); }), "1 buffers, 2");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[1].buffers[1].reset(); }),
                 "values are missing");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[1].buffers[2].reset(); }), "text is missing");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[3].buffers[4].reset(); }), "sizes");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[3].buffers[2].reset(); }),
                 "outside its buffer");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[3].buffers.resize(2); }), "2 buffers, 3");
}

TEST(ValidateTest, RefusesOffsetsAndIndicesThatLeadAstray) {
  const auto set_int32 = [](Bytes& bytes, std::size_t index, std::int32_t value) {
    std::memcpy(bytes.data() + index * 4, &value, 4);
  };
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[1].buffers[1], 0, -1); }),
                 "'t': a negative offset");
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[1].buffers[1], 2, 0); }),
                 "'t': offsets descend at row 1");
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[2].buffers[1], 3, 50); }),
                 "'l.item': 3 rows, 50 are needed");
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[3].buffers[1], 6, 2); }),
                 "'v': the text at row 1 lies outside its buffer");
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[3].buffers[1], 7, 1); }),
                 "'v': the text at row 1 lies outside its buffer");
  EXPECT_REFUSED(Refusal([&](Column& t) { set_int32(*t.children[3].buffers[1], 0, -3); }),
                 "'v': negative length of a text at row 0");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[4].buffers[1]->at(1) = 2; }),
                 "'d': index 2 of a dictionary of 2 at row 1");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[4].buffers[1]->at(1) = 0xFF; }), "index -1");
}

TEST(ValidateTest, RefusesPartsThatAreMissing) {
  EXPECT_REFUSED(RawRefusal([](ArrowSchema& s, ArrowArray&) { s.format = nullptr; }), "format");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema& s, ArrowArray&) { s.format = "i"; }), "children");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema& s, ArrowArray&) { s.children = nullptr; }), "children");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema& s, ArrowArray&) { s.n_children = -1; }), "children");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema& s, ArrowArray&) { s.release = nullptr; }), "released");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema&, ArrowArray& a) { a.n_children = 4; }), "4 children");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema&, ArrowArray& a) { a.children = nullptr; }), "children");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema&, ArrowArray& a) { a.buffers = nullptr; }), "buffers");
  EXPECT_REFUSED(RawRefusal([](ArrowSchema&, ArrowArray& a) { a.release = nullptr; }), "released");
  ArrowSchema* no_child[5] = {};
  EXPECT_REFUSED(RawRefusal([&](ArrowSchema& s, ArrowArray&) { s.children = no_child; }),
                 "child 0");
  ArrowArray* no_array[5] = {};
  EXPECT_REFUSED(RawRefusal([&](ArrowSchema&, ArrowArray& a) { a.children = no_array; }),
                 "child 0");
}

TEST(ValidateTest, RefusesEndlessNesting) {
  Column nested = Lists("x", {{{1}}});
  for (int i = 0; i < 100; ++i) {
    Column outer = Lists("x", {{{1}}});
    outer.children[0] = nested;
    nested = outer;
  }
  const OwnedSchema schema = MakeSchema(Table({nested}));
  EXPECT_THROW(CheckSchema(*schema), Error);
}

TEST(ValidateTest, Bug44BrokenTextIsFoundWithItsRow) {
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[1].buffers[2]->at(1) = 0xFF; }),
                 "'t': row 1 is not valid UTF-8 at byte 0");
  EXPECT_REFUSED(Refusal([](Column& t) { t.children[4].dictionary->buffers[2]->at(1) = 0xE9; }),
                 "row 1 is not valid UTF-8");
  // Bytes, not text.
  EXPECT_EQ(Refusal([](Column& t) {
              t.children[1].format = "z";
              t.children[1].buffers[2]->at(1) = 0xFF;
            }),
            "");
}

TEST(ValidateTest, UnknownTypesAreNotImported) {
  for (const std::string format : {"+ud:0,1", "+r", "+vl", "?", "", "d:9", "w:-1", "tsx", "+w:x"}) {
    EXPECT_EQ(ParseLayout(format).kind, LayoutKind::kOther) << format;
  }
  Column table = GoodTable();
  table.children[0].format = "+r";
  const OwnedSchema schema = MakeSchema(table);
  CheckSchema(*schema);
  try {
    CheckImportable(*schema);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace quail::columnar
