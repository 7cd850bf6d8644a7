/// Writes to standard output and standard error for the commands, and handles signals that end a command.
/// Layer: cli.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lightq::cli {

/// Makes SIGINT and SIGTERM end a command in order, and SIGHUP unless it was ignored. Makes writing to a
/// closed standard output an ordinary failed write. Requires: called once, before any thread is started.
void catch_signals();
/// Returns true if one of these signals has arrived.
bool interrupted();
/// Waits for `span`. Returns false if a signal arrived meanwhile.
bool pause_for(std::chrono::nanoseconds span);

/// Prints a line on standard error, after `lightq: `. Ends a progress line first. Escapes control characters
/// other than line ends, so that texts from a broker or file cannot control the terminal. After speak_json()
/// it prints an object with the members `command`, `status` (`note`) and `description` instead.
void say(std::string_view sentence);
/// Makes say() and say_error() print JSON objects, with the words of the command; or lines again,
/// for nothing. Requires: no other thread.
void speak_json(std::optional<std::string> command);
/// Prints an error as say() does. As JSON it has the members `status` (`error`), `code` and `description`.
void say_error(std::string_view code, std::string_view sentence);
/// Prints a text on standard error unchanged.
void tell(std::string_view text);

/// A line on standard error that is updated in place, at most ten times a second. Shown only on a terminal.
class Progress {
 public:
  explicit Progress(bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  /// Returns true if show() would be visible now. Saves building the text otherwise.
  [[nodiscard]] bool due() const;
  void show(std::string_view text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

/// Buffered standard output. On a terminal it escapes invalid UTF-8 and control characters other than line
/// ends and tabs, because the text may come from anybody. For one thread.
class Output {
 public:
  Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }
  /// Sets a function that is called several times a second while standard output is a pipe, socket or
  /// terminal that accepts nothing. A signal then ends the waiting.
  void serve_meanwhile(std::function<void()> serve) { serve_ = std::move(serve); }
  /// Turns off escaping for a terminal.
  void keep_controls() { escapes_ = false; }
  /// Returns true if standard output is a terminal. Lists are then tables, otherwise lines with tabs.
  [[nodiscard]] bool is_terminal() const { return terminal_; }
  /// Clears the screen if standard output is a terminal.
  void clear_screen();
  /// Appends a piece of text. Requires: not empty. Returns false once standard output is closed or has
  /// failed; then the command should end.
  bool write(std::string_view text);
  bool flush();
  /// Returns false if the reader of the output has gone (`| head`), so that waiting for more to print is
  /// useless.
  bool has_reader();
  /// Writes the buffered text. Returns false if a write failed, unless the reader had gone.
  bool end() { return flush() || !failed_; }
  /// Returns true if a write failed for another reason than a closed output.
  [[nodiscard]] bool failed() const { return failed_; }
  /// Returns how many pieces passed to `write` were not written completely, and will not be.
  [[nodiscard]] std::uint64_t unwritten() const { return unwritten_; }
  /// Returns true if the buffer is empty.
  [[nodiscard]] bool is_empty() const { return buffer_.empty(); }

 private:
  void note_unwritten(std::size_t written);

  std::string buffer_;
  std::function<void()> serve_;
  bool terminal_;
  bool escapes_;
  std::vector<std::size_t> ends_;  // ends of the pieces in buffer_
  std::uint64_t unwritten_ = 0;
  bool open_ = true;
  bool failed_ = false;
};

/// Writes a text to standard output. Returns the exit code for a command that does nothing else.
int print(std::string_view text);

}  // namespace lightq::cli
