/// Layer: cli.
#include "client/password_prompt.hpp"

#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <optional>

#include <lightq/base/limits.hpp>
#include <lightq/base/private_file.hpp>

#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

/// What is typed is not shown as long as it lives.
class HiddenInput {
 public:
  HiddenInput() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0;
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;
  ~HiddenInput() {
    if (hidden_) (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  [[nodiscard]] bool hidden() const { return hidden_; }

 private:
  termios before_{};
  bool hidden_ = false;
};

/// A line of standard input, read byte by byte so that what follows is left, and nothing of it stays in a
/// buffer. Nothing: its end, or a signal, came before.
std::optional<std::string> read_line() {
  std::string line;
  line.reserve(limits::password_bytes_max + 2);
  while (line.size() <= limits::password_bytes_max + 1) {
    char byte = 0;
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got < 0 || (got == 0 && line.empty())) return std::nullopt;
    if (got == 0 || byte == '\n') break;
    line += byte;
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

Error no_password(const std::string& why) {
  return {ErrorCode::invalid_argument, why};
}

Result<std::string> ask_twice() {
  std::optional<std::string> first;
  std::optional<std::string> second;
  {
    const HiddenInput input;
    if (!input.hidden())
      return no_password("the terminal does not hide what is typed; use --new-password-file");
    tell("new password: ");
    first = read_line();
    tell("\nonce more: ");
    second = first ? read_line() : std::nullopt;
    tell("\n");
  }
  if (!second) return no_password("no password was given");
  const bool same = *first == *second;
  wipe_text(*second);
  if (same) return std::move(*first);
  wipe_text(*first);
  return no_password("the two passwords are not the same");
}

}  // namespace

Result<std::string> read_password(const std::string& path) {
  Result<std::string> line = read_private_line(path, "a password", limits::password_bytes_max);
  if (!line && line.error().code == ErrorCode::io_error)
    return no_password("cannot read a password from '" + path + "': " + line.error().text());
  if (line && line->empty()) return no_password("'" + path + "' holds no password in its first line");
  return line;
}

Result<std::string> new_password(const std::string& file, std::string given) {
  if (!file.empty()) return read_password(file);
  if (!given.empty()) return given;
  Result<std::string> typed = isatty(STDIN_FILENO) != 0 ? ask_twice() : Result<std::string>(std::string());
  if (!typed) return typed;
  if (isatty(STDIN_FILENO) == 0) {
    std::optional<std::string> line = read_line();
    if (!line) return no_password("no password on standard input; or give --new-password-file");
    typed = std::move(*line);
  }
  if (typed->empty()) return no_password("an empty password is none");
  return typed;
}

}  // namespace lightq::cli
