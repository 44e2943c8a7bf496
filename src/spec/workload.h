#pragma once

namespace quail::spec {

/// What a run of the model amounts to. Real numbers, as estimates are means.
struct Workload {
  double tokens = 0;           ///< positions computed
  double attention_pairs = 0;  ///< query-key pairs, of one head of one layer
  double kv_written = 0;       ///< positions
  double kv_read = 0;          ///< positions, once for each run of queries that shares them
  double passes = 0;           ///< forward passes (chunks): each reads all weights

  Workload& operator+=(const Workload& other) {
    tokens += other.tokens;
    attention_pairs += other.attention_pairs;
    kv_written += other.kv_written;
    kv_read += other.kv_read;
    passes += other.passes;
    return *this;
  }
  friend Workload operator+(Workload a, const Workload& b) { return a += b; }
  friend Workload operator*(Workload a, double factor) {
    a.tokens *= factor;
    a.attention_pairs *= factor;
    a.kv_written *= factor;
    a.kv_read *= factor;
    a.passes *= factor;
    return a;
  }
};

}  // namespace quail::spec
