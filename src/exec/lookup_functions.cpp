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

/// A lookup's call and text ids, row by row.
struct Keys {
  std::vector<TextId> ids;  ///< [rows, width]
  std::size_t width = 0;

  std::span<const TextId> row(std::size_t i) const {
    return std::span(ids).subspan(i * width, width);
  }
};

Keys ReadKeys(Arguments arguments, std::size_t rows) {
  Keys keys{{}, arguments.size()};
  keys.ids.reserve(rows * keys.width);
  for (std::size_t row = 0; row < rows; ++row) {
    for (const ScalarColumn& column : arguments) keys.ids.push_back(IdAt(column, row));
  }
  return keys;
}

/// What is noted of the lookups of calls on demand: nothing, that their values were read, or that
/// what comes next waits for them.
enum class Notes : std::uint8_t { kNothing, kReads, kAwaited };

void Note(const LookupSource& source, Notes notes, const Lookups& lookups) {
  if (source.on_demand == nullptr || notes == Notes::kNothing) return;
  notes == Notes::kReads ? source.on_demand->Note(lookups) : source.on_demand->NoteAwaited(lookups);
}

/// Calls write(row, call, key) for each row of a lookup's arguments: the call's number, then its
/// text ids.
template <typename Write>
void ForEachKey(const LookupSource& source, Arguments arguments, std::size_t rows, Notes notes,
                Write write) {
  RequireStatement(source);
  const Keys keys = ReadKeys(arguments.subspan(1), rows);
  std::size_t noted = 0;  // rows before it were noted
  plan::CallId known(0);
  for (std::size_t row = 0; row < rows; ++row) {
    const plan::CallId call(IdAt(arguments[0], row).value());
    if (row == 0 || call != known) RequireOurs(IsCall(source, call, keys.width));
    known = call;
    write(row, call, keys.row(row));
    const bool ends = row + 1 == rows || IdAt(arguments[0], row + 1).value() != call.value();
    if (!ends) continue;
    const std::size_t count = row + 1 - noted;
    const auto ids = std::span(keys.ids).subspan(noted * keys.width, count * keys.width);
    Note(source, notes, {.call = call, .ids = ids, .rows = count});
    noted = row + 1;
  }
}

/// As ForEachKey, of a lookup that belongs to an early stop: stop, call, width, then `width` ids of
/// a row and the call's.
template <typename Write>
void ForEachKeyUntil(const LookupSource& source, Arguments arguments, std::size_t rows, Notes notes,
                     Write write) {
  constexpr std::size_t kHead = 3;
  RequireStatement(source);
  if (rows == 0) return;
  // The same in every row: they are literals in our SQL.
  const std::size_t stop = IdAt(arguments[0], 0).value();
  const plan::CallId call(IdAt(arguments[1], 0).value());
  const std::size_t width = IdAt(arguments[2], 0).value();
  const Keys keys = ReadKeys(arguments.subspan(kHead), rows);
  RequireOurs(source.on_demand != nullptr && width <= keys.width &&
              source.on_demand->IsStop(stop, call) && IsCall(source, call, keys.width - width));
  for (std::size_t row = 0; row < rows; ++row) write(row, call, keys.row(row).subspan(width));
  Note(source, notes,
       {.call = call, .ids = keys.ids, .rows = rows, .stop = stop, .row_width = width});
}

/// One row of a lookup.
struct LookupRow {
  std::size_t row;
  plan::CallId call;
  std::span<const TextId> key;
};

/// What a lookup of a call returns.
struct LookupKind {
  const char* name;
  ScalarType result;
  /// False where there is none, and nothing was written.
  bool (*write)(const StatementVerdicts&, const LookupRow&, ScalarOutput&);
  void (*stand_in)(bool truth, std::size_t row, ScalarOutput&);
};

constexpr std::array<LookupKind, 3> kLookups = {{
    {"verdict", ScalarType::kBoolean,
     [](const StatementVerdicts& verdicts, const LookupRow& at, ScalarOutput& out) {
       const auto truth = verdicts.Truth(at.call, at.key);
       if (truth) out.SetBoolean(at.row, *truth);
       return truth.has_value();
     },
     [](bool truth, std::size_t row, ScalarOutput& out) { out.SetBoolean(row, truth); }},
    {"probability", ScalarType::kDouble,
     [](const StatementVerdicts& verdicts, const LookupRow& at, ScalarOutput& out) {
       const auto value = verdicts.Probability(at.call, at.key);
       if (value) out.SetDouble(at.row, *value);
       return value.has_value();
     },
     [](bool truth, std::size_t row, ScalarOutput& out) { out.SetDouble(row, truth ? 1 : 0); }},
    {"error", ScalarType::kText,
     [](const StatementVerdicts& verdicts, const LookupRow& at, ScalarOutput& out) {
       const auto reason = verdicts.Failure(at.call, at.key);
       if (reason) out.SetText(at.row, *reason);
       return reason.has_value();
     },
     [](bool, std::size_t row, ScalarOutput& out) { out.SetNull(row); }},
}};

