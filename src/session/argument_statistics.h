#pragma once

#include <vector>

#include "base/strong_id.h"
#include "exec/domain.h"
#include "plan/logical.h"
#include "text/text_store.h"

namespace quail::session {

/// The texts of a domain of one argument, without NULL.
std::vector<base::TextId> TextsOf(const exec::Domain& domain);

/// What planning knows of such a domain. Texts that no tokenizer counted are estimated by their
/// bytes.
plan::ArgumentStatistics StatisticsOf(const exec::Domain& domain, const text::TextStore& texts);

}  // namespace quail::session
