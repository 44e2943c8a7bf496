#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "quail/error.h"
#include "sql/prepared.h"
#include "sql/statement.h"

/// Any bytes as a script of each dialect: an error with a place inside of it, or statements whose
/// positions lead back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  for (const auto dialect : quail::Dialects()) {
    try {
      for (const auto& part : quail::sql::SplitScript(script, dialect)) {
        quail::sql::ReadPreparation(script, part, dialect);
        quail::sql::ReadExecution(script, part, dialect);
        quail::sql::ReadDeallocation(script, part, dialect);
        const auto statement = quail::sql::ReadStatement(script, part, dialect);
        for (std::size_t i = 0; i < statement.query.size(); i += 7) {
          if (statement.map.ToInput(i) > script.size()) std::abort();
        }
      }
    } catch (const quail::Error& error) {
      if (!error.position() || error.position()->offset > size) std::abort();
    }
  }
  return 0;
}
