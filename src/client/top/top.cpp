/// `lightq top`: the topics and groups of a broker, live. Layer: cli.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/invocation.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/top/key_decoder.hpp"
#include "client/top/top_screen.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;

void on_resize(int) {}  // only ends the wait for a key

/// The terminal while the command owns it: without echo, and on its second screen. The destructor restores
/// it, also after a signal, which ends the loop.
class OwnedTerminal {
 public:
  OwnedTerminal() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped command would leave the terminal as it is
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    tell_screen("\x1b[?1049h\x1b[?25l");
    struct sigaction action{};
    action.sa_handler = on_resize;
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, nullptr);
  }
  OwnedTerminal(const OwnedTerminal&) = delete;
  OwnedTerminal& operator=(const OwnedTerminal&) = delete;
  ~OwnedTerminal() {
    tell_screen("\x1b[0m\x1b[?25h\x1b[?1049l");
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  /// Returns false if the terminal has gone.
  bool tell_screen(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR && !interrupted()) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

 private:
  termios before_{};
};

bool draw(OwnedTerminal& terminal, TopScreen& screen) {
  winsize size{};
  constexpr unsigned short default_columns = 80;
  constexpr unsigned short default_rows = 24;
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const std::vector<std::string> lines = screen.lines(size.ws_col > 0 ? size.ws_col : default_columns,
                                                      size.ws_row > 0 ? size.ws_row : default_rows);
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool stands_out = i == screen.selected_line() || i == 1;
    frame += (stands_out ? i == 1 ? "\x1b[1m" : "\x1b[7m" : "") + lines[i] + "\x1b[0m\x1b[K" +
             (i + 1 < lines.size() ? "\r\n" : "");
  }
  return terminal.tell_screen(frame + "\x1b[J");
}

/// Presses the keys of the terminal on the screen.
class Keyboard {
 public:
  /// Waits until a key is pressed, the time has come or a signal has arrived. Returns false if the command
  /// shall end.
  bool handle_keys(TopScreen& screen, Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const std::int64_t wait = decoder_.is_incomplete() ? escape_ms : left.count();
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&keys, 1, static_cast<int>(std::max<std::int64_t>(wait, 0)));
    if (ready == 0) return press(screen, decoder_.finish()) && !interrupted();
    if (ready < 0) return !interrupted();
    char typed[64];
    const ssize_t got = ::read(STDIN_FILENO, typed, sizeof typed);
    if (got <= 0) return false;  // the terminal has gone
    return press(screen, decoder_.decode({typed, static_cast<std::size_t>(got)}));
  }

 private:
  // The bytes of one key come at once, or closely after each other over a network. Escape alone has no
  // others.
  static constexpr std::int64_t escape_ms = 50;

  static bool press(TopScreen& screen, const std::string& keys) {
    return std::ranges::all_of(keys, [&](char key) { return screen.press(key); });
  }

  KeyDecoder decoder_;
};

int show(Client& client, const TopRequest& request) {
  const Timeout interval = std::max(request.interval, Timeout(100));  // limits the load on the broker
  TopScreen screen(client.uri());
  OwnedTerminal terminal;
  Keyboard keyboard;
  Clock::time_point taken;
  Clock::time_point next = Clock::now();
  for (bool goes_on = true; goes_on && !interrupted();) {
    if (Clock::now() >= next) {
      Result<std::vector<TopicStats>> topics = client.stats_of_all();
      const auto now = Clock::now();
      screen.set_notice(topics ? "" : "the broker does not answer: " + topics.error().message);
      if (topics) {
        screen.update(std::move(*topics), std::chrono::duration<double>(now - taken).count());
        taken = now;
      }
      next = now + interval;
    }
    goes_on = draw(terminal, screen) && keyboard.handle_keys(screen, next);
  }
  return exit_ok;
}

}  // namespace

int run_top(const Common& common, const TopRequest& request) {
  const bool has_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (common.json || !has_terminal) return run_stats(common, {.topic = "", .all = true});
  Common patient = common;
  patient.request_timeout = std::min(common.request_timeout, Timeout(2000));  // keys wait meanwhile
  Result<Client> client = open_client(patient);
  if (!client) return fail(client.error());
  if (const auto topics = client->stats_of_all(); !topics) return fail(topics.error());
  return show(*client, request);
}

}  // namespace lightq::cli
