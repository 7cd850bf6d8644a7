/// Tells a service manager, such as systemd, about the broker's state. Layer: broker.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lightq::broker {

/// Sends states to the socket that NOTIFY_SOCKET names, as sd_notify(3) describes. Without this variable it
/// does nothing. Never waits, and ignores errors: a service manager that does not listen must not stop a
/// broker. Thread: any, except for from_environment.
class ServiceManager {
 public:
  ServiceManager() = default;
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  ~ServiceManager();

  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, so that
  /// programs that the broker starts do not report in its name. Requires: the process has no other threads.
  void take_environment();

  /// Sends lines such as `READY=1`.
  void tell(std::string_view state) const;
  /// Says that the settings are being read again. The next `READY=1` ends that.
  void tell_reloading() const;
  /// Returns the time between two signs of life, which is half of what the manager waits; nothing if it does
  /// not wait for any.
  [[nodiscard]] std::optional<std::chrono::milliseconds> watchdog_interval() const { return interval_; }

 private:
  int socket_ = -1;
  std::string address_;  // of the manager's socket: a path, or a zero byte and an abstract name
  std::optional<std::chrono::milliseconds> interval_;
};

}  // namespace lightq::broker
