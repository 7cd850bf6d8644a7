/// Runs the storage key command and reads its output. Layer: crypto.
#include "crypto/storage_key_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/secret.hpp>

namespace lightq::rest {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto look_interval = std::chrono::milliseconds(5);

Error cannot_run(int number) {
  return {ErrorCode::io_error, "cannot run the storage key command", number};
}

/// The limits of a wait for the command.
struct Patience {
  Clock::time_point deadline;
  int stop_descriptor;  // readable: stop waiting; -1: none

  [[nodiscard]] int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
  }
};

/// The running command. If it has not ended when this object is destroyed, it is killed with all processes of
/// its group.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();
  /// Starts the command. Returns 0, or errno if that failed.
  int start(const std::string& command);
  /// Reads the command's output until it ends or the buffer is full.
  std::optional<Error> read_all(std::string& text, std::size_t& bytes, const Patience& patience);
  /// Waits until the command has ended.
  std::optional<Error> wait(const Patience& patience);

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

Command::~Command() {
  if (output_ >= 0) close(output_);
  if (process_ < 0) return;
  kill(-process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Starts the command in a process group of its own, with no signals blocked and their default handlers, as a
/// shell expects it.
int spawn(const std::string& command, int output, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (const int number = posix_spawn_file_actions_init(&files); number != 0) return number;
  int number = posix_spawnattr_init(&attributes);
  if (number == 0) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Closes descriptors that this process opened without O_CLOEXEC: the command must not have them.
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string shell = "sh";
    std::string flag = "-c";
    std::string text = command;
    const std::array<char*, 4> arguments = {shell.data(), flag.data(), text.data(), nullptr};
    number = posix_spawn(&process, "/bin/sh", &files, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&files);
  return number;
}

int Command::start(const std::string& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return errno;
  output_ = ends[0];
  fcntl(ends[1], F_SETFL, 0);  // the command's end blocks
  const int number = spawn(command, ends[1], process_);
  close(ends[1]);
  if (number != 0) process_ = -1;
  return number;
}

Error too_slow() {
  return {ErrorCode::timeout, "the storage key command did not finish in time"};
}

Error stopped() {
  return {ErrorCode::shutting_down, "the broker was stopped while the storage key command ran"};
}

std::optional<Error> Command::read_all(std::string& text, std::size_t& bytes, const Patience& patience) {
  while (bytes < text.size()) {
    const int left_ms = patience.left_ms();
    if (left_ms == 0) return too_slow();
    std::array<pollfd, 2> ready{pollfd{output_, POLLIN, 0}, pollfd{patience.stop_descriptor, POLLIN, 0}};
    const int number = poll(ready.data(), ready.size(), left_ms);
    if (number < 0 && errno != EINTR) return cannot_run(errno);
    if (number > 0 && ready[1].revents != 0) return stopped();
    const auto got = read(output_, text.data() + bytes, text.size() - bytes);
    if (got == 0) return std::nullopt;
    if (got > 0) bytes += static_cast<std::size_t>(got);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return cannot_run(errno);
  }
  return Error{ErrorCode::invalid_argument, "the storage key command prints more than " +
                                                std::to_string(limits::storage_key_text_bytes_max) +
                                                " bytes, the maximum for keys"};
}

std::optional<Error> Command::wait(const Patience& patience) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(process_, &status, WNOHANG);
    if (ended == process_) break;
    if (ended < 0 && errno != EINTR) {
      process_ = -1;  // other code of this process has already waited for it
      return cannot_run(ECHILD);
    }
    if (patience.left_ms() == 0) return too_slow();
    pollfd stop{patience.stop_descriptor, POLLIN, 0};
    if (poll(&stop, 1, static_cast<int>(look_interval.count())) > 0) return stopped();
  }
  process_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  const std::string how = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                            : "signal " + std::to_string(WTERMSIG(status));
  return Error{ErrorCode::io_error,
               "the storage key command failed: " + how + "; run it by hand to see its error output"};
}

std::optional<Error> run(const std::string& command, std::string& text, std::size_t& bytes,
                         const Patience& patience) {
  Command running;
  if (const int number = running.start(command); number != 0) return cannot_run(number);
  if (auto failed = running.read_all(text, bytes, patience)) return failed;
  return running.wait(patience);
}

}  // namespace

Result<std::unique_ptr<StorageKeys>> run_storage_key_command(const std::string& command,
                                                             std::chrono::milliseconds time_max,
                                                             int stop_descriptor) {
  std::string text(limits::storage_key_text_bytes_max + 1, '\0');
  std::size_t bytes = 0;
  const auto failed = run(command, text, bytes, {Clock::now() + time_max, stop_descriptor});
  const Secret output = std::move(text);
  if (failed) return *failed;
  return StorageKeys::parse(std::string_view(output.expose()).substr(0, bytes),
                            "the output of the storage key command");
}

}  // namespace lightq::rest
