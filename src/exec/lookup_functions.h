#pragma once

#include <functional>

#include "exec/on_demand.h"
#include "exec/statement_verdicts.h"
#include "exec/unasked_lookups.h"
#include "relational/connection.h"
#include "text/text_store.h"

namespace quail::exec {

/// What the lookup functions read while a statement runs. The owner keeps it alive as long as the
/// connection and sets `verdicts` for the statement that runs.
struct LookupSource {
  text::TextStore* texts = nullptr;
  const text::BpeTokenizer* tokenizer =
      nullptr;  ///< counts the tokens of texts that were never in a prompt
  const StatementVerdicts* verdicts = nullptr;
  OnDemandReads* on_demand = nullptr;  ///< set during the passes of an AskOnDemandStep
  UnaskedLookups unasked;
};

/// While it lives, lookups note what they read.
class ReadsScope {
 public:
  ReadsScope(LookupSource& lookups, OnDemandReads& reads) : lookups_(lookups) {
    lookups_.on_demand = &reads;
  }
  ~ReadsScope() { lookups_.on_demand = nullptr; }
  ReadsScope(const ReadsScope&) = delete;
  ReadsScope& operator=(const ReadsScope&) = delete;

 private:
  LookupSource& lookups_;
};

/// Makes quail_text_id(VARCHAR), quail_token_list_id(INTEGER[]), quail_verdict(call, id..),
/// quail_verdict_until, quail_probability, quail_tokens and quail_error known to the relational
/// engine (plan/physical.h says what they return).
void RegisterLookups(relational::Connection& connection, LookupSource& source);

}  // namespace quail::exec
