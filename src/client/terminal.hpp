/// Standard output and error as the commands use them, and the signals that end a command. Layer: cli.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lightq::cli {

/// Makes SIGINT, SIGTERM and SIGHUP (unless that was ignored) end a command in order, and a closed standard
/// output an ordinary failed write.
/// Called once, before any thread.
void catch_signals();
/// Whether one of them came.
bool interrupted();
/// Waits; false when a signal came meanwhile.
bool pause_for(std::chrono::nanoseconds span);

/// A line on standard error, after `lightq: `. Ends a progress line first. Escapes control characters other
/// than line ends, so that what a broker or a file says in it cannot act on a terminal.
void say(std::string_view sentence);
/// Text on standard error as it is.
void tell(std::string_view text);

/// A line on standard error that is rewritten in place; only on a terminal, at most ten times a second.
class Progress {
 public:
  explicit Progress(bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  /// Whether show() would be seen now: saves making the text.
  [[nodiscard]] bool due() const;
  void show(std::string_view text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

/// Standard output with a buffer of its own. On a terminal, control characters other than line ends and tabs
/// are escaped, and bytes that are no UTF-8: what is printed may come from anybody. One thread.
class Output {
 public:
  Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }
  /// From now on `serve` is called several times a second while standard output is a pipe, socket or terminal
  /// that takes nothing; and a signal then ends the waiting.
  void serve_meanwhile(std::function<void()> serve) { serve_ = std::move(serve); }
  /// From now on a terminal is given the bytes as they are.
  void keep_controls() { escapes_ = false; }
  /// Clears the screen where standard output is a terminal.
  void clear_screen();
  /// Appends a whole piece of text, at least a character. False once standard output is closed or failed; the
  /// command should end.
  bool write(std::string_view text);
  bool flush();
  /// Returns false if whoever read the output has gone (`| head`): waiting for something to print is in vain.
  bool has_reader();
  /// Writes out what is left; false when the command failed by it.
  bool end() { return flush() || !failed_; }
  /// Whether a failure was more than a reader that went away.
  [[nodiscard]] bool failed() const { return failed_; }
  /// How many pieces, of those that `write` was given, did not leave as a whole, and will not.
  [[nodiscard]] std::uint64_t unwritten() const { return unwritten_; }
  /// Whether nothing is left to be written out.
  [[nodiscard]] bool is_empty() const { return buffer_.empty(); }

 private:
  void note_unwritten(std::size_t written);

  std::string buffer_;
  std::function<void()> serve_;
  bool terminal_;
  bool escapes_;
  std::vector<std::size_t> ends_;  // of the pieces in buffer_
  std::uint64_t unwritten_ = 0;
  bool open_ = true;
  bool failed_ = false;
};

/// Writes a text to standard output; the exit code of a command that does nothing else.
int print(std::string_view text);

}  // namespace lightq::cli
