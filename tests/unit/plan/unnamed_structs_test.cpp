#include "plan/unnamed_structs.h"

#include <gtest/gtest.h>

namespace quail::plan {
namespace {

TEST(UnnamedStructs, AreFoundInWhateverHoldsThem) {
  for (const char* type :
       {"STRUCT(INTEGER, VARCHAR)", "STRUCT(TIMESTAMP WITH TIME ZONE)[]",
        "STRUCT(a INTEGER, \"b c\" STRUCT(DECIMAL(18,3))[])", "STRUCT(STRUCT(a INTEGER))",
        "STRUCT(ENUM('a, b', 'c'))", "MAP(STRUCT(INTEGER), VARCHAR)",
        "MAP(VARCHAR, STRUCT(INTEGER)[])", "STRUCT(INTEGER)[3]"}) {
    EXPECT_TRUE(HasUnnamedStruct(type)) << type;
  }
  for (const char* type : {"INTEGER", "TIMESTAMP WITH TIME ZONE", "STRUCT(a INTEGER, b VARCHAR)[]",
                           "STRUCT(\"TIME\" TIME WITH TIME ZONE)", "STRUCT(\"a, b\" DECIMAL(18,3))",
                           "MAP(STRUCT(a INTEGER), VARCHAR[2])", "STRUCT(a ENUM('x y, z'))"}) {
    EXPECT_FALSE(HasUnnamedStruct(type)) << type;
    EXPECT_EQ(NamedType(type), type);
    EXPECT_EQ(WithoutNames("x", type), "x");
  }
}

TEST(UnnamedStructs, GetNamesAndLoseThem) {
  EXPECT_EQ(NamedType("STRUCT(INTEGER, STRUCT(VARCHAR)[])"),
            "STRUCT(v1 INTEGER, v2 STRUCT(v1 VARCHAR)[])");
  EXPECT_EQ(WithoutNames("s", "STRUCT(INTEGER, VARCHAR)"),
            "CASE WHEN (s) IS NULL THEN NULL ELSE row((s).v1, (s).v2) END");
  EXPECT_EQ(NamedType("MAP(STRUCT(INTEGER), STRUCT(VARCHAR)[2][])"),
            "MAP(STRUCT(v1 INTEGER), STRUCT(v1 VARCHAR)[2][])");
  EXPECT_EQ(
      WithoutNames("s", "STRUCT(INTEGER)[1]"),
      "list_value(array_value(CASE WHEN ((s)[1]) IS NULL THEN NULL ELSE row(((s)[1]).v1) END))"
      "[CASE WHEN (s) IS NULL THEN NULL ELSE 1 END]");
  EXPECT_EQ(NamedType("STRUCT(\"a, b\" STRUCT(ENUM('x, y')))"),
            "STRUCT(\"a, b\" STRUCT(v1 ENUM('x, y')))");
}

}  // namespace
}  // namespace quail::plan
