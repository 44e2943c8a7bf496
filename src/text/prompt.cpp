#include "text/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"

namespace quail::text {
namespace {

/// Longer slot numbers than this cannot name an argument; they are text.
constexpr std::size_t kMaxSlotDigits = 6;

struct SlotMatch {
  int slot;
  std::size_t length;  ///< bytes of `{n}`
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// `{n}` without leading zero at the beginning of `rest`.
std::optional<SlotMatch> MatchSlot(std::string_view rest) {
  std::size_t end = 1;
  int slot = 0;
  while (end < rest.size() && IsDigit(rest[end]) && end <= kMaxSlotDigits) {
    slot = slot * 10 + (rest[end] - '0');
    ++end;
  }
  const std::size_t digits = end - 1;
  if (digits == 0 || end >= rest.size() || rest[end] != '}') return std::nullopt;
  if (digits > 1 && rest[1] == '0') return std::nullopt;
  return SlotMatch{slot, end + 1};
}

bool IsAsciiSpaceOrColon(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' || c == ':';
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kQuotePairs{{
    {"\"", "\""},
    {"'", "'"},
    {"`", "`"},
    {"“", "”"},
    {"‘", "’"},
    {"«", "»"},
    {"„", "“"},
}};

bool StripSpaceAndColon(std::string_view& before, std::string_view& after) {
  const std::size_t size = before.size() + after.size();
  while (!before.empty() && IsAsciiSpaceOrColon(before.back())) before.remove_suffix(1);
  while (!after.empty() && IsAsciiSpaceOrColon(after.front())) after.remove_prefix(1);
  return before.size() + after.size() != size;
}

bool StripQuotes(std::string_view& before, std::string_view& after) {
  for (const auto& [open, close] : kQuotePairs) {
    if (!before.ends_with(open) || !after.starts_with(close)) continue;
    before.remove_suffix(open.size());
    after.remove_prefix(close.size());
    return true;
  }
  return false;
}

/// The question of a prompt whose only slot stands once, between two literals.
std::string SingleSlotQuestion(std::string_view before, std::string_view after) {
  std::string_view stripped_before = before;
  std::string_view stripped_after = after;
  bool stripped = true;
  while (stripped) {
    stripped = StripSpaceAndColon(stripped_before, stripped_after);
    stripped = StripQuotes(stripped_before, stripped_after) || stripped;
  }
  if (stripped_before.empty() && stripped_after.empty()) return "the document";
  if (stripped_before.empty()) return std::string(stripped_after);
  if (stripped_after.empty()) return std::string(stripped_before);
  return fmt::format("{}the document{}", before, after);
}

std::string SlotLabel(int slot) { return fmt::format("DOCUMENT {{{}}}", slot); }

/// The slots in use, ascending, each once.
std::vector<int> UsedSlots(const PromptTemplate& prompt) {
  std::vector<int> slots;
  for (const PromptTemplate::Part& part : prompt.parts) {
    if (part.slot >= 0) slots.push_back(part.slot);
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

/// The template with every slot printed as a reference.
std::string Question(const PromptTemplate& prompt, bool numbered) {
  const auto is_slot = [](const PromptTemplate::Part& part) { return part.slot >= 0; };
  const auto& parts = prompt.parts;
  if (!numbered && std::count_if(parts.begin(), parts.end(), is_slot) == 1) {
    const auto slot = std::find_if(parts.begin(), parts.end(), is_slot);
    std::string before;
    std::string after;
    for (auto part = parts.begin(); part != slot; ++part) before += part->literal;
    for (auto part = slot + 1; part != parts.end(); ++part) after += part->literal;
    return SingleSlotQuestion(before, after);
  }
  std::string question;
  for (const PromptTemplate::Part& part : parts) {
    if (part.slot < 0) {
      question += part.literal;
    } else {
      question += numbered ? SlotLabel(part.slot) : "the document";
    }
  }
  return question;
}

std::string Instruction(const AnswerWords& words, std::string_view question) {
  return fmt::format("Evaluate {} or {} for the following question:\n{}", words.yes, words.no,
                     question);
}

constexpr std::string_view kCue = "\nANSWER:";

PromptPiece Literal(std::string text) { return {std::move(text), -1, {}}; }
PromptPiece Argument(int argument) { return {{}, argument, {}}; }

/// `[DOCUMENT {a}:\n][a][\nDOCUMENT {b}:\n][b]..`, the first label without the line feed.
std::vector<PromptPiece> LabelledDocuments(const std::vector<int>& slots) {
  std::vector<PromptPiece> pieces;
  for (const int slot : slots) {
    const std::string_view separator = pieces.empty() ? "" : "\n";
    pieces.push_back(Literal(fmt::format("{}{}:\n", separator, SlotLabel(slot))));
    pieces.push_back(Argument(slot));
  }
  return pieces;
}

}  // namespace

PromptTemplate PromptTemplate::Parse(std::string_view canonical) {
  PromptTemplate result;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) result.parts.push_back({std::move(literal), -1});
    literal.clear();
  };
  for (std::size_t i = 0; i < canonical.size();) {
    const std::string_view rest = canonical.substr(i);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      literal += rest.front();
      i += 2;
    } else if (const auto match = rest.front() == '{' ? MatchSlot(rest) : std::nullopt) {
      flush();
      result.parts.push_back({{}, match->slot});
      result.slot_count = std::max(result.slot_count, match->slot + 1);
      i += match->length;
    } else {
      literal += rest.front();
      ++i;
    }
  }
  flush();
  return result;
}

void PutTurnsAround(const ChatPieces& chat, FilterPrompt& prompt) {
  prompt.document.insert(prompt.document.begin(), {{}, -1, chat.before});
  prompt.question.push_back({{}, -1, chat.after});
}

void PutTurnsAround(const ChatPieces& chat, JoinPrompt& prompt) {
  prompt.anchor.insert(prompt.anchor.begin(), {{}, -1, chat.before});
  prompt.partner.push_back({{}, -1, chat.after});
}

FilterPrompt LayOutFilter(const PromptTemplate& prompt, const AnswerWords& words) {
  const std::vector<int> slots = UsedSlots(prompt);
  FilterPrompt layout;
  if (slots.size() == 1) {
    layout.document = {Literal("DOCUMENT:\n"), Argument(slots.front())};
  } else {
    layout.document = LabelledDocuments(slots);
  }
  std::string question = slots.empty() ? "" : "\n";
  question += Instruction(words, Question(prompt, slots.size() > 1));
  question += kCue;
  layout.question = {Literal(std::move(question))};
  return layout;
}

JoinPrompt LayOutJoin(const PromptTemplate& prompt, const std::vector<bool>& is_anchor,
                      const AnswerWords& words) {
  std::vector<int> anchors;
  std::vector<int> partners;
  for (const int slot : UsedSlots(prompt)) {
    QUAIL_CHECK_LT(static_cast<std::size_t>(slot), is_anchor.size());
    (is_anchor[static_cast<std::size_t>(slot)] ? anchors : partners).push_back(slot);
  }
  QUAIL_CHECK(!anchors.empty() && !partners.empty());

  JoinPrompt layout;
  std::string note;
  if (anchors.size() == 1) {
    layout.anchor = {Literal("DOCUMENT:\n"), Argument(anchors.front())};
    note = fmt::format("\n(The document above is {}.)", SlotLabel(anchors.front()));
  } else {
    layout.anchor = LabelledDocuments(anchors);
  }
  layout.kept = {
      Literal(note + "\n" + Instruction(words, Question(prompt, true))),
      Literal(fmt::format("\n{}:\n", SlotLabel(partners.front()))),
  };
  layout.partner = LabelledDocuments(partners);
  layout.partner.erase(layout.partner.begin());
  layout.partner.push_back(Literal(std::string(kCue)));
  return layout;
}

}  // namespace quail::text
