#include "exec/lookup_functions.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

using relational::ScalarColumn;
using relational::ScalarFunction;
using relational::ScalarOutput;
using relational::ScalarType;
using Arguments = std::span<const ScalarColumn>;

TextId IdAt(const ScalarColumn& column, std::size_t row) {
  if (column.is_null(row)) return kNullText;
  return TextId(static_cast<std::uint32_t>(column.integers[row]));
}

void RequireStatement(const LookupSource& source) {
  if (source.verdicts != nullptr) return;
  throw Error(ErrorCode::kQuery,
              "a lookup of verdicts can only run inside a statement with AI calls");
}

/// Our lookups are plain functions to the engine: a user may call one with numbers of his own.
void RequireOurs(bool ours) {
  if (ours) return;
  throw Error(ErrorCode::kQuery, "quail_verdict and its like are for SQL that Quail writes");
}
bool IsCall(const LookupSource& source, plan::CallId call, std::size_t width) {
  const StatementVerdicts& verdicts = *source.verdicts;
  return call.value() < verdicts.calls() && verdicts.call(call).arguments.size() == width;
}

/// Calls write(row, call, key) for each row of a lookup's arguments: the call's number, then its
/// text ids.
template <typename Write>
void ForEachKey(const LookupSource& source, Arguments arguments, std::size_t rows, Write write) {
  RequireStatement(source);
  const std::size_t width = arguments.size() - 1;
  std::vector<TextId> keys;
  keys.reserve(rows * width);
  std::size_t noted = 0;  // rows before it were noted
  plan::CallId known(0);
  for (std::size_t row = 0; row < rows; ++row) {
    const plan::CallId call(IdAt(arguments[0], row).value());
    if (row == 0 || call != known) RequireOurs(IsCall(source, call, width));
    known = call;
    for (std::size_t i = 0; i < width; ++i) keys.push_back(IdAt(arguments[i + 1], row));
    write(row, call, std::span<const TextId>(keys).subspan(row * width));
    const bool ends = row + 1 == rows || IdAt(arguments[0], row + 1).value() != call.value();
    if (!ends || source.on_demand == nullptr) continue;
    source.on_demand->Note(call, std::span<const TextId>(keys).subspan(noted * width),
                           row + 1 - noted);
    noted = row + 1;
  }
}

ScalarFunction Lookup(std::string name, ScalarType result,
                      decltype(ScalarFunction::invoke) invoke) {
  return {std::move(name), {ScalarType::kInteger}, ScalarType::kInteger, result, std::move(invoke)};
}

ScalarFunction VerdictFunction(const LookupSource& source) {
  return Lookup("quail_verdict", ScalarType::kBoolean,
                [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
                  ForEachKey(source, arguments, rows,
                             [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                               const auto truth = source.verdicts->Truth(call, key);
                               truth ? out.SetBoolean(row, *truth) : out.SetNull(row);
                             });
                });
}

/// The arguments of quail_verdict_until: stop, call, width, then `width` ids of a row and the
/// call's.
ScalarFunction VerdictUntilFunction(const LookupSource& source) {
  constexpr std::size_t kHead = 3;
  return Lookup("quail_verdict_until", ScalarType::kBoolean,
                [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
                  RequireStatement(source);
                  if (rows == 0) return;
                  // The same in every row: they are literals in our SQL.
                  const std::size_t stop = IdAt(arguments[0], 0).value();
                  const plan::CallId call(IdAt(arguments[1], 0).value());
                  const std::size_t width = IdAt(arguments[2], 0).value();
                  const std::size_t line = arguments.size() - kHead;
                  RequireOurs(source.on_demand != nullptr && width <= line &&
                              source.on_demand->IsStop(stop, call) &&
                              IsCall(source, call, line - width));
                  std::vector<TextId> keys;
                  keys.reserve(rows * line);
                  for (std::size_t row = 0; row < rows; ++row) {
                    for (std::size_t i = 0; i < line; ++i) {
                      keys.push_back(IdAt(arguments[kHead + i], row));
                    }
                    const auto key = std::span(keys).subspan(row * line + width, line - width);
                    const auto truth = source.verdicts->Truth(call, key);
                    truth ? out.SetBoolean(row, *truth) : out.SetNull(row);
                  }
                  source.on_demand->NoteUntil(stop, width, keys, rows);
                });
}

