#pragma once

#include <cstdint>

#include "quailb/catalogue.h"
#include "quailb/random.h"

namespace quail::quailb {

/// The random streams of the suite: one a table or attribute. Numbers are part of the data's
/// identity.
enum class Latent : std::uint64_t {
  kValence = 100,  ///< how negative a review is
  kEnding,         ///< how little it says of the ending
  kActor,          ///< how little it says of actors
  kTalkative,      ///< how few aspects it discusses at all
  kAspect,         ///< (review, aspect): how little the review says of it
  kAspectTone,     ///< (review, aspect): how negative
  kSeverity,       ///< how harmless a report's event is
  kOrganNeuro,     ///< how little a term concerns the nerves
  kOrganCardio,    ///< .. the heart
  kReaction,       ///< (report, term)
  kPage,           ///< which page a claim is about
  kTopic,          ///< what a page is about, on a circle
  kPersonPage,     ///< how little a page is about a person
  kPersonClaim,    ///< a claim's own share of that
  kDate,           ///< how little a claim looks dated
  kPolarity,       ///< whether a claim contradicts its page
  kDispute,        ///< whether a neighbouring page contradicts it
  kDoubt,          ///< how little a claim finds support at all
  kCited,          ///< which passage an excerpt cites
  kStance,         ///< how little an excerpt distinguishes the cited case
  kProcedure,      ///< how little it is about procedure
  kRule,           ///< how little a passage states a rule
  kSubject,        ///< what a passage is about, on a circle
  kRecovery,       ///< of a trajectory: how late it recovers
  kFix,            ///< of a trajectory: how late it has a fix
  kTrajectory = 200,
  kPrompt = 300,
};

inline CounterRandom LatentStream(Latent latent, std::uint64_t seed) {
  return {seed, static_cast<std::uint64_t>(latent)};
}
inline CounterRandom LengthStream(Table table, std::uint64_t seed) {
  return {seed, 10 + static_cast<std::uint64_t>(table)};
}
inline CounterRandom TokenStream(Table table, std::uint64_t seed) {
  return {seed, 30 + static_cast<std::uint64_t>(table)};
}

}  // namespace quail::quailb
