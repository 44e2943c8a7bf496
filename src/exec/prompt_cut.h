#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/strong_id.h"
#include "plan/physical.h"

/// What a prompt that is too long keeps of its texts (option on_long). All lengths in tokens; pure
/// functions, so that the same question is cut in the same way wherever it is asked.
namespace quail::exec {

/// What each text keeps where all have `room` together: the longest are cut to one length, those
/// that are not longer stay whole.
std::vector<std::size_t> KeptLengths(std::span<const std::size_t> lengths, std::size_t room);

struct PairRoom {
  std::size_t anchor = 0;
  std::size_t partner = 0;
};

/// What both sides of a pair keep where they have `room` together: a side of up to half of it stays
/// whole, else it keeps at least that half. An anchor beside short partners is cut to a few lengths
/// only, `grain` apart, so that its KV serves many of them. REQUIRES: anchor + partner > room.
PairRoom RoomOfPair(std::size_t anchor, std::size_t partner, std::size_t room, std::size_t grain);

/// Appends what stays of a text: its first `kept` tokens (kHead), its last (kTail), or both ends as
/// two pieces (kMiddle). REQUIRES: `on_long` is not kError.
void AppendKept(std::span<const base::TokenId> text, std::size_t kept, plan::OnLong on_long,
                std::vector<std::span<const base::TokenId>>& pieces);

}  // namespace quail::exec
