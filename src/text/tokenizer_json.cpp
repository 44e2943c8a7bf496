#include "text/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "quail/error.h"
#include "text/byte_level_vocabulary.h"

namespace quail::text {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// Ids that no token has, at most, beside those named: vocabularies have small gaps, hostile files
/// large ones.
constexpr std::uint64_t kMaxGaps = 65536;

struct KnownPattern {
  std::string_view regex;
  SplitScheme scheme;
};

constexpr std::array<KnownPattern, 3> kPatterns{{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     SplitScheme::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitScheme::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitScheme::kQwen2},
}};

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kModel, "tokenizer.json: " + what);
}

/// The start of a value's JSON, for a message.
std::string Shown(element value) {
  constexpr std::size_t kMaxShown = 300;
  std::string text = simdjson::minify(value);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "..";
  return text;
}

/// The member, or nullopt where it is missing or null.
std::optional<element> Member(object owner, std::string_view name) {
  element value;
  if (owner[name].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

template <typename T>
T Get(element value, std::string_view what) {
  T result;
  if (value.get(result) != simdjson::SUCCESS) {
    Refuse(fmt::format("{} has the wrong type: {}", what, Shown(value)));
  }
  return result;
}

template <typename T>
T Require(object owner, std::string_view name) {
  const auto value = Member(owner, name);
  if (!value) Refuse(fmt::format("'{}' is missing", name));
  return Get<T>(*value, name);
}

bool Flag(object owner, std::string_view name, bool otherwise) {
  const auto value = Member(owner, name);
  return value ? Get<bool>(*value, name) : otherwise;
}

std::string_view TypeOf(object step) { return Require<std::string_view>(step, "type"); }

/// The steps of a Sequence, or the one step that `value` is.
std::vector<object> Steps(element value, std::string_view list_name) {
  const auto step = Get<object>(value, list_name);
  if (TypeOf(step) != "Sequence") return {step};
  std::vector<object> steps;
  for (const element item : Require<array>(step, list_name)) {
    steps.push_back(Get<object>(item, list_name));
  }
  return steps;
}

/// True for NFC.
bool ReadNormalizer(object root) {
  const auto value = Member(root, "normalizer");
  if (!value) return false;
  const std::vector<object> steps = Steps(*value, "normalizers");
  const auto is_nfc = [](object step) { return TypeOf(step) == "NFC"; };
  if (!std::all_of(steps.begin(), steps.end(), is_nfc)) {
    Refuse(fmt::format("normalizer is {}; known are none and NFC", Shown(*value)));
  }
  return !steps.empty();
}

bool IsByteLevel(object step, bool use_regex) {
  return TypeOf(step) == "ByteLevel" && !Flag(step, "add_prefix_space", true) &&
         Flag(step, "use_regex", true) == use_regex;
}

/// The scheme of a Split step with a known pattern.
std::optional<SplitScheme> SplitStepScheme(object step) {
  if (TypeOf(step) != "Split" || Flag(step, "invert", false)) return std::nullopt;
  if (Require<std::string_view>(step, "behavior") != "Isolated") return std::nullopt;
  const auto regex = Member(Require<object>(step, "pattern"), "Regex");
  if (!regex) return std::nullopt;
  const auto text = Get<std::string_view>(*regex, "Regex");
  for (const KnownPattern& known : kPatterns) {
    if (known.regex == text) return known.scheme;
  }
  return std::nullopt;
}

std::optional<SplitScheme> SchemeOf(const std::vector<object>& steps) {
  if (steps.size() == 1 && IsByteLevel(steps[0], true)) return SplitScheme::kGpt2;
  if (steps.size() != 2) return std::nullopt;
  if (TypeOf(steps[0]) == "Digits" && Flag(steps[0], "individual_digits", false) &&
      IsByteLevel(steps[1], true)) {
    return SplitScheme::kSmolLm;
  }
  return IsByteLevel(steps[1], false) ? SplitStepScheme(steps[0]) : std::nullopt;
}

SplitScheme ReadPreTokenizer(object root) {
  std::string found = "none";
  if (const auto value = Member(root, "pre_tokenizer")) {
    if (const auto scheme = SchemeOf(Steps(*value, "pretokenizers"))) return *scheme;
    found = Shown(*value);
  }
  Refuse(
      fmt::format("pre_tokenizer is {}; known are those of GPT-2 (ByteLevel), SmolLM (Digits, "
                  "ByteLevel), Llama 3 and Qwen2 (Split by their pattern, ByteLevel)",
                  found));
}

/// A string option that must be absent or empty.
void RequireEmpty(object model, std::string_view name) {
  const auto value = Member(model, name);
  if (value && !Get<std::string_view>(*value, name).empty()) {
    Refuse(fmt::format("model.{} is {}; known is none", name, Shown(*value)));
  }
}

void CheckModelOptions(object model) {
  const auto type = Member(model, "type");
  if (type && Get<std::string_view>(*type, "model.type") != "BPE") {
    Refuse(fmt::format("model.type is {}; known is BPE", Shown(*type)));
  }
  if (const auto dropout = Member(model, "dropout")) {
    Refuse(fmt::format("model.dropout is {}; known is none", Shown(*dropout)));
  }
  RequireEmpty(model, "continuing_subword_prefix");
  RequireEmpty(model, "end_of_word_suffix");
  if (Flag(model, "byte_fallback", false)) Refuse("model.byte_fallback is true; known is false");
  if (Flag(model, "fuse_unk", false)) Refuse("model.fuse_unk is true; known is false");
}

struct NamedToken {
  std::string_view name;
  std::uint64_t id;
};

std::vector<NamedToken> ReadVocabulary(object model) {
  std::vector<NamedToken> tokens;
  for (const auto field : Require<object>(model, "vocab")) {
    tokens.push_back({field.key, Get<std::uint64_t>(field.value, "a token's id")});
  }
  return tokens;
}

std::vector<NamedToken> ReadAddedTokens(object root) {
  std::vector<NamedToken> tokens;
  const auto list = Member(root, "added_tokens");
  if (!list) return tokens;
  for (const element item : Get<array>(*list, "added_tokens")) {
    const auto token = Get<object>(item, "an added token");
    tokens.push_back(
        {Require<std::string_view>(token, "content"), Require<std::uint64_t>(token, "id")});
  }
  return tokens;
}

/// One more than the greatest id.
std::size_t IdCount(const std::vector<NamedToken>& vocabulary,
                    const std::vector<NamedToken>& added) {
  std::uint64_t greatest = 0;
  for (const NamedToken& token : vocabulary) greatest = std::max(greatest, token.id);
  for (const NamedToken& token : added) greatest = std::max(greatest, token.id);
  const std::uint64_t limit = vocabulary.size() + added.size() + kMaxGaps;
  if (greatest >= limit) {
    Refuse(fmt::format("token id {} is too great for {} tokens", greatest,
                       vocabulary.size() + added.size()));
  }
  return static_cast<std::size_t>(greatest) + 1;
}

TokenId Id(const NamedToken& token) { return TokenId(static_cast<std::int32_t>(token.id)); }

void AddMerge(element item, ByteLevelVocabulary& builder) {
  std::string_view pair;
  if (item.get(pair) == simdjson::SUCCESS) {
    const std::size_t space = pair.find(' ');
    if (space == std::string_view::npos) Refuse(fmt::format("merge {} is not a pair", Shown(item)));
    return builder.AddMerge(pair.substr(0, space), pair.substr(space + 1));
  }
  const auto parts = Get<array>(item, "a merge");
  if (parts.size() != 2) Refuse(fmt::format("merge {} is not a pair", Shown(item)));
  builder.AddMerge(Get<std::string_view>(parts.at(0).value(), "a merge"),
                   Get<std::string_view>(parts.at(1).value(), "a merge"));
}

BpeVocabulary ReadModel(object root, object model) {
  const std::vector<NamedToken> named = ReadVocabulary(model);
  const std::vector<NamedToken> added = ReadAddedTokens(root);
  ByteLevelVocabulary builder(IdCount(named, added));
  for (const NamedToken& token : named) builder.SetToken(Id(token), token.name, false);
  for (const NamedToken& token : added) builder.SetToken(Id(token), token.name, true);
  for (const element merge : Require<array>(model, "merges")) AddMerge(merge, builder);

  std::optional<TokenId> unknown;
  if (const auto name = Member(model, "unk_token")) {
    unknown = builder.Find(Get<std::string_view>(*name, "model.unk_token"));
    if (!unknown) Refuse(fmt::format("model.unk_token is {}, which is no token", Shown(*name)));
  }
  BpeVocabulary vocabulary = builder.Take();
  vocabulary.unknown = unknown;
  return vocabulary;
}

}  // namespace

BpeVocabulary ReadTokenizerJson(std::string_view json) {
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(simdjson::padded_string(json)).get(document)) {
    Refuse(fmt::format("not JSON: {}", simdjson::error_message(error)));
  }
  const auto root = Get<object>(document, "the file");
  const auto model = Require<object>(root, "model");
  CheckModelOptions(model);
  const bool nfc = ReadNormalizer(root);
  const SplitScheme scheme = ReadPreTokenizer(root);
  BpeVocabulary vocabulary = ReadModel(root, model);
  vocabulary.nfc = nfc;
  vocabulary.scheme = scheme;
  vocabulary.ignore_merges = Flag(model, "ignore_merges", false);
  return vocabulary;
}

BpeVocabulary LoadTokenizerJson(const std::filesystem::path& path) {
  const base::MappedFile file = base::MappedFile::Open(path);
  const auto bytes = file.bytes();
  try {
    return ReadTokenizerJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace quail::text
