#include "infer/prefill_batch.h"

namespace quail::infer {

void PrefillBatch::Clear() {
  tokens.clear();
  positions.clear();
  kv_slots.clear();
  runs.clear();
  spans.clear();
  answer_rows.clear();
  scored_tokens.clear();
}

}  // namespace quail::infer
