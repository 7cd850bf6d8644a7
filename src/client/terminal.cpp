/// Writes to standard output and standard error for the commands, and handles signals that end a command.
/// Layer: cli.
#include "client/terminal.hpp"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/shown_text.hpp>

#include "client/json_text.hpp"

namespace lightq::cli {
namespace {

// Atomic instead of sig_atomic_t, because other threads read it too.
std::atomic<int> signals_seen = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not lock");
bool progress_shown = false;
constexpr std::size_t room_bytes = PIPE_BUF;  // a write of this size does not block after poll reports space

void on_signal(int number) {
  if (++signals_seen < 2) return;
  signal(number, SIG_DFL);  // the second signal ends the process immediately
  raise(number);
}

/// Waits until a nonblocking descriptor accepts more. Returns false if a signal arrived.
bool await_room(int descriptor) {
  pollfd room{descriptor, POLLOUT, 0};
  return ::poll(&room, 1, 1000) > 0 || signals_seen == 0;
}

/// Writes everything. Returns 0 or the error number.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno;
    } else if (errno == EINTR ? signals_seen > 0 : !await_room(descriptor)) {
      return EPIPE;  // a reader that does not read must not block an interrupted command
    }
  }
  return 0;
}

/// Returns true if a write to the descriptor may wait for a reader.
bool waits_for_reader(int descriptor) {
  struct stat about{};
  const bool known = ::fstat(descriptor, &about) == 0;
  return known && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || isatty(descriptor) == 1);
}

/// Waits until a write of a few bytes does not block, and calls `serve` meanwhile. Returns false if a signal
/// arrived.
bool await_room(int descriptor, const std::function<void()>& serve) {
  pollfd room{descriptor, POLLOUT, 0};
  for (int most_ms = 0; ::poll(&room, 1, most_ms) <= 0; most_ms = 100) {
    if (signals_seen > 0) return false;
    serve();
  }
  return true;
}

/// Writes everything and calls `serve` while it waits, so that it never blocks for long. `written` returns
/// how many bytes were written, even if a signal ended the call. Returns 0 or the error number.
int write_all_serving(int descriptor, std::string_view text, const std::function<void()>& serve,
                      std::size_t& written) {
  if (!waits_for_reader(descriptor)) return write_all(descriptor, text);
  while (written < text.size()) {
    if (!await_room(descriptor, serve)) return EPIPE;
    std::string_view piece = text.substr(written, room_bytes);
    // After a signal, the output should end with a whole line.
    if (const std::size_t end = piece.rfind('\n'); end != std::string_view::npos)
      piece = piece.substr(0, end + 1);
    if (const int fault = write_all(descriptor, piece); fault != 0) return fault;
    written += piece.size();
  }
  return 0;
}

/// Writes the rest of a text that was begun before a signal arrived, if the reader accepts it within a
/// second. Returns how many bytes were written.
std::size_t write_rest(int descriptor, std::string_view rest) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::size_t written = 0;
  while (written < rest.size() && std::chrono::steady_clock::now() < until) {
    pollfd room{descriptor, POLLOUT, 0};
    if (::poll(&room, 1, 50) <= 0) continue;
    // A write of this size does not block when there is space.
    const std::string_view piece = rest.substr(written, room_bytes);
    const ssize_t now = ::write(descriptor, piece.data(), piece.size());
    if (now < 0 && errno != EINTR && errno != EAGAIN) break;
    if (now > 0) written += static_cast<std::size_t>(now);
  }
  return written;
}

std::optional<std::string> json_command;  // see speak_json

void tell_json(JsonObject& object, std::string_view sentence) {
  std::string shown;
  append_escaping_controls(shown, sentence, "\n");
  tell(object.add("description", shown).text() + "\n");
}

}  // namespace

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before{};
  const bool outlives_terminal = sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
  // ignored before: the command was started by nohup
  if (!outlives_terminal) sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return signals_seen > 0;
}

