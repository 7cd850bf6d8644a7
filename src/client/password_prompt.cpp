/// Reads a new password from a file, the environment, the terminal or standard input. Layer: cli.
#include "client/password_prompt.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/base/shown_path.hpp>
#include <lightq/base/wipe.hpp>

#include "base/ascii_case.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

/// Hides typed characters on the terminal while it exists.
class HiddenInput {
 public:
  HiddenInput() { hide(); }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;
  ~HiddenInput() { show(); }
  [[nodiscard]] bool hidden() const { return hidden_; }
  void hide() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0;
  }
  void show() {
    if (std::exchange(hidden_, false)) (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }

 private:
  termios before_{};
  bool hidden_ = false;
};

std::atomic<int> signal_seen = 0;
std::atomic<int> signal_bell = -1;  // wakes the thread that waits for input, whichever thread gets the signal

extern "C" void note_signal(int number) {
  const int before = errno;
  if (number != SIGTSTP || signal_seen == 0) signal_seen = number;
  (void)eventfd_write(signal_bell, 1);
  errno = before;
}

/// While it exists, signals that would end or stop the process are recorded instead, because the terminal
/// hides input. The destructor delivers those that end the process. One object at a time; on the main thread.
class HeldSignals {
 public:
  HeldSignals() {
    signal_seen = 0;
    signal_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction noting{};
    noting.sa_handler = note_signal;
    sigemptyset(&noting.sa_mask);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      sigaction(numbers[i], &noting, &before_[i]);
      // The parent process may have chosen to ignore this signal.
      if (before_[i].sa_handler == SIG_IGN) sigaction(numbers[i], &before_[i], nullptr);
    }
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    for (std::size_t i = 0; i < numbers.size(); ++i) sigaction(numbers[i], &before_[i], nullptr);
    close(signal_bell.exchange(-1));
    if (signal_seen != 0) (void)raise(signal_seen);
  }

  enum class Came { input, stop, end };
  /// Waits for input or for one of the signals.
  [[nodiscard]] static Came await_input() {
    std::array<pollfd, 2> waiting{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signal_bell, POLLIN, 0}};
    int ready = 0;
    do {
      ready = poll(waiting.data(), waiting.size(), -1);
    } while (ready < 0 && errno == EINTR && signal_seen == 0);
    if (ready > 0 && signal_seen == 0) return Came::input;
    return signal_seen == SIGTSTP ? Came::stop : Came::end;
  }
  /// Stops the process, as the signal would have done. Returns when the process is continued.
  static void stop() {
    int stopping_signal = SIGTSTP;
    // another signal has arrived, which ends the process
    if (!signal_seen.compare_exchange_strong(stopping_signal, 0)) return;
    eventfd_t rung = 0;
    (void)eventfd_read(signal_bell, &rung);
    struct sigaction noting{};
    struct sigaction stopping{};
    stopping.sa_handler = SIG_DFL;
    sigemptyset(&stopping.sa_mask);
    sigaction(SIGTSTP, &stopping, &noting);
    (void)raise(SIGTSTP);
    sigaction(SIGTSTP, &noting, nullptr);
  }

 private:
  static constexpr std::array<int, 5> numbers = {SIGTSTP, SIGINT, SIGTERM, SIGQUIT, SIGHUP};
  std::array<struct sigaction, numbers.size()> before_{};
};

/// Reads a byte of standard input; waits for it if the descriptor is nonblocking.
ssize_t read_byte(char& byte) {
  while (true) {
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got >= 0 || errno != EAGAIN || interrupted()) return got;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    (void)poll(&input, 1, 200);
  }
}

/// Reads a line of standard input byte by byte, so that later input is left unread and no buffer keeps the
/// line. `ready` waits for the next byte, and returns false to stop. Returns nothing if the input ended or a
/// signal arrived first.
template <typename Ready>
std::optional<Secret> read_line(const Ready& ready) {
  std::string line;
  line.reserve(limits::password_bytes_max + 2);
  while (line.size() <= limits::password_bytes_max + 1) {
    char byte = 0;
    const ssize_t got = ready() ? read_byte(byte) : -1;
    if (got < 0 || (got == 0 && line.empty())) {
      wipe_text(line);
      return std::nullopt;
    }
    if (got == 0 || byte == '\n') break;
    line += byte;
  }
  if (line.ends_with('\r')) line.pop_back();
  return Secret(std::move(line));
}

/// Reads a line typed behind the prompt. Shows the prompt again if the command was stopped and continued.
std::optional<Secret> ask(const std::string& prompt, HiddenInput& input) {
  tell(prompt);
  auto line = read_line([&] {
    auto came = HeldSignals::await_input();
    for (; came == HeldSignals::Came::stop; came = HeldSignals::await_input()) {
      input.show();
      HeldSignals::stop();
      input.hide();
      if (!input.hidden()) return false;
      tell(prompt);
    }
    return came == HeldSignals::Came::input;
  });
  tell("\n");
  return line;
}

Error no_password(const std::string& why) {
  return {ErrorCode::invalid_argument, why};
}

/// Returns the flag for a variable: `--new-password-file` for LIGHTQ_NEW_PASSWORD.
std::string flag_of(const std::string& variable) {
  std::string flag = "--";
  for (const char letter : variable.substr(variable.find('_') + 1) + "_FILE")
    flag += letter == '_' ? '-' : in_lower_case(letter);
  return flag;
}

Result<Secret> ask_twice() {
  std::optional<Secret> first;
  std::optional<Secret> second;
  {
    const HeldSignals signals;  // destroyed after the terminal is restored
    HiddenInput input;
    if (!input.hidden())
      return no_password("the terminal cannot hide typed characters; use --new-password-file");
    first = ask("new password: ", input);
    if (first) second = ask("repeat it: ", input);
    if (!second) first.reset();  // before a recorded signal ends the process
  }
  if (!second) return no_password("no password was given");
  if (*first == *second) return std::move(*first);
  return no_password("the two passwords differ");
}

}  // namespace

Result<Secret> read_password(const std::string& path, const std::string& variable) {
  Result<Secret> line = read_private_line(path, "a password", limits::password_bytes_max);
  const bool unread = !line && line.error().code == ErrorCode::io_error;
  if (unread && may_be_secret(path))
    return no_password(flag_of(variable) + " and " + variable +
                       "_FILE need the name of a file that contains a password, but " + line.error().text());
  if (unread) return no_password("cannot read a password from '" + path + "': " + line.error().text());
  if (line && line->empty()) return no_password("'" + path + "' contains no password in its first line");
  return line;
}

Result<Secret> new_password(const std::string& file, Secret given) {
  if (!file.empty()) return read_password(file, "LIGHTQ_NEW_PASSWORD");
  if (!given.empty()) return given;
  Result<Secret> typed = isatty(STDIN_FILENO) != 0 ? ask_twice() : Result<Secret>(Secret());
  if (!typed) return typed;
  if (isatty(STDIN_FILENO) == 0) {
    std::optional<Secret> line = read_line([] { return true; });
    if (!line) return no_password("standard input contains no password; give one, or --new-password-file");
    typed = std::move(*line);
  }
  if (typed->empty()) return no_password("the password must not be empty");
  return typed;
}

}  // namespace lightq::cli
