#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace quail {

/// Kind of a failure that a user or the environment caused. The command line maps each to an exit
/// code.
enum class ErrorCode {
  kUsage,        ///< wrong option, setting or call of the API
  kSyntax,       ///< the text is not SQL of its dialect
  kUnfinished,   ///< the text ends inside of a string, comment or name
  kBind,         ///< unknown or ambiguous name, wrong argument
  kUnsupported,  ///< known, but not supported yet
  kQuery,        ///< the relational engine failed, or a failed row must fail the query
  kIo,           ///< a file cannot be read or written
  kCorrupt,      ///< a file's content contradicts its format
  kModel,        ///< model, tokenizer or adapter not usable
  kDevice,       ///< device, driver or library not usable
  kOutOfMemory,
  kBudget,       ///< refused or stopped by a budget
  kInterrupted,  ///< cancelled by the user
};

/// A place in the user's text.
struct TextPosition {
  std::size_t offset = 0;  ///< bytes from the beginning
  std::size_t line = 1;    ///< 1-based
  std::size_t column = 1;  ///< 1-based, in characters (code points)
};

/// The one exception type: everything that a user or the environment can cause. It ends the query.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message,
        std::optional<TextPosition> position = std::nullopt)
      : std::runtime_error(message), code_(code), position_(position) {}

  ErrorCode code() const { return code_; }
  const std::optional<TextPosition>& position() const { return position_; }

 private:
  ErrorCode code_;
  std::optional<TextPosition> position_;
};

}  // namespace quail
