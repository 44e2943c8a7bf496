#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "text/bpe_tokenizer.h"
#include "text/prompt.h"

namespace quail::text {

/// What the chat template of a model (Jinja) puts around one message of the user, with the answer's
/// turn opened and thinking off. The template is not run: its turns are told by their markers
/// (ChatML, Llama 3), a system text that it adds by itself is read off its literals. Throws
/// Error{kModel} on a template with other markers, one that writes today's date, and where the
/// vocabulary lacks a marker.
ChatPieces ReadChatPieces(std::string_view chat_template, const BpeTokenizer& tokenizer);

/// The template of a folder with a HF tokenizer: chat_template.jinja, else tokenizer_config.json;
/// nothing where there is none. Throws Error{kIo | kModel}.
std::optional<std::string> LoadChatTemplate(const std::filesystem::path& folder);

}  // namespace quail::text
