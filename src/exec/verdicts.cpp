#include "exec/verdicts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace quail::exec {
namespace {

constexpr std::uint32_t kAbsent = TupleIndex::kAbsent;

// A matrix cell. NULL and errors are rare: their detail is in the hash table.
constexpr std::uint8_t kCellUndecided = 0;
constexpr std::uint8_t kCellFalse = 1;
constexpr std::uint8_t kCellTrue = 2;
constexpr std::uint8_t kCellInTable = 3;

std::vector<std::uint32_t> IndexById(std::span<const TextId> ids) {
  std::uint32_t largest = 0;
  for (const TextId id : ids) largest = std::max(largest, id.value());
  std::vector<std::uint32_t> index(ids.empty() ? 0 : largest + std::size_t{1}, kAbsent);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    QUAIL_CHECK_EQ(index[ids[i].value()], kAbsent);
    index[ids[i].value()] = static_cast<std::uint32_t>(i);
  }
  return index;
}

std::uint32_t Lookup(const std::vector<std::uint32_t>& index, TextId id) {
  return id.value() < index.size() ? index[id.value()] : kAbsent;
}

}  // namespace

VerdictTable::VerdictTable(std::size_t width, bool keeps_margins)
    : width_(width), keeps_margins_(keeps_margins), keys_(width) {
  if (width_ == 1) matrices_.emplace_back().is_line = true;
}

void VerdictTable::AddMatrix(std::span<const TextId> rows, std::span<const TextId> columns) {
  QUAIL_CHECK_EQ(width_, std::size_t{2});
  Matrix matrix;
  matrix.row_of = IndexById(rows);
  matrix.column_of = IndexById(columns);
  matrix.columns = columns.size();
  const std::size_t cells = rows.size() * columns.size();
  matrix.bits.assign((cells + 3) / 4, 0);
  if (keeps_margins_) matrix.margins.assign(cells, 0.0F);
  matrices_.push_back(std::move(matrix));
}

void VerdictTable::GrowLine(TextId last) {
  Matrix& line = matrices_.front();
  const std::size_t bytes = last.value() / 4 + std::size_t{1};
  if (bytes <= line.bits.size()) return;
  line.bits.resize(std::max(bytes, line.bits.size() * 2), 0);
  if (keeps_margins_) line.margins.resize(line.bits.size() * 4, 0.0F);
}

bool VerdictTable::FindCell(std::span<const TextId> key, Cell& cell) const {
  if (width_ == 1) {
    cell = {0, key[0].value()};
    return cell.index < matrices_.front().bits.size() * 4;
  }
  for (std::size_t m = 0; m < matrices_.size(); ++m) {
    const std::uint32_t row = Lookup(matrices_[m].row_of, key[0]);
    const std::uint32_t column = Lookup(matrices_[m].column_of, key[1]);
    if (row == kAbsent || column == kAbsent) continue;
    cell = {m, row * matrices_[m].columns + column};
    return true;
  }
  return false;
}

Judgement VerdictTable::Find(std::span<const TextId> key) const {
  QUAIL_DCHECK(key.size() == width_);
  Cell cell;
  if (!matrices_.empty() && FindCell(key, cell)) {
    const Matrix& matrix = matrices_[cell.matrix];
    const std::uint8_t bits = (matrix.bits[cell.index / 4] >> (2 * (cell.index % 4))) & 3U;
    const float margin = keeps_margins_ ? matrix.margins[cell.index] : 0.0F;
    if (bits == kCellFalse) return {Verdict::kFalse, margin, 0};
    if (bits == kCellTrue) return {Verdict::kTrue, margin, 0};
    if (bits == kCellUndecided && (matrix.is_line || verdicts_.empty())) return {};
  }
  const std::uint32_t entry = keys_.Find(key);
  if (entry == kAbsent) return {};
  Judgement judgement{verdicts_[entry], keeps_margins_ ? margins_[entry] : 0.0F, 0};
  if (judgement.verdict == Verdict::kError) judgement.reason = failed_entries_.at(entry).reason;
  return judgement;
}

void VerdictTable::Set(std::span<const TextId> key, Verdict verdict, float margin,
                       const std::string& reason) {
  QUAIL_CHECK(verdict != Verdict::kUndecided);
  QUAIL_CHECK_EQ(key.size(), width_);
  if (width_ == 1) GrowLine(key[0]);
  Cell cell;
  const bool in_matrix = !matrices_.empty() && FindCell(key, cell);
  if (in_matrix) {
    Matrix& matrix = matrices_[cell.matrix];
    std::uint8_t bits = kCellInTable;
    if (verdict == Verdict::kFalse) bits = kCellFalse;
    if (verdict == Verdict::kTrue) bits = kCellTrue;
    const unsigned shift = 2 * (cell.index % 4);
    std::uint8_t& byte = matrix.bits[cell.index / 4];
    const bool known = ((byte >> shift) & 3U) != kCellUndecided ||
                       (!matrix.is_line && !verdicts_.empty() && keys_.Find(key) != kAbsent);
    decided_ += known ? 0 : 1;
    byte = static_cast<std::uint8_t>((byte & ~(3U << shift)) | (unsigned{bits} << shift));
    if (keeps_margins_) matrix.margins[cell.index] = margin;
    if (bits != kCellInTable) return;
  }
  const std::size_t entry = Entry(key);
  if (!in_matrix && verdicts_[entry] == Verdict::kUndecided) ++decided_;
  verdicts_[entry] = verdict;
  if (keeps_margins_) margins_[entry] = margin;
  if (verdict == Verdict::kError) failed_entries_[entry].reason = ReasonIndex(reason);
}

std::size_t VerdictTable::Entry(std::span<const TextId> key) {
  const std::uint32_t entry = keys_.Add(key);
  if (entry == verdicts_.size()) {
    verdicts_.push_back(Verdict::kUndecided);
    if (keeps_margins_) margins_.push_back(0);
  }
  return entry;
}

std::uint32_t VerdictTable::ReasonIndex(const std::string& reason) {
  QUAIL_CHECK(!reason.empty());
  const auto [it, inserted] =
      reason_index_.emplace(reason, static_cast<std::uint32_t>(reasons_.size()));
  if (inserted) reasons_.push_back(reason);
  return it->second;
}

void VerdictTable::CountFailedRows(std::span<const TextId> key, std::uint64_t rows) {
  failed_entries_.at(keys_.Find(key)).rows += rows;
}

std::vector<VerdictTable::Failure> VerdictTable::Failures() const {
  std::vector<Failure> failures;
  for (std::size_t entry = 0; entry < verdicts_.size(); ++entry) {
    if (verdicts_[entry] != Verdict::kError) continue;
    const auto key = keys_.tuple(entry);
    const FailedEntry& failed = failed_entries_.at(entry);
    failures.push_back({{key.begin(), key.end()}, failed.reason, failed.rows});
  }
  return failures;
}

double Probability(float margin) {
  const double probability = 1.0 / (1.0 + std::exp(-static_cast<double>(margin)));
  if (margin > 0 && probability <= 0.5) return std::nextafter(0.5, 1.0);
  return probability;
}

}  // namespace quail::exec
