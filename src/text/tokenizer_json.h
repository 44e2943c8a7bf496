#pragma once

#include <filesystem>
#include <string_view>

#include "text/bpe_tokenizer.h"

namespace quail::text {

/// Reads the text of a HF tokenizer.json with a byte-level BPE model. Added tokens are control
/// tokens here. Throws Error{kModel} on text that is no such file, and on any normalizer,
/// pre-tokenizer or model option whose effect on the ids is not known; the message names what was
/// found and what is known. Hostile text is safe.
BpeVocabulary ReadTokenizerJson(std::string_view json);

/// As ReadTokenizerJson; the path is part of the message. Throws Error{kIo} where the file cannot
/// be read.
BpeVocabulary LoadTokenizerJson(const std::filesystem::path& path);

}  // namespace quail::text
