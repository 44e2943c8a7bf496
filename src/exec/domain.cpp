#include "exec/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "exec/tuple_index.h"

namespace quail::exec {
namespace {

/// Calls row(values) for each row of a statement's integer columns, NULL as `null`.
template <typename Row>
void ForEachRow(relational::Connection& connection, const std::string& sql, std::size_t columns,
                std::int64_t null, const Row& row) {
  const auto stream = connection.Query(sql, relational::ErrorPlaces::kNone);
  std::vector<std::int64_t> line(columns);
  std::vector<std::vector<std::int64_t>> values(columns);
  while (auto batch = stream->Next()) {
    for (std::size_t i = 0; i < columns; ++i) batch->Integers(i, null, values[i]);
    for (std::size_t k = 0; k < batch->rows(); ++k) {
      for (std::size_t i = 0; i < columns; ++i) line[i] = values[i][k];
      row(std::span<const std::int64_t>(line));
    }
  }
}

constexpr std::int64_t kNull = kNullText.value();

TextId ToText(std::int64_t id) { return TextId(static_cast<std::uint32_t>(id)); }

/// Numbers distinct texts from 0 by first appearance. Ids are dense in a session and come in runs,
/// so that a table by id beats a hash table: 4 bytes an id, in blocks as ids come.
class TextNumbers {
 public:
  std::uint32_t Add(TextId id) {
    std::uint32_t& number = id == kNullText ? null_ : At(id.value());
    if (number == 0) number = ++size_;
    return number - 1;
  }

 private:
  static constexpr std::size_t kBlock = 256;
  using Block = std::array<std::uint32_t, kBlock>;

  std::uint32_t& At(std::size_t id) {
    if (id / kBlock >= blocks_.size()) blocks_.resize(id / kBlock + 1);
    std::unique_ptr<Block>& block = blocks_[id / kBlock];
    if (block == nullptr) block = std::make_unique<Block>();
    return (*block)[id % kBlock];
  }

  std::vector<std::unique_ptr<Block>> blocks_;  ///< 1 + the text's number, 0 when it has none
  std::uint32_t null_ = 0;
  std::uint32_t size_ = 0;
};

/// The distinct texts of a statement's single column.
Domain ReadTexts(relational::Connection& connection, const std::string& sql) {
  Domain domain;
  domain.width = 1;
  TextNumbers numbers;
  ForEachRow(connection, sql, 1, kNull, [&](std::span<const std::int64_t> line) {
    const std::uint32_t number = numbers.Add(ToText(line[0]));
    if (number == domain.weights.size()) {
      domain.ids.push_back(ToText(line[0]));
      domain.weights.push_back(0);
    }
    ++domain.weights[number];
  });
  return domain;
}

/// How many rows there are, as the domain of a prompt without arguments.
Domain ReadCount(relational::Connection& connection, std::string_view from) {
  Domain domain;
  ForEachRow(connection, fmt::format("SELECT count(*) FROM {} HAVING count(*) > 0", from), 1, 0,
             [&](std::span<const std::int64_t> line) {
               domain.weights.push_back(static_cast<std::uint64_t>(line[0]));
             });
  return domain;
}

}  // namespace

std::uint64_t Domain::total_weight() const {
  return std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
}

Domain ReadDomain(relational::Connection& connection, std::string_view select, std::size_t width) {
  if (width == 0) return ReadCount(connection, fmt::format("({})", select));
  std::string names;
  for (std::size_t i = 0; i < width; ++i) names += fmt::format("{}q{}", i == 0 ? "" : ", ", i);
  Domain domain;
  domain.width = width;
  ForEachRow(connection,
             fmt::format("SELECT {0}, count(*) FROM ({1}) AS d({0}) GROUP BY ALL", names, select),
             width + 1, kNull, [&](std::span<const std::int64_t> line) {
               for (const std::int64_t id : line.first(width)) domain.ids.push_back(ToText(id));
               domain.weights.push_back(static_cast<std::uint64_t>(line[width]));
             });
  return domain;
}

Domain ReadTableDomain(relational::Connection& connection, std::string_view table,
                       std::span<const std::string> columns, std::string_view where) {
  const std::string from =
      where.empty() ? std::string(table) : fmt::format("{} WHERE {}", table, where);
  if (columns.empty()) return ReadCount(connection, from);
  const std::string sql = fmt::format("SELECT {} FROM {}", fmt::join(columns, ", "), from);
  // A scan of ids and our own tables cost a fraction of the engine's grouping and sorting.
  if (columns.size() == 1) return ReadTexts(connection, sql);
  TupleIndex tuples(columns.size());
  Domain domain;
  domain.width = columns.size();
  std::vector<TextId> tuple(columns.size());
  ForEachRow(connection, sql, columns.size(), kNull, [&](std::span<const std::int64_t> line) {
    std::ranges::transform(line, tuple.begin(), ToText);
    const std::uint32_t number = tuples.Add(tuple);
    if (number == domain.weights.size()) domain.weights.push_back(0);
    ++domain.weights[number];
  });
  domain.ids = tuples.TakeIds();
  return domain;
}

}  // namespace quail::exec
