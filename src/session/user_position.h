#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "quail/error.h"
#include "sql/statement.h"

/// The only place of the session that looks at errors on their way: it moves their positions into
/// the text that the user sees, and lets a report keep them. Each is thrown on.
namespace quail::session {

/// Runs `call`; `locate` gives an Error's position in the user's text, or nothing where it has no
/// place there.
template <typename Call, typename Locate>
auto Located(Call call, Locate locate) -> decltype(call()) {
  try {
    return call();
  } catch (const Error& error) {
    if (!error.position()) throw;
    throw Error(error.code(), error.what(), locate(*error.position()));
  }
}

/// Runs `call`, whose Errors have positions in SQL in which the query of `statement` begins at byte
/// `prefix`; they go on with positions in `script`, in which the user wrote it.
template <typename Call>
auto InScript(std::string_view script, const sql::Statement& statement, std::size_t prefix,
              Call call) {
  return Located(call, [&](const TextPosition& position) -> std::optional<TextPosition> {
    if (position.offset < prefix) return std::nullopt;
    const std::size_t offset = std::min(position.offset - prefix, statement.query.size());
    return statement.Locate(script, offset);
  });
}

/// Runs `call`; shows an Error to `on_error`, if there is one, before it goes on. Memory that ran
/// out is an Error too.
template <typename Call>
auto Observed(Call call, const std::function<void(const Error&)>& on_error) -> decltype(call()) {
  try {
    return call();
  } catch (const Error& error) {
    if (on_error) on_error(error);
    throw;
  } catch (const std::bad_alloc&) {
    const Error error(ErrorCode::kOutOfMemory, "out of memory");
    if (on_error) on_error(error);
    throw error;
  }
}

/// Runs `call`; its Error, if it threw one.
template <typename Call>
std::optional<Error> ErrorOf(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// The same, only its message.
template <typename Call>
std::optional<std::string> Attempt(Call call) {
  if (const auto error = ErrorOf(call)) return error->what();
  return std::nullopt;
}

/// Runs `call`; its Error goes on with the file that it is about before its message.
template <typename Call>
auto AboutFile(std::string_view file, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", file, error.what()), error.position());
  }
}

/// Runs `call`; its Error goes on with the code that `recode` gives for its own, and with `place`
/// if it has none.
template <typename Call, typename Recode>
auto Recoded(Call call, Recode recode, std::optional<TextPosition> place = std::nullopt)
    -> decltype(call()) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(recode(error.code()), error.what(), error.position() ? error.position() : place);
  }
}

/// Runs `call`; its Error goes on as `reword` gives it.
template <typename Call, typename Reword>
auto Reworded(Call call, Reword reword) -> decltype(call()) {
  try {
    return call();
  } catch (const Error& error) {
    throw reword(error);
  }
}

/// Runs `call`, a cleanup whose own failure must not hide why it became necessary.
template <typename Call>
void Quietly(Call call) noexcept {
  try {
    call();
  } catch (const Error&) {
  }
}

}  // namespace quail::session
