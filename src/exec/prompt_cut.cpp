#include "exec/prompt_cut.h"

#include <algorithm>

#include "base/check.h"

namespace quail::exec {

std::vector<std::size_t> KeptLengths(std::span<const std::size_t> lengths, std::size_t room) {
  std::vector<std::size_t> ascending(lengths.begin(), lengths.end());
  std::ranges::sort(ascending);
  std::size_t most = ascending.empty() ? 0 : ascending.back();
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const std::size_t share = room / (ascending.size() - i);
    if (ascending[i] > share) {
      most = share;
      break;
    }
    room -= ascending[i];
  }
  std::vector<std::size_t> kept;
  for (const std::size_t length : lengths) kept.push_back(std::min(length, most));
  return kept;
}

PairRoom RoomOfPair(std::size_t anchor, std::size_t partner, std::size_t room, std::size_t grain) {
  QUAIL_CHECK(anchor + partner > room && grain > 0);
  const std::size_t half = room / 2;
  if (anchor <= half) return {anchor, room - anchor};
  if (partner > half) return {half, half};
  const std::size_t beside = (partner + grain - 1) / grain * grain;
  return {std::max(half, room - std::min(room, beside)), partner};
}

void AppendKept(std::span<const base::TokenId> text, std::size_t kept, plan::OnLong on_long,
                std::vector<std::span<const base::TokenId>>& pieces) {
  if (kept >= text.size()) return pieces.push_back(text);
  switch (on_long) {
    case plan::OnLong::kError:
      QUAIL_CHECK_MSG(false, "a text that must stay whole is cut");
    case plan::OnLong::kHead:
      return pieces.push_back(text.first(kept));
    case plan::OnLong::kTail:
      return pieces.push_back(text.last(kept));
    case plan::OnLong::kMiddle:
      pieces.push_back(text.first(kept - kept / 2));
      pieces.push_back(text.last(kept / 2));
  }
}

}  // namespace quail::exec
