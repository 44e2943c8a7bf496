#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/strong_id.h"
#include "exec/tuple_index.h"

namespace quail::exec {

/// Stands for a NULL argument in a tuple of texts. No verdict is ever stored under it.
inline constexpr TextId kNullText{0xFFFFFFFFU};
inline bool HasNull(std::span<const TextId> key) {
  return std::ranges::find(key, kNullText) != key.end();
}

enum class Verdict : std::uint8_t { kUndecided, kFalse, kTrue, kNull, kError };

/// What one evaluation gave.
struct Judgement {
  Verdict verdict = Verdict::kUndecided;
  float margin = 0;          ///< 0 where the table keeps none
  std::uint32_t reason = 0;  ///< of kError: index into VerdictTable::reasons
};

/// The verdicts of one question, keyed by its tuple of argument texts: two bits a text where there
/// is one, two bits a pair in matrices for cross products, a hash table for everything else. Any
/// number of readers, or one writer.
class VerdictTable {
 public:
  /// `width`: texts of a key, 0 for a prompt without arguments.
  VerdictTable(std::size_t width, bool keeps_margins);

  std::size_t width() const { return width_; }
  bool keeps_margins() const { return keeps_margins_; }

  /// Gives the cross product rows x columns two bits a pair (and a float where margins are kept),
  /// undecided. Keys of pairs are (row text, column text). REQUIRES: width 2, each list without
  /// repeats.
  void AddMatrix(std::span<const TextId> rows, std::span<const TextId> columns);

  Judgement Find(std::span<const TextId> key) const;
  /// Overwrites. REQUIRES: verdict is not kUndecided and, with kError, `reason` non-empty.
  void Set(std::span<const TextId> key, Verdict verdict, float margin, const std::string& reason);

  std::uint64_t decided() const { return decided_; }
  const std::vector<std::string>& reasons() const { return reasons_; }

  /// A key whose evaluation failed.
  struct Failure {
    std::vector<TextId> key;
    std::uint32_t reason = 0;
    std::uint64_t rows = 0;  ///< rows or pairs of rows that have no verdict because of it
  };
  /// Counts rows without verdict. REQUIRES: the key's evaluation failed.
  void CountFailedRows(std::span<const TextId> key, std::uint64_t rows);
  std::vector<Failure> Failures() const;

 private:
  struct Matrix {
    bool is_line = false;               ///< of width 1: cell = TextId, grows as verdicts come
    std::vector<std::uint32_t> row_of;  ///< index = TextId, kAbsent where it is no row
    std::vector<std::uint32_t> column_of;
    std::size_t columns = 0;
    std::vector<std::uint8_t> bits;  ///< four cells a byte
    std::vector<float> margins;      ///< empty unless kept
  };
  struct Cell {
    std::size_t matrix = 0;
    std::size_t index = 0;
  };

  void GrowLine(TextId last);
  bool FindCell(std::span<const TextId> key, Cell& cell) const;
  std::size_t Entry(std::span<const TextId> key);
  std::uint32_t ReasonIndex(const std::string& reason);

  std::size_t width_;
  bool keeps_margins_;
  std::uint64_t decided_ = 0;
  std::vector<Matrix> matrices_;
  TupleIndex keys_;                ///< of what no matrix decides
  std::vector<Verdict> verdicts_;  ///< by number in `keys_`, as `margins_`
  std::vector<float> margins_;
  /// Of a failed entry.
  struct FailedEntry {
    std::uint32_t reason = 0;
    std::uint64_t rows = 0;
  };
  std::unordered_map<std::size_t, FailedEntry> failed_entries_;
  std::vector<std::string> reasons_;
  std::unordered_map<std::string, std::uint32_t> reason_index_;
};

/// sigmoid(margin), > 0.5 exactly where the margin is > 0.
double Probability(float margin);

}  // namespace quail::exec
