/// Tells a service manager, such as systemd, about the broker's state. Layer: broker.
#include "broker/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace lightq::broker {

namespace {

/// Returns the value of a variable and removes it.
std::string take_variable(const char* name) {
  const char* const found = std::getenv(name);
  std::string value = found == nullptr ? "" : found;
  ::unsetenv(name);
  return value;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::take_environment() {
  address_ = take_variable("NOTIFY_SOCKET");
  const auto waits_us = whole_number(take_variable("WATCHDOG_USEC"));
  const std::string pid = take_variable("WATCHDOG_PID");
  const bool is_known = address_.size() > 1 && address_.size() < sizeof(sockaddr_un::sun_path) &&
                        (address_.front() == '/' || address_.front() == '@');
  if (!is_known) return;
  if (address_.front() == '@') address_.front() = '\0';
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool is_for_others = !pid.empty() && whole_number(pid) != static_cast<std::uint64_t>(::getpid());
  constexpr std::uint64_t least_us = 2000;
  if (!is_for_others && waits_us && *waits_us >= least_us)
    interval_ =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::microseconds(*waits_us / 2));
}

void ServiceManager::tell(std::string_view state) const {
  if (socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  (void)!::sendto(socket_, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
                  length);
}

void ServiceManager::tell_reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto now_us =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now_us));
}

}  // namespace lightq::broker
