#include "line_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "quail/error.h"
#include "standard_streams.h"

namespace quail::cli {

std::string WithoutByteOrderMark(std::string text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

LineSource::Event LineReader::Next(const std::string& prompt, std::string& line) {
  if (prompts_) PrintToErrors("{}", prompt);
  while (!TakeLine(line)) {
    if (ended_) {
      line = std::exchange(read_, "");
      return line.empty() ? Event::kEnd : Event::kLine;
    }
    std::array<pollfd, 2> waits = {pollfd{STDIN_FILENO, POLLIN, 0},
                                   pollfd{interrupts_.descriptor(), POLLIN, 0}};
    const int ready = ::poll(waits.data(), waits.size(), -1);
    if (ready < 0 && errno != EINTR) {
      throw Error(ErrorCode::kIo, fmt::format("cannot read the input: {}", std::strerror(errno)));
    }
    if (interrupts_.pending()) return Event::kInterrupt;
    if (ready > 0 && waits[0].revents != 0) ended_ = !Read();
  }
  return Event::kLine;
}

bool LineReader::TakeLine(std::string& line) {
  const std::size_t end = read_.find('\n');
  if (end == std::string::npos) return false;
  line = read_.substr(0, end);
  if (!std::exchange(begun_, true)) line = WithoutByteOrderMark(std::move(line));
  read_.erase(0, end + 1);
  return true;
}

bool LineReader::Read() {
  std::array<char, 65536> bytes;
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size < 0 && errno == EINTR) return true;
  if (size < 0) {
    throw Error(ErrorCode::kIo, fmt::format("cannot read the input: {}", std::strerror(errno)));
  }
  read_.append(bytes.data(), static_cast<std::size_t>(size));
  return size > 0;
}

}  // namespace quail::cli
