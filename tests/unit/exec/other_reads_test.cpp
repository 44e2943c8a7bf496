#include "exec/other_reads.h"

#include <gtest/gtest.h>

#include <vector>

#include "exec/lookup_functions.h"
#include "test_paths.h"

namespace quail::exec {
namespace {

TEST(OtherReads, AColumnIsReadOnceUntilItMayHaveChanged) {
  relational::DuckDbOptions options;
  options.library_path = std::string(QUAIL_DEPS_DIR) + "/duckdb/libduckdb.so";
  const auto connection = relational::OpenDuckDb(options);
  relational::QueryText(*connection,
                        "CREATE TABLE t AS SELECT * FROM (VALUES (3), (200), (NULL)) v(id)");
  const plan::Relation relation{plan::RelationId(0), "t", "t", "", {"id"}};
  ColumnTexts texts(*connection);
  const auto has = [&](std::uint32_t id) {
    return texts.Of(relation, "id").HasAnyOf(std::vector<TextId>{TextId(1), TextId(id)});
  };
  EXPECT_TRUE(has(3));
  EXPECT_TRUE(has(200));
  EXPECT_FALSE(has(199));
  EXPECT_FALSE(has(1'000'000));
  relational::QueryText(*connection, "DELETE FROM t WHERE id = 3");
  EXPECT_TRUE(has(3));
  texts.Forget();
  EXPECT_FALSE(has(3));
  EXPECT_TRUE(has(200));
}

}  // namespace
}  // namespace quail::exec
