#pragma once

#include <filesystem>
#include <thread>
#include <vector>

namespace quail::base {

/// Brings files into the system's cache in the background, several requests at a time, for a reader
/// of their mappings that goes through them once: what is only touched page by page comes one
/// request after the other. What it has not read yet is read when it is touched; a file that it
/// cannot read is the reader's to complain about.
class ReadAhead {
 public:
  explicit ReadAhead(const std::vector<std::filesystem::path>& files);

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace quail::base
