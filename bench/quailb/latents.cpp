#include "quailb/latents.h"

#include <algorithm>
#include <cmath>

namespace quail::quailb {

std::vector<double> LatentValues(Latent latent, std::uint64_t seed, std::size_t rows) {
  const CounterRandom random = LatentStream(latent, seed);
  std::vector<double> values;
  values.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) values.push_back(random.Unit(row));
  return values;
}

std::vector<double> PersonClaimValues(const Corpus& corpus) {
  const CounterRandom page = LatentStream(Latent::kPersonPage, corpus.seed);
  std::vector<double> values =
      LatentValues(Latent::kPersonClaim, corpus.seed, corpus.page_of_claim.size());
  for (std::size_t row = 0; row < values.size(); ++row) {
    values[row] = 0.25 * values[row] + 0.75 * page.Unit(corpus.page_of_claim[row]);
  }
  return values;
}

std::vector<double> EventValues(Latent latent, const Corpus& corpus) {
  const CounterRandom random = LatentStream(latent, corpus.seed);
  std::vector<double> values;
  for (const Snapshot& snapshot : corpus.snapshots) {
    values.push_back(random.Unit(snapshot.trajectory) - 0.06 * snapshot.step);
  }
  return values;
}

double CircleDistance(double a, double b) {
  const double distance = std::abs(a - b);
  return std::min(distance, 1 - distance);
}

}  // namespace quail::quailb
