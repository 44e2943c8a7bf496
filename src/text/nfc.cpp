#include "text/nfc.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace quail::text {
namespace {

// Hangul arithmetic of the Unicode standard, section 3.12.
constexpr char32_t kSyllableBase = 0xAC00;
constexpr char32_t kLeadBase = 0x1100;
constexpr char32_t kVowelBase = 0x1161;
constexpr char32_t kTailBase = 0x11A7;
constexpr char32_t kLeads = 19;
constexpr char32_t kVowels = 21;
constexpr char32_t kTails = 28;
constexpr char32_t kSyllables = kLeads * kVowels * kTails;

struct Mark {
  char32_t point;
  std::uint8_t combining_class;
};

bool InRange(char32_t point, char32_t base, char32_t count) {
  return point >= base && point < base + count;
}

/// The composition of two code points, or 0.
char32_t Compose(char32_t first, char32_t second) {
  if (InRange(first, kLeadBase, kLeads) && InRange(second, kVowelBase, kVowels)) {
    return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
  }
  if (InRange(first, kSyllableBase, kSyllables) && (first - kSyllableBase) % kTails == 0 &&
      InRange(second, kTailBase + 1, kTails - 1)) {
    return first + (second - kTailBase);
  }
  const unicode::Composition* end = unicode::kCompositions + unicode::kCompositionCount;
  const auto before = [](const unicode::Composition& entry,
                         const std::pair<char32_t, char32_t>& key) {
    return std::pair(entry.first, entry.second) < key;
  };
  const auto* found =
      std::lower_bound(unicode::kCompositions, end, std::pair(first, second), before);
  return found != end && found->first == first && found->second == second ? found->composed : 0;
}

/// One starter and the marks behind it, composed and written out when the next starter comes.
class Composer {
 public:
  explicit Composer(std::string& out) : out_(out) {}

  void Push(char32_t point) {
    if (InRange(point, kSyllableBase, kSyllables)) return PushSyllable(point);
    const unicode::Decomposition* end = unicode::kDecompositions + unicode::kDecompositionCount;
    const auto before = [](const unicode::Decomposition& entry, char32_t key) {
      return entry.point < key;
    };
    const auto* found = std::lower_bound(unicode::kDecompositions, end, point, before);
    if (found == end || found->point != point) return PushDecomposed(point);
    for (unsigned i = 0; i < found->count; ++i) {
      PushDecomposed(unicode::kDecompositionPool[found->offset + i]);
    }
  }

  void Flush() {
    ComposeMarks();
    if (has_starter_) base::AppendUtf8(starter_, out_);
    for (const Mark& mark : marks_) base::AppendUtf8(mark.point, out_);
    marks_.clear();
    has_starter_ = false;
  }

 private:
  void PushSyllable(char32_t point) {
    const char32_t index = point - kSyllableBase;
    PushDecomposed(kLeadBase + index / (kVowels * kTails));
    PushDecomposed(kVowelBase + index % (kVowels * kTails) / kTails);
    if (index % kTails != 0) PushDecomposed(kTailBase + index % kTails);
  }

  void PushDecomposed(char32_t point) {
    const std::uint8_t combining_class = unicode::CombiningClass(point);
    if (combining_class != 0) {
      marks_.push_back({point, combining_class});
      return;
    }
    ComposeMarks();
    const char32_t composed = has_starter_ && marks_.empty() ? Compose(starter_, point) : 0;
    if (composed != 0) {
      starter_ = composed;
      return;
    }
    Flush();
    starter_ = point;
    has_starter_ = true;
  }

  /// Sorts the marks canonically and joins to the starter those that compose with it and are not
  /// blocked.
  void ComposeMarks() {
    if (marks_.empty()) return;
    const auto by_class = [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    };
    std::stable_sort(marks_.begin(), marks_.end(), by_class);
    if (!has_starter_) return;
    std::size_t kept = 0;
    std::uint8_t last_kept_class = 0;
    for (const Mark& mark : marks_) {
      const bool blocked = last_kept_class == mark.combining_class;
      const char32_t composed = blocked ? 0 : Compose(starter_, mark.point);
      if (composed != 0) {
        starter_ = composed;
      } else {
        last_kept_class = mark.combining_class;
        marks_[kept++] = mark;
      }
    }
    marks_.resize(kept);
  }

  std::string& out_;
  char32_t starter_ = 0;
  bool has_starter_ = false;
  std::vector<Mark> marks_;
};

}  // namespace

bool QuickCheckNfc(std::string_view text) {
  std::uint8_t last_class = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t ascii_end = base::SkipAscii(text, i);
    if (ascii_end != i) {
      last_class = 0;
      i = ascii_end;
      continue;
    }
    const base::CodePoint code = base::DecodeUtf8(text.data() + i);
    i += code.length;
    const std::uint8_t properties = unicode::Properties(code.value);
    if ((properties & unicode::kNfcMaybe) != 0) return false;
    const std::uint8_t combining_class =
        (properties & unicode::kMark) != 0 ? unicode::CombiningClass(code.value) : 0;
    if (combining_class != 0 && combining_class < last_class) return false;
    last_class = combining_class;
  }
  return true;
}

std::string ToNfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Composer composer(out);
  for (std::size_t i = 0; i < text.size();) {
    const base::CodePoint code = base::DecodeUtf8(text.data() + i);
    composer.Push(code.value);
    i += code.length;
  }
  composer.Flush();
  return out;
}

}  // namespace quail::text
