#pragma once

#include <cstdint>
#include <vector>

#include "quailb/corpus.h"
#include "quailb/selection.h"
#include "quailb/streams.h"

namespace quail::quailb {

/// A latent attribute of rows, in (0, 1): small values have the property.
std::vector<double> LatentValues(Latent latent, std::uint64_t seed, std::size_t rows);
/// A claim's share of "is about a person": mostly that of its page.
std::vector<double> PersonClaimValues(const Corpus& corpus);
/// When a trace's trajectory reaches an event, less what has happened so far: small once it has.
std::vector<double> EventValues(Latent latent, const Corpus& corpus);
/// Places of pages (kTopic) or passages (kSubject) on a circle of length 1.
double CircleDistance(double a, double b);

}  // namespace quail::quailb
