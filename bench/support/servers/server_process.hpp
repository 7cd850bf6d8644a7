/// The process of a server with a port on 127.0.0.1 and a temporary directory. Layer: bench
/// support.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace lightq::bench {

/// Returns the path of a program, searched in `directory`, then in PATH, then where Debian puts servers.
/// Nothing: there is none.
std::optional<std::string> find_program(const std::string& name, const std::string& directory = {});

/// Runs a program and returns its output and errors, at most 64 KiB. Throws if it takes longer
/// than 20 s or fails.
std::string output_of(const std::vector<std::string>& command);

/// Returns a port of 127.0.0.1 that nothing uses now. Another process may take it before the server does; the
/// server then fails to start.
std::uint16_t free_port();

/// Owns the process. Throws std::runtime_error, with the end of the server's output, if it does not start.
class ServerProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Returns the command for a port and a directory. It may write configuration files there.
  using MakeCommand =
      std::function<std::vector<std::string>(std::uint16_t port, const std::string& directory)>;

  /// Starts the server and waits up to `start_time_max` until it accepts connections. Makes three attempts
  /// with different ports.
  ServerProcess(const MakeCommand& make_command, Environment environment = {},
                std::chrono::seconds start_time_max = std::chrono::seconds(20));
  /// Sends SIGTERM, and SIGKILL after 10 s.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string directory() const { return directory_.path().string(); }
  [[nodiscard]] pid_t id() const { return process_->id(); }
  /// Returns the command without the temporary directory.
  [[nodiscard]] std::string command_text() const;
  void signal(int number) { process_->signal(number); }
  void kill() { process_->kill(); }
  /// Starts it again, after `kill`.
  void restart() { run(); }

 private:
  void run();
  void end();
  [[nodiscard]] bool accepts() const;
  [[nodiscard]] std::string log_end() const;
  TempDir directory_;
  Environment environment_;
  std::chrono::seconds start_time_max_;
  std::uint16_t port_ = 0;
  std::vector<std::string> command_;
  std::optional<ChildProcess> process_;
};

}  // namespace lightq::bench
