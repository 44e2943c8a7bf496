#include "columnar/batch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "arrow_builder.h"
#include "columnar/derived_array.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

using namespace quail::columnar::testing;  // NOLINT(google-build-using-namespace)

template <typename T>
void ExpectIntegers(const std::string& format) {
  SCOPED_TRACE(format);
  const T low = std::numeric_limits<T>::min();
  const T high = sizeof(T) == 8 ? static_cast<T>(std::numeric_limits<std::int64_t>::max())
                                : std::numeric_limits<T>::max();
  const Batch batch = MakeBatch(Table({Numbers<T>("n", format, {low, std::nullopt, high, T{7}})}));
  EXPECT_EQ(batch.Integer(0, 0), static_cast<std::int64_t>(low));
  EXPECT_TRUE(batch.IsNull(0, 1));
  EXPECT_FALSE(batch.IsNull(0, 2));
  EXPECT_EQ(batch.Integer(0, 2), static_cast<std::int64_t>(high));
  EXPECT_EQ(batch.Real(0, 3), 7.0);
}

TEST(BatchTest, ReadsIntegersOfEveryWidth) {
  ExpectIntegers<std::int8_t>("c");
  ExpectIntegers<std::uint8_t>("C");
  ExpectIntegers<std::int16_t>("s");
  ExpectIntegers<std::uint16_t>("S");
  ExpectIntegers<std::int32_t>("i");
  ExpectIntegers<std::uint32_t>("I");
  ExpectIntegers<std::int64_t>("l");
  ExpectIntegers<std::uint64_t>("L");
  ExpectIntegers<std::int32_t>("tdD");
  ExpectIntegers<std::int64_t>("tsu:Europe/Berlin");
}

TEST(BatchTest, AnUnsignedValueBeyondTheRangeIsAnError) {
  const std::uint64_t large = std::numeric_limits<std::uint64_t>::max();
  const Batch batch = MakeBatch(Table({Numbers<std::uint64_t>("big", "L", {large})}));
  EXPECT_EQ(batch.Real(0, 0), 18446744073709551615.0);
  try {
    batch.Integer(0, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kQuery);
    EXPECT_NE(std::string(error.what()).find("'big'"), std::string::npos);
  }
}

TEST(BatchTest, ReadsRealsDecimalsAndBooleans) {
  struct Wide {
    std::uint64_t low;
    std::int64_t high;
  };
  const Batch batch = MakeBatch(Table(
      {Numbers<float>("f", "f", {1.5F, std::nullopt}), Numbers<double>("g", "g", {0.1, -2.0}),
       Numbers<Wide>("d", "d:9,2", {Wide{12345, 0}, Wide{static_cast<std::uint64_t>(-250), -1}}),
       Numbers<Wide>("h", "d:38,0", {Wide{7, 0}, Wide{0, 1}}),
       Booleans("b", {true, std::nullopt})}));
  EXPECT_EQ(batch.Real(0, 0), 1.5);
  EXPECT_EQ(batch.Real(1, 0), 0.1);
  EXPECT_EQ(batch.Real(2, 0), 123.45);
  EXPECT_EQ(batch.Real(2, 1), -2.5);
  EXPECT_EQ(batch.Integer(3, 0), 7);
  EXPECT_THROW(batch.Integer(3, 1), Error);
  EXPECT_TRUE(batch.Boolean(4, 0));
  EXPECT_TRUE(batch.IsNull(4, 1));
}

const std::vector<std::optional<std::string>> kTexts = {"",
                                                        "short",
                                                        std::nullopt,
                                                        "exactly 12 b",
                                                        "13 characters",
                                                        std::string("a\0b", 3),
                                                        "é",
                                                        std::string(300, 'x'),
                                                        std::nullopt,
                                                        "another text of more than twelve"};

void ExpectTexts(const Batch& batch, std::size_t first = 0) {
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    SCOPED_TRACE(row);
    ASSERT_EQ(batch.IsNull(0, row), !kTexts[first + row].has_value());
    if (!kTexts[first + row]) continue;
    EXPECT_EQ(batch.Text(0, row), *kTexts[first + row]);
  }
}