/// Writes what a lookup returns. Where a planned call has no verdict that is noted.
void Write(LookupSource& source, const LookupKind& kind, const LookupRow& at, ScalarOutput& out) {
  const StatementVerdicts& verdicts = *source.verdicts;
  if (kind.write(verdicts, at, out)) return;
  const bool unasked = !verdicts.call(at.call).on_demand && !verdicts.IsDecided(at.call, at.key);
  if (unasked) source.unasked.Note(at.call);
  const auto stand_in = source.unasked.stand_in();
  unasked&& stand_in ? kind.stand_in(*stand_in, at.row, out) : out.SetNull(at.row);
}

ScalarFunction Lookup(std::string name, ScalarType result,
                      decltype(ScalarFunction::invoke) invoke) {
  return {std::move(name), {ScalarType::kInteger}, ScalarType::kInteger, result, std::move(invoke)};
}

/// quail_verdict(call, id..) and so on; quail_known_verdict(..), which no call on demand takes note
/// of; quail_verdict_until(..) of an early stop.
void RegisterLookup(relational::Connection& connection, LookupSource& source,
                    const LookupKind& kind) {
  for (const Notes notes : {Notes::kReads, Notes::kNothing}) {
    const auto invoke = [&source, kind, notes](Arguments arguments, std::size_t rows,
                                               ScalarOutput& out) {
      source.unasked.Count(rows);
      ForEachKey(source, arguments, rows, notes,
                 [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                   Write(source, kind, {row, call, key}, out);
                 });
    };
    connection.Register(
        Lookup(std::string(notes == Notes::kReads ? "quail_" : "quail_known_") + kind.name,
               kind.result, invoke));
  }
  const auto until = [&source, kind](Arguments arguments, std::size_t rows, ScalarOutput& out) {
    ForEachKeyUntil(source, arguments, rows, Notes::kReads,
                    [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                      Write(source, kind, {row, call, key}, out);
                    });
  };
  connection.Register(Lookup(std::string("quail_") + kind.name + "_until", kind.result, until));
}

/// quail_is_decided(call, id..), quail_is_decided_until(..) of an early stop: whether a call on
/// demand needs no evaluation any more. What reads it waits for the verdict, so it is asked.
void RegisterDecided(relational::Connection& connection, const LookupSource& source) {
  const auto invoke = [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
    ForEachKey(source, arguments, rows, Notes::kAwaited,
               [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                 out.SetBoolean(row, source.verdicts->IsDecided(call, key));
               });
  };
  connection.Register(Lookup("quail_is_decided", ScalarType::kBoolean, invoke));
  const auto until = [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
    ForEachKeyUntil(source, arguments, rows, Notes::kAwaited,
                    [&](std::size_t row, plan::CallId call, std::span<const TextId> key) {
                      out.SetBoolean(row, source.verdicts->IsDecided(call, key));
                    });
  };
  connection.Register(Lookup("quail_is_decided_until", ScalarType::kBoolean, until));
}

/// quail_met(condition, stop, id..): the condition, INTEGER, as BOOLEAN; takes note where it is
/// TRUE that the early stop's row needs no more.
ScalarFunction MetFunction(const LookupSource& source) {
  return {"quail_met",
          {ScalarType::kInteger, ScalarType::kInteger},
          ScalarType::kInteger,
          ScalarType::kBoolean,
          [&source](Arguments arguments, std::size_t rows, ScalarOutput& out) {
            constexpr std::size_t kHead = 2;
            RequireStatement(source);
            if (rows == 0) return;
            const std::size_t stop = IdAt(arguments[1], 0).value();
            RequireOurs(source.on_demand != nullptr && source.on_demand->IsStop(stop));
            const Keys keys = ReadKeys(arguments.subspan(kHead), rows);
            for (std::size_t row = 0; row < rows; ++row) {
              if (arguments[0].is_null(row)) {
                out.SetNull(row);
                continue;
              }
              const bool met = arguments[0].integers[row] != 0;
              out.SetBoolean(row, met);
              if (met) source.on_demand->NoteMet(stop, keys.row(row));
            }
          }};
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
                  ForEachKey(source, arguments, rows, Notes::kNothing,
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
            std::vector<std::size_t> places;
            std::vector<std::string_view> texts;
            for (std::size_t row = 0; row < rows; ++row) {
              if (arguments[0].is_null(row)) {
                out.SetNull(row);
                continue;
              }
              places.push_back(row);
              texts.push_back(arguments[0].texts[row]);
            }
            std::vector<TextId> ids(texts.size());
            source.texts->Intern(texts, ids);
            for (std::size_t i = 0; i < ids.size(); ++i) {
              out.SetInteger(places[i], static_cast<std::int32_t>(ids[i].value()));
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
  for (const LookupKind& kind : kLookups) RegisterLookup(connection, source, kind);
  RegisterDecided(connection, source);
  connection.Register(MetFunction(source));
  connection.Register(TokensFunction(source));
}

}  // namespace quail::exec
