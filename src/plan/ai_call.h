#pragma once

#include <string>
#include <vector>

#include "plan/physical.h"
#include "plan/prompt_form.h"
#include "plan/source_text.h"
#include "sql/ai_function.h"

namespace quail::plan {

/// An AI call as it is written: its function, canonical prompt and options; no names resolved.
struct AiCall {
  const sql::AiFunction* function = nullptr;
  CallKind kind = CallKind::kFilter;
  PromptForm prompt;
  CallOptions options;
  std::vector<std::string> notices;
};

bool IsAiCall(const sql::Json& node);
/// Whether an AI call is anywhere at or below `node`, nested queries included.
bool ContainsAiCall(const sql::Json& node);

/// Whether a call's result is a STRUCT of value and error; of wrong arguments this says nothing.
bool AsksForErrorDetails(sql::Json call);

/// REQUIRES: IsAiCall(node). Throws Error{kBind | kUnsupported} at the argument that is wrong.
AiCall ReadAiCall(sql::Json& node, const SourceText& source);
/// Throws what ReadAiCall does of a call at or below a node that nobody reads: it is told although
/// the call is not asked.
void CheckAiCalls(sql::Json unread, const SourceText& source);

}  // namespace quail::plan