TEST(BatchTest, Bug71ReadsEveryKindOfText) {
  for (const Column& column :
       {Texts<std::int32_t>("t", "u", kTexts), Texts<std::int64_t>("t", "U", kTexts),
        Texts<std::int32_t>("t", "z", kTexts), Texts<std::int64_t>("t", "Z", kTexts),
        TextViews("t", kTexts)}) {
    SCOPED_TRACE(column.format);
    const Batch batch = MakeBatch(Table({column}));
    EXPECT_EQ(batch.rows(), kTexts.size());
    ExpectTexts(batch);
  }
}

TEST(BatchTest, Bug71NullInsideADictionaryIsNull) {
  for (const Column& values :
       {Texts<std::int32_t>("", "u", {"a", std::nullopt}), TextViews("", {"a", std::nullopt})}) {
    const Batch batch = MakeBatch(
        Table({Dictionary(Numbers<std::int8_t>("d", "c", {0, 1, std::nullopt, 0}), values)}));
    EXPECT_EQ(batch.Text(0, 0), "a");
    EXPECT_TRUE(batch.IsNull(0, 1));
    EXPECT_TRUE(batch.IsNull(0, 2));
    EXPECT_EQ(batch.Text(0, 3), "a");
  }
}

TEST(BatchTest, ReadsASlicedDictionary) {
  Column values = Texts<std::int32_t>("", "u", {"skipped", std::nullopt, "b", "c"});
  values.offset = 1;
  values.length = 3;
  Column indices = Numbers<std::uint16_t>("d", "S", {9, 0, 1, 2});
  indices.offset = 1;
  indices.length = 3;
  const Batch batch = MakeBatch(Table({Dictionary(indices, values)}));
  EXPECT_TRUE(batch.IsNull(0, 0));
  EXPECT_EQ(batch.Text(0, 1), "b");
  EXPECT_EQ(batch.Text(0, 2), "c");
}

RC_GTEST_PROP(BatchProperty, Bug70ASliceIsTheRows, ()) {
  const auto numbers = *rc::gen::container<std::vector<rc::Maybe<std::int16_t>>>(
      40, rc::gen::maybe(rc::gen::arbitrary<std::int16_t>()));
  std::vector<std::optional<std::int16_t>> values;
  std::vector<std::optional<std::string>> texts;
  std::vector<std::optional<bool>> flags;
  for (const auto& number : numbers) {
    values.push_back(number ? std::optional<std::int16_t>(*number) : std::nullopt);
    texts.push_back(number ? std::optional(std::to_string(*number) + " and more text")
                           : std::nullopt);
    flags.push_back(number ? std::optional(*number % 2 == 0) : std::nullopt);
  }
  // The slice is spread over the struct's offset and the columns' own.
  const auto outer = *rc::gen::inRange<std::int64_t>(0, 20);
  const auto inner = *rc::gen::inRange<std::int64_t>(0, 20);
  Column table = Table({Numbers<std::int16_t>("n", "s", values), TextViews("v", texts),
                        Texts<std::int32_t>("t", "u", texts), Booleans("b", flags)});
  for (Column& column : table.children) {
    column.offset = inner;
    column.length = 40 - inner;
  }
  table.offset = outer;
  table.length = *rc::gen::inRange<std::int64_t>(0, 40 - inner - outer + 1);
  const Batch batch = MakeBatch(table);
  RC_ASSERT(batch.rows() == static_cast<std::size_t>(table.length));
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const std::size_t source = static_cast<std::size_t>(outer + inner) + row;
    for (std::size_t column = 0; column < 4; ++column) {
      RC_ASSERT(batch.IsNull(column, row) == !values[source].has_value());
    }
    if (!values[source]) continue;
    RC_ASSERT(batch.Integer(0, row) == *values[source]);
    RC_ASSERT(batch.Text(1, row) == *texts[source]);
    RC_ASSERT(batch.Text(2, row) == *texts[source]);
    RC_ASSERT(batch.Boolean(3, row) == *flags[source]);
  }
}

