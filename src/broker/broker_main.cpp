/// `lightq broker` and `lightq broker key`: loads the settings, runs the broker and handles signals. Layer:
/// broker.
#include "broker/broker_main.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>

#include <lightq/base/core_dumps.hpp>
#include <lightq/base/shown_text.hpp>
#include <lightq/base/z85.hpp>

#include "admission/memory_reserve.hpp"
#include "broker/broker.hpp"
#include "broker/data_directory.hpp"
#include "broker/logging/logging.hpp"
#include "broker/service_manager.hpp"
#include "log/storage/mapped_memory.hpp"

namespace lightq::broker {

namespace {

/// Writes a line. Each time the stream is full, waits for a reader for at most `wait_ms`; -1: without a
/// limit. Returns false if the line cannot be written.
bool print(int stream, std::string line, int wait_ms) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    pollfd room{stream, POLLOUT, 0};
    const int ready = poll(&room, 1, wait_ms);
    const ssize_t written = ready > 0 ? write(stream, rest.data(), rest.size()) : ssize_t{ready};
    const bool again = written < 0 && (errno == EAGAIN || errno == EINTR);
    if (written <= 0 && !again) return false;
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

int fail(const Error& error, int exit_code) {
  constexpr int room_within_ms = 1000;  // a full pipe without a reader must not keep the process alive
  std::string line = "lightq broker: ";
  append_escaping_controls(line, error.text(), "\n");
  print(STDERR_FILENO, line, room_within_ms);
  return exit_code;
}

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

/// Blocks SIGTERM, SIGINT, SIGUSR1 and SIGHUP, so that sigwaitinfo can receive them. Threads started later
/// block them, too. Leaves out a SIGHUP that is ignored, for example by nohup: a blocked one would still
/// arrive.
sigset_t block_signals() {
  sigset_t signals = stop_signals();
  sigaddset(&signals, SIGUSR1);
  struct sigaction hangup{};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// Waits for a signal. Gives the service manager signs of life meanwhile, if it wants them and the broker's
/// threads answer.
siginfo_t next_signal(const sigset_t& signals, Broker* broker, const ServiceManager& manager) {
  const auto interval = manager.watchdog_interval();
  while (true) {
    siginfo_t received{};
    if (!interval || broker == nullptr) {
      if (sigwaitinfo(&signals, &received) > 0) return received;
      continue;
    }
    const timespec wait{static_cast<time_t>(interval->count() / 1000),
                        static_cast<long>(interval->count() % 1000 * 1'000'000)};
    if (sigtimedwait(&signals, &received, &wait) > 0) return received;
    if (errno == EAGAIN && broker->answers_within(*interval)) manager.tell("WATCHDOG=1");
  }
}

/// Acts on SIGHUP and SIGUSR1 until a signal ends the broker. Returns the line for the log about that signal.
std::string serve_until_stopped(const sigset_t& signals, Broker* broker, const ServiceManager& manager,
                                Logging& logging) {
  while (true) {
    const siginfo_t received = next_signal(signals, broker, manager);
    switch (received.si_signo) {
      case SIGTERM: return "stopping on SIGTERM";
      case SIGINT: return "stopping on SIGINT";
      case SIGUSR1:
        logging.reopen_file();
        logging.info("the log file is opened again on SIGUSR1");
        break;
      default:  // SIGHUP: the kernel sends it when the terminal is gone, a process when it wants a reload
        if (received.si_code == SI_KERNEL) return "stopping: the terminal is gone (SIGHUP)";
        if (broker != nullptr) broker->reload();
    }
  }
}

/// Returns the functions by which the broker reads its settings again.
ReloadHooks reload_hooks(const std::map<std::string, std::string>& flag_overrides,
                         const std::optional<std::string>& config_file, Logging& logging,
                         const ServiceManager& manager) {
  return {.read_settings =
              [flag_overrides, config_file] {
                return load_settings(config_file, process_environment, flag_overrides,
                                     {.time_max = std::chrono::milliseconds(0)});
              },
          .set_log_level = [&logging](LogLevel level) { logging.set_level(level); },
          .begun = [&manager] { manager.tell_reloading(); },
          .ended = [&manager] { manager.tell("READY=1"); }};
}

}  // namespace

int run_broker(const std::map<std::string, std::string>& flag_overrides,
               const std::optional<std::string>& config_file) {
  constexpr int exit_failed = 1;
  constexpr int exit_usage = 2;
  auto config = load_config(config_file, start_environment(), flag_overrides);
  if (!config)
    return fail(config.error(),
                config.error().code == ErrorCode::invalid_argument ? exit_usage : exit_failed);
  if (config->core_dumps) allow_core_dumps();
  ServiceManager manager;
  manager.take_environment();
  MemoryReserve::install();
  auto logging = Logging::open(
      {.level = config->log_level, .file = config->log_file, .file_bytes_max = config->log_file_bytes});
  if (!logging) return fail(logging.error(), exit_failed);
  const sigset_t signals = block_signals();
  std::signal(SIGPIPE, SIG_IGN);
  // The descriptor is only polled, so the signal stays pending for sigwaitinfo.
  const sigset_t stopping = stop_signals();
  const int stop_descriptor = signalfd(-1, &stopping, SFD_CLOEXEC | SFD_NONBLOCK);
  auto broker = Broker::start(std::move(*config), **logging, {.stop_descriptor = stop_descriptor},
                              reload_hooks(flag_overrides, config_file, **logging, manager));
  close(stop_descriptor);
  const bool stopped = !broker && broker.error().code == ErrorCode::shutting_down;
  if (!broker && !stopped) {
    logging->reset();  // writes its lines first
    return fail(broker.error(), exit_failed);
  }
  if (broker) log::give_back_code();
  if (broker) manager.tell("READY=1\nSTATUS=control " + (*broker)->control_uri());
  const std::string reason =
      serve_until_stopped(signals, broker ? broker->get() : nullptr, manager, **logging);
  manager.tell("STOPPING=1");
  (*logging)->info(reason);
  if (broker) (*broker)->stop();
  return 0;
}

int print_broker_key(const std::map<std::string, std::string>& flag_overrides,
                     const std::optional<std::string>& config_file, bool json, bool renews) {
  constexpr int exit_failed = 1;
  constexpr int exit_usage = 2;
  const auto config = load_config(config_file, start_environment(), flag_overrides);
  if (!config)
    return fail(config.error(),
                config.error().code == ErrorCode::invalid_argument ? exit_usage : exit_failed);
  const auto key = DataDirectory::curve_key(config->data_dir, renews);
  if (!key) return fail(key.error(), exit_failed);
  const std::string text = to_z85((*key)->public_key());  // has no character that JSON escapes
  const std::string document = R"({"cmd":"broker key","status":"ok","server_key":")" + text + R"("})";
  return print(STDOUT_FILENO, json ? document : text, -1) ? 0 : exit_failed;
}

}  // namespace lightq::broker