ScalarFunction ProbabilityFunction(const LookupSource& source) {
  return Lookup("quail_probability", ScalarType::kDouble,
                [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
                  ForEachKey(source, arguments, rows,
                             [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                               const auto value = source.verdicts->Probability(call, key);
                               value ? out.SetDouble(row, *value) : out.SetNull(row);
                             });
                });
}

ScalarFunction ErrorFunction(const LookupSource& source) {
  return Lookup("quail_error", ScalarType::kText,
                [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
                  ForEachKey(source, arguments, rows,
                             [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                               const auto reason = source.verdicts->Failure(call, key);
                               reason ? out.SetText(row, *reason) : out.SetNull(row);
                             });
                });
}

/// The tokens of a text, nothing where it has none.
std::optional<std::size_t> CountTokens(const LookupSource& source, TextId id) {
  if (id.value() >= source.texts->size()) return std::nullopt;
  if (source.texts->status(id) == text::TextStatus::kReady) return source.texts->tokens(id).size();
  std::vector<base::TokenId> tokens;
  if (source.tokenizer == nullptr || source.tokenizer->Encode(source.texts->text(id), tokens)) {
    return std::nullopt;
  }
  return tokens.size();
}

ScalarFunction TokensFunction(const LookupSource& source) {
  return Lookup("quail_tokens", ScalarType::kInteger,
                [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
                  ForEachKey(source, arguments, rows,
                             [&](std::size_t row, plan::CallId, std::span<const TextId> key) {
                               if (key.size() != 1 || key[0] == kNullText) return out.SetNull(row);
                               const auto count = CountTokens(source, key[0]);
                               if (!count) return out.SetNull(row);
                               out.SetInteger(row, static_cast<std::int32_t>(*count));
                             });
                });
}

ScalarFunction TextIdFunction(const LookupSource& source) {
  return {"quail_text_id",
          {ScalarType::kText},
          std::nullopt,
          ScalarType::kInteger,
          [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
            for (std::size_t row = 0; row < rows; ++row) {
              if (arguments[0].is_null(row)) {
                out.SetNull(row);
                continue;
              }
              const TextId id = source.texts->Intern(arguments[0].texts[row]);
              out.SetInteger(row, static_cast<std::int32_t>(id.value()));
            }
          }};
}

ScalarFunction TokenListIdFunction(const LookupSource& source) {
  return {"quail_token_list_id",
          {ScalarType::kIntegerList},
          std::nullopt,
          ScalarType::kInteger,
          [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
            const ScalarColumn& lists = arguments[0];
            std::vector<base::TokenId> tokens;
            for (std::size_t row = 0; row < rows; ++row) {
              if (lists.is_null(row)) {
                out.SetNull(row);
                continue;
              }
              tokens.clear();
              for (const std::int32_t id :
                   lists.integers.subspan(lists.list_offsets[row], lists.list_lengths[row])) {
                tokens.emplace_back(id);
              }
              const TextId id = source.texts->InternTokens(tokens);
              out.SetInteger(row, static_cast<std::int32_t>(id.value()));
            }
          }};
}

}  // namespace

void RegisterLookups(relational::Connection& connection, LookupSource& source) {
  connection.Register(TextIdFunction(source));
  connection.Register(TokenListIdFunction(source));
  connection.Register(VerdictFunction(source));
  connection.Register(VerdictUntilFunction(source));
  connection.Register(ProbabilityFunction(source));
  connection.Register(ErrorFunction(source));
  connection.Register(TokensFunction(source));
}

}  // namespace quail::exec