bool pause_for(std::chrono::nanoseconds span) {
  const auto until = std::chrono::steady_clock::now() + span;
  while (!interrupted()) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return true;
    const auto slice = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(200));
    timespec wait{0, static_cast<long>(slice.count())};
    (void)::ppoll(nullptr, 0, &wait, nullptr);
  }
  return false;
}

void tell(std::string_view text) {
  (void)write_all(STDERR_FILENO, text);
}

void speak_json(std::optional<std::string> command) {
  while (command && command->ends_with(' ')) command->pop_back();
  json_command = std::move(command);
}

void say_error(std::string_view code, std::string_view sentence) {
  if (!json_command) return say(sentence);
  JsonObject report;
  report.add("command", *json_command).add("status", "error").add("code", code);
  tell_json(report, sentence);
}

void say(std::string_view sentence) {
  if (json_command) {
    JsonObject note;
    return tell_json(note.add("command", *json_command).add("status", "note"), sentence);
  }
  std::string line = progress_shown ? "\r\x1b[K" : "";
  progress_shown = false;
  line += "lightq: ";
  append_escaping_controls(line, sentence, "\n");
  line += '\n';
  tell(line);
}

Progress::Progress(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

bool Progress::due() const {
  return enabled_ && std::chrono::steady_clock::now() >= next_;
}

void Progress::show(std::string_view text) {
  if (!due()) return;
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  std::string line = "\r";
  append_escaping_controls(line, text);
  tell(line + "\x1b[K");
  shown_ = progress_shown = true;
}

void Progress::clear() {
  if (shown_ && progress_shown) tell("\r\x1b[K");
  shown_ = progress_shown = false;
}

Output::Output() : terminal_(isatty(STDOUT_FILENO) == 1), escapes_(terminal_) {}

void Output::clear_screen() {
  if (terminal_) buffer_ += "\x1b[H\x1b[2J";
}

bool Output::write(std::string_view text) {
  constexpr std::size_t buffer_bytes = 64 * 1024;
  if (!open_) {
    ++unwritten_;
    return false;
  }
  if (escapes_) {
    append_escaping_controls(buffer_, text, "\n\t");
  } else {
    buffer_ += text;
  }
  ends_.push_back(buffer_.size());
  return buffer_.size() < buffer_bytes || flush();
}

/// Counts the pieces that were not written. If a signal interrupted a piece, writes its rest first, because
/// half a line would look like a whole one. If the reader has gone, the whole buffer counts as unwritten.
void Output::note_unwritten(std::size_t written) {
  const auto begun = std::lower_bound(ends_.begin(), ends_.end(), written);
  if (!interrupted() || begun == ends_.end()) {
    unwritten_ += ends_.size();
    return;
  }
  const bool in_midst = written > 0 && *begun != written;
  const std::string_view rest = std::string_view(buffer_).substr(written, in_midst ? *begun - written : 0);
  written += write_rest(STDOUT_FILENO, rest);
  unwritten_ +=
      static_cast<std::uint64_t>(ends_.end() - std::upper_bound(ends_.begin(), ends_.end(), written));
}

bool Output::has_reader() {
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (open_ && ::poll(&reader, 1, 0) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0) open_ = false;
  return open_;
}

bool Output::flush() {
  if (!open_ || buffer_.empty()) return open_;
  std::size_t written = 0;
  const int fault =
      serve_ ? write_all_serving(STDOUT_FILENO, buffer_, serve_, written) : write_all(STDOUT_FILENO, buffer_);
  if (fault != 0) note_unwritten(written);
  buffer_.clear();
  ends_.clear();
  if (fault == 0) return true;
  open_ = false;
  failed_ = fault != EPIPE;
  if (failed_) say(std::string("cannot write to standard output: ") + std::strerror(fault));
  return false;
}

int print(std::string_view text) {
  Output output;
  output.write(text);
  return output.end() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace lightq::cli