RC_GTEST_PROP(BatchTest, AColumnOfIntegersIsItsIntegers, ()) {
  std::vector<std::optional<std::int32_t>> some(30);
  std::vector<std::optional<std::int32_t>> all(30);
  std::vector<std::optional<std::int64_t>> wide(30);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = *rc::gen::arbitrary<std::int32_t>();
    if (*rc::gen::arbitrary<bool>()) some[i] = all[i];
    wide[i] = std::int64_t{*all[i]} << 20;
  }
  Column table =
      Table({Numbers<std::int32_t>("all", "i", all), Numbers<std::int32_t>("some", "i", some),
             Numbers<std::int64_t>("wide", "l", wide)});
  const auto inner = *rc::gen::inRange<std::int64_t>(0, 10);
  for (Column& column : table.children) {
    column.offset = inner;
    column.length -= inner;
  }
  table.offset = *rc::gen::inRange<std::int64_t>(0, 10);
  table.length -= inner + table.offset;
  const Batch batch = MakeBatch(table);
  std::vector<std::int64_t> values;
  for (std::size_t column = 0; column < batch.columns(); ++column) {
    batch.Integers(column, -7, values);
    RC_ASSERT(values.size() == batch.rows());
    for (std::size_t row = 0; row < values.size(); ++row) {
      RC_ASSERT(values[row] == (batch.IsNull(column, row) ? -7 : batch.Integer(column, row)));
    }
  }
}

TEST(BatchTest, ANullRowOfTheStructIsNullInEveryColumn) {
  Column table = Table({Numbers<std::int32_t>("n", "i", {1, 2})});
  table.null_count = 1;
  table.buffers[0] = Bytes{0b10};
  const Batch batch = MakeBatch(table);
  EXPECT_TRUE(batch.IsNull(0, 0));
  EXPECT_EQ(batch.Integer(0, 1), 2);
  std::vector<std::int64_t> values;
  batch.Integers(0, -7, values);
  EXPECT_EQ(values, (std::vector<std::int64_t>{-7, 2}));
}

TEST(BatchTest, CarriesWhatItCannotReadAndSaysSo) {
  const Batch batch = MakeBatch(Table(
      {Column{"u", "+us:0", 1, 0, 0, {Bytes{0}}, {Numbers<std::int32_t>("m", "i", {5})}, nullptr},
       Numbers<std::int32_t>("n", "i", {7})}));
  EXPECT_EQ(batch.Integer(1, 0), 7);
  EXPECT_THROW(batch.IsNull(0, 0), Error);
}

TEST(BatchTest, ReleasesOnceAlsoAfterGivingAway) {
  {
    Batch batch = MakeBatch(Table({Texts<std::int32_t>("t", "u", kTexts)}));
    const OwnedArray array = batch.Release();
    EXPECT_EQ(batch.rows(), 0U);
    EXPECT_EQ(array->length, static_cast<std::int64_t>(kTexts.size()));
  }
  EXPECT_EQ(Live(), 0);
}

TEST(DerivedArrayTest, Bug70SlicesHoldTheirRows) {
  Column table = Table({Texts<std::int32_t>("t", "u", kTexts)});
  table.offset = 1;
  table.length -= 1;
  const std::shared_ptr<const ArrowSchema> schema = MakeSchema(table);
  std::shared_ptr<const ArrowArray> owner = MakeArray(table);
  OwnedArray slice = SliceRows(owner, 2, 5);
  EXPECT_EQ(slice->offset, 0);
  owner.reset();
  ExpectTexts(Batch(schema, std::move(slice)), 3);
}

TEST(DerivedArrayTest, SlicesKeepTheirOwnerAlive) {
  {
    OwnedArray slice = SliceRows(MakeArray(Table({TextViews("t", kTexts)})), 0, 3);
    EXPECT_GT(Live(), 0);
  }
  EXPECT_EQ(Live(), 0);
}

TEST(DerivedArrayTest, AnEmptyArrayFitsEverySchema) {
  const Column table =
      Table({Lists("l", {{{1, 2}}}), TextViews("v", {"x"}), Texts<std::int64_t>("t", "U", {"x"}),
             Dictionary(Numbers<std::int8_t>("d", "c", {0}), Texts<std::int32_t>("", "u", {"a"}))});
  const std::shared_ptr<const ArrowSchema> schema = MakeSchema(table);
  const Batch batch(schema, MakeEmptyArray(*schema));
  EXPECT_EQ(batch.rows(), 0U);
  EXPECT_EQ(batch.columns(), 4U);
}

}  // namespace
}  // namespace quail::columnar
