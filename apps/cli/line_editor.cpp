#include "line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "quail/error.h"
#include "standard_streams.h"

namespace quail::cli {
namespace {

constexpr int kMostLines = 2000;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsOfWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

/// What all begin with, letters compared without case.
std::string CommonBeginning(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto differs = std::mismatch(common.begin(), common.end(), word.begin(), word.end(),
                                       [](char a, char b) { return Lower(a) == Lower(b); });
    common.erase(differs.first, common.end());
  }
  return common;
}

/// The bytes of a UTF-8 character by its first one; 1 for what is none.
std::size_t SizeOf(unsigned char first) {
  if (first >= 0xF0) return 4;
  if (first >= 0xE0) return 3;
  return first >= 0xC0 ? 2 : 1;
}

void ChooseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineEditor::LineEditor(const Interrupts& interrupts, std::string history_path, Complete complete)
    : interrupts_(interrupts),
      history_path_(std::move(history_path)),
      complete_(std::move(complete)) {
  ChooseUtf8();
  editor_ = el_init("quail", stdin, stderr, stderr);
  history_ = history_init();
  if (editor_ == nullptr || history_ == nullptr) {
    throw Error(ErrorCode::kIo, "the line editor cannot be started");
  }
  el_set(editor_, EL_CLIENTDATA, this);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_GETCFN, &LineEditor::ReadCharacter);
  el_set(editor_, EL_PROMPT, &LineEditor::Prompt);
  el_set(editor_, EL_ADDFN, "quail-complete", "complete a name", &LineEditor::CompleteWord);
  el_set(editor_, EL_BIND, "^I", "quail-complete", nullptr);
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(editor_, EL_HIST, &::history, history_);
  HistEvent event;
  ::history(history_, &event, H_SETSIZE, kMostLines);
  ::history(history_, &event, H_SETUNIQUE, 1);
  // There is none the first time.
  if (!history_path_.empty()) ::history(history_, &event, H_LOAD, history_path_.c_str());
}

LineEditor::~LineEditor() {
  if (!history_path_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_path_).parent_path(),
                                        ignored);
    HistEvent event;
    ::history(history_, &event, H_SAVE, history_path_.c_str());
  }
  history_end(history_);
  el_end(editor_);
}

LineSource::Event LineEditor::Next(const std::string& prompt, std::string& line) {
  prompt_ = prompt;
  event_ = Event::kLine;
  el_resize(editor_);
  int size = 0;
  const char* text = el_gets(editor_, &size);
  if (event_ == Event::kInterrupt) {
    el_reset(editor_);
    return event_;
  }
  if (text == nullptr || size <= 0) return Event::kEnd;
  line.assign(text, static_cast<std::size_t>(size));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
  }
  return Event::kLine;
}

LineEditor& LineEditor::Of(editline* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return *static_cast<LineEditor*>(self);
}

char* LineEditor::Prompt(editline* editor) { return Of(editor).prompt_.data(); }

/// False: a signal came, or the input ended; event_ says which.
bool LineEditor::Wait() {
  std::array<pollfd, 2> waits = {pollfd{STDIN_FILENO, POLLIN, 0},
                                 pollfd{interrupts_.descriptor(), POLLIN, 0}};
  while (true) {
    const int ready = ::poll(waits.data(), waits.size(), -1);
    if (interrupts_.pending()) {
      event_ = Event::kInterrupt;
      return false;
    }
    if (ready < 0 && errno != EINTR) event_ = Event::kEnd;
    if (event_ == Event::kEnd) return false;
    if (ready <= 0 || waits[0].revents == 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      event_ = Event::kEnd;
      return false;
    }
    read_.append(bytes.data(), static_cast<std::size_t>(size));
    return true;
  }
}

/// False where a character's bytes are not all there yet.
bool LineEditor::TakeCharacter(wchar_t& character) {
  if (read_.empty()) return false;
  const std::size_t size = SizeOf(static_cast<unsigned char>(read_[0]));
  if (read_.size() < size) return false;
  std::mbstate_t state{};
  const std::size_t used = std::mbrtowc(&character, read_.data(), size, &state);
  const bool valid = used != static_cast<std::size_t>(-1) && used != static_cast<std::size_t>(-2);
  if (!valid) character = L'\uFFFD';
  read_.erase(0, valid ? size : 1);
  return true;
}

int LineEditor::ReadCharacter(editline* editor, wchar_t* character) {
  LineEditor& self = Of(editor);
  while (!self.TakeCharacter(*character)) {
    if (self.Wait()) continue;
    if (self.event_ == Event::kEnd) return 0;
    errno = EINTR;
    return -1;
  }
  return 1;
}

unsigned char LineEditor::CompleteWord(editline* editor, int) {
  const LineInfo* info = el_line(editor);
  const std::string_view before(info->buffer,
                                static_cast<std::size_t>(info->cursor - info->buffer));
  std::size_t begin = before.size();
  while (begin > 0 && IsOfWord(before[begin - 1])) --begin;
  const std::string word(before.substr(begin));
  const std::vector<std::string> names = Of(editor).complete_(before, word);
  if (names.empty()) return CC_ERROR;
  const std::string common = CommonBeginning(names);
  if (names.size() > 1 && common.size() <= word.size()) {
    PrintToErrors("\n{}\n", fmt::join(names, "  "));
    return CC_REDISPLAY;
  }
  el_deletestr(editor, static_cast<int>(std::count_if(word.begin(), word.end(), [](char c) {
                 return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
               })));
  el_insertstr(editor, common.c_str());
  return CC_REFRESH;
}

std::string HistoryPath() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && *state != '\0') return fmt::format("{}/quail/history", state);
  if (home == nullptr || *home == '\0') return {};
  return fmt::format("{}/.local/state/quail/history", home);
}

}  // namespace quail::cli
