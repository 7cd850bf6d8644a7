/// The process that accepts a crowd's connections, and the code that starts it. Layer: bench support.
#include "support/load/bare_door.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <unordered_map>

namespace lightq::bench {

namespace {

constexpr auto stay_max = std::chrono::seconds(5);
constexpr std::size_t bytes_heard_max = 16;
constexpr int backlog = 4'096;

/// The code of the process. Runs until it is killed.
class Doorkeeper {
 public:
  explicit Doorkeeper(int listener) : listener_(listener), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{EPOLLIN, {.u64 = 0}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event);
  }

  int run() {
    while (true) {
      std::array<epoll_event, 512> events{};
      const int count = epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
      for (int i = 0; i < count; ++i) {
        const std::uint64_t guest = events[static_cast<std::size_t>(i)].data.u64;
        if (guest == 0) {
          let_in();
        } else {
          hear(guest);
        }
      }
      for (const auto now = Clock::now(); !stays_.empty() && stays_.front().end <= now; stays_.pop_front())
        guests_.erase(stays_.front().guest);
    }
  }

 private:
  struct Guest {
    Descriptor socket;
    std::size_t said = 0;
  };
  struct Stay {
    Clock::time_point end;
    std::uint64_t guest;
  };

  [[nodiscard]] int wait_ms() const {
    if (stays_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(stays_.front().end - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  void let_in() {
    while (true) {
      Descriptor come(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (come.get() < 0) return;
      const std::uint64_t guest = ++last_;
      epoll_event event{EPOLLIN, {.u64 = guest}};
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, come.get(), &event);
      stays_.push_back({Clock::now() + stay_max, guest});
      guests_.emplace(guest, Guest{std::move(come)});
    }
  }
  void hear(std::uint64_t guest) {
    const auto found = guests_.find(guest);
    if (found == guests_.end()) return;
    std::array<char, bytes_heard_max> heard{};
    const ssize_t got = recv(found->second.socket.get(), heard.data(), heard.size(), 0);
    if (got > 0) found->second.said += static_cast<std::size_t>(got);
    if (got <= 0 || found->second.said >= bytes_heard_max) guests_.erase(found);
  }

  const int listener_;
  Descriptor epoll_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, Guest> guests_;
  std::deque<Stay> stays_;  // ordered by end
};

}  // namespace

Result<BareDoor> BareDoor::open() {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  if (bind(listener.get(), place, bytes) != 0 || listen(listener.get(), backlog) != 0 ||
      getsockname(listener.get(), place, &bytes) != 0)
    return system_error("a listening socket");
  auto process = ChildProcess::start([&] {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    return Doorkeeper(listener.get()).run();
  });
  if (!process) return process.error();
  return BareDoor(std::move(*process), "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
}

}  // namespace lightq::bench
