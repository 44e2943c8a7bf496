#include "text/chat_template.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "quail/error.h"

namespace quail::text {
namespace {

/// How a family of templates writes its turns.
struct TurnForm {
  std::string_view name;
  std::string_view system;  ///< opens the system's turn
  std::string_view user;    ///< opens the user's turn
  std::string_view end;     ///< closes a turn
  std::string_view answer;  ///< opens the model's turn
  std::string_view first;   ///< before all, where the template writes bos_token
  /// The markers `<|..|>` that are its own; the first two tell it.
  std::array<std::string_view, 6> markers;
};

constexpr std::array<TurnForm, 2> kForms{{
    {.name = "ChatML",
     .system = "<|im_start|>system\n",
     .user = "<|im_start|>user\n",
     .end = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .first = "",
     .markers = {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}},
    {.name = "Llama 3",
     .system = "<|start_header_id|>system<|end_header_id|>\n\n",
     .user = "<|start_header_id|>user<|end_header_id|>\n\n",
     .end = "<|eot_id|>",
     .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .first = "<|begin_of_text|>",
     .markers = {"<|start_header_id|>", "<|eot_id|>", "<|end_header_id|>", "<|begin_of_text|>",
                 "<|eom_id|>", "<|python_tag|>"}},
}};

/// What Qwen3's template writes where thinking is switched off.
constexpr std::string_view kNoThoughts = "<think>\n\n</think>\n\n";

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kModel, "chat template: " + base::Escaped(what));
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Jinja writes a line feed in a literal as itself or as `\n`.
std::string WithLineFeeds(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\\n")) {
      plain += '\n';
      ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

const TurnForm& FormOf(std::string_view text) {
  std::string known;
  for (const TurnForm& form : kForms) {
    if (Contains(text, form.markers[0]) && Contains(text, form.markers[1])) return form;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", form.name, form.markers[0]);
  }
  Refuse("its turns are of no known form; known are " + known);
}

void CheckMarkers(std::string_view text, const TurnForm& form) {
  for (std::size_t at = text.find("<|"); at != std::string_view::npos; at = text.find("<|", at)) {
    const std::size_t end = text.find("|>", at);
    if (end == std::string_view::npos) return;
    const std::string_view marker = text.substr(at, end + 2 - at);
    if (std::ranges::find(form.markers, marker) == form.markers.end()) {
      Refuse(
          fmt::format("it has the marker '{}', which {} has not", marker.substr(0, 64), form.name));
    }
    at = end;
  }
  for (const std::string_view date : {"strftime_now", "date_string", "Today Date"}) {
    if (Contains(text, date)) {
      Refuse("it writes today's date into the prompt, and verdicts may not depend on that");
    }
  }
}

/// The system's turn that the template writes of its own where a conversation has none: one literal
/// from the turn's begin to its end.
std::string_view OwnSystemTurn(std::string_view text, const TurnForm& form) {
  for (std::size_t at = text.find(form.system); at != std::string_view::npos;
       at = text.find(form.system, at + 1)) {
    const std::size_t end = text.find(form.end, at);
    if (end == std::string_view::npos) return {};
    const std::string_view turn = text.substr(at, end + form.end.size() - at);
    const char quote = at == 0 ? '\0' : text[at - 1];
    const bool literal = (quote == '\'' || quote == '"') && !Contains(turn, {&quote, 1});
    if (literal && !Contains(turn, "{{") && !Contains(turn, "{%")) return turn;
  }
  return {};
}

/// Control tokens by their names, the text between them as text.
void Append(const BpeTokenizer& tokenizer, std::string_view text, std::vector<TokenId>& ids) {
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find('<'), text.size());
    if (begin > 0) {
      tokenizer.Encode(text.substr(0, begin), ids);
      text.remove_prefix(begin);
      continue;
    }
    const std::size_t end = text.find('>');
    const std::string_view name = text.substr(0, end == std::string_view::npos ? 1 : end + 1);
    const auto id = tokenizer.FindControl(name);
    if (!id && name.starts_with("<|")) {
      Refuse(fmt::format("the vocabulary has no token '{}'", name));
    }
    if (id) {
      ids.push_back(*id);
    } else {
      tokenizer.Encode(name, ids);
    }
    text.remove_prefix(name.size());
  }
}

}  // namespace

ChatPieces ReadChatPieces(std::string_view chat_template, const BpeTokenizer& tokenizer) {
  const std::string text = WithLineFeeds(chat_template);
  const TurnForm& form = FormOf(text);
  CheckMarkers(text, form);
  ChatPieces pieces;
  if (Contains(text, "bos_token")) Append(tokenizer, form.first, pieces.before);
  Append(tokenizer, OwnSystemTurn(text, form), pieces.before);
  Append(tokenizer, form.user, pieces.before);
  Append(tokenizer, form.end, pieces.after);
  Append(tokenizer, form.answer, pieces.after);
  if (Contains(text, "enable_thinking")) Append(tokenizer, kNoThoughts, pieces.after);
  return pieces;
}

std::optional<std::string> LoadChatTemplate(const std::filesystem::path& folder) {
  const auto read = [](const std::filesystem::path& path) {
    const base::MappedFile file = base::MappedFile::Open(path);
    const auto bytes = file.bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::error_code ignored;
  if (std::filesystem::exists(folder / "chat_template.jinja", ignored)) {
    return read(folder / "chat_template.jinja");
  }
  const std::filesystem::path path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (const auto error = parser.parse(simdjson::padded_string(read(path))).get(document)) {
    throw Error(ErrorCode::kModel,
                fmt::format("{}: not JSON: {}", path.string(), simdjson::error_message(error)));
  }
  simdjson::dom::element found;
  if (document["chat_template"].get(found) != simdjson::SUCCESS || found.is_null()) {
    return std::nullopt;
  }
  std::string_view text;
  if (found.get(text) != simdjson::SUCCESS) {
    throw Error(ErrorCode::kModel, fmt::format("{}: chat_template is not one text", path.string()));
  }
  return std::string(text);
}

}  // namespace quail::text
