#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interrupts.h"
#include "line_source.h"

struct editline;
struct history;

namespace quail::cli {

/// Lines from a terminal, with an editor: history, completion of words by Tab. Standard error
/// shows them. REQUIRES: standard input and standard error are a terminal.
class LineEditor : public LineSource {
 public:
  /// What `word`, which `before`, the line up to the cursor, ends in, can become.
  using Complete =
      std::function<std::vector<std::string>(std::string_view before, std::string_view word)>;

  /// `history_path`: where the lines of earlier shells are, and those of this one go; empty:
  /// nowhere.
  LineEditor(const Interrupts& interrupts, std::string history_path, Complete complete);
  ~LineEditor() override;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Event Next(const std::string& prompt, std::string& line) override;
  void Drop() override { read_.clear(); }

 private:
  static int ReadCharacter(editline* editor, wchar_t* character);
  static unsigned char CompleteWord(editline* editor, int key);
  static char* Prompt(editline* editor);
  static LineEditor& Of(editline* editor);

  bool TakeCharacter(wchar_t& character);
  bool Wait();

  const Interrupts& interrupts_;
  std::string history_path_;
  Complete complete_;
  std::string prompt_;
  std::string read_;  ///< bytes that were read and not yet given to the editor
  Event event_ = Event::kLine;
  editline* editor_ = nullptr;
  history* history_ = nullptr;
};

/// Where the shell's history is kept: below XDG_STATE_HOME or HOME; empty where neither is set.
std::string HistoryPath();

}  // namespace quail::cli
