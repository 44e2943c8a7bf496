#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quail::sql {

/// Where each byte of a translated text came from. Built front to back together with the text.
class SourceMap {
 public:
  /// The next bytes of the output repeat the input from `input` on.
  void Follow(std::size_t output, std::size_t input) { Add(output, input, true); }
  /// The next bytes of the output all stand for the place `input`.
  void Stay(std::size_t output, std::size_t input) { Add(output, input, false); }

  /// The next bytes of the output are a text that has `other`.
  void Append(std::size_t output, const SourceMap& other);

  /// Input offset of an output offset. REQUIRES: at least one entry, at output 0.
  std::size_t ToInput(std::size_t output) const;

 private:
  struct Entry {
    std::size_t output;
    std::size_t input;
    bool follows;
  };
  void Add(std::size_t output, std::size_t input, bool follows);

  std::vector<Entry> entries_;
};

}  // namespace quail::sql
