/// The fault proxy: one poll loop for all connections.
#include "support/fault_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <lightq/detail/session_sock_address.hpp>

namespace lightq::test {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t buffer_bytes_max = 256 * 1024;
constexpr auto unread_time = std::chrono::milliseconds(500);
constexpr std::size_t remembered_bytes = 4096;  // the longest replay

void be_quick(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}
void close_with_reset(int fd) {
  const linger at_once{1, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}
int connect_to(const std::string& uri) {
  const auto address = resolve_session_uri(uri);
  if (!address) return -1;
  const int fd = ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address->storage), address->bytes) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

/// One direction of a connection: bytes from one socket to the other.
class FaultPipe {
 public:
  FaultPipe(int from, int to, const FaultWay& plan) : from_(from), to_(to), plan_(plan) {}

  enum class End { none, cut, reset };

  /// Receives available bytes. `hung_up`: the source has ended, even if there are bytes left to read.
  End receive(bool readable, bool hung_up, Clock::time_point now) {
    if (ended_ || (!readable && !hung_up)) return End::none;
    if (leaves_input(now)) {
      ended_ = hung_up;
      return End::none;
    }
    std::array<std::byte, 65536> room;
    const ssize_t got = ::recv(from_, room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) {
      if (!is_deaf()) waiting_.insert(waiting_.end(), room.begin(), room.begin() + got);
      return End::none;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return End::none;
    ended_ = true;
    return got < 0 && !is_deaf() ? End::reset : End::none;
  }

  /// Passes one piece on, if it is due.
  End pass_on(Clock::time_point now, std::mt19937_64& random, FaultCounts& counts) {
    if (is_deaf()) return End::none;
    if (passed_ >= plan_.cut_at) return End::cut;
    if (passed_ >= plan_.stall_at) {
      stalled_ = true;
      not_before_ = now + unread_time;
      waiting_.clear();
      ++counts.stalls;
      return End::none;
    }
    if (passed_ >= plan_.replay_at) replay(counts);
    if (waiting_.empty()) {
      if (ended_ && !std::exchange(shut_, true)) ::shutdown(to_, SHUT_WR);
      return End::none;
    }
    if (blocked_ || now < not_before_) return End::none;
    if (passed_ >= plan_.flip_at) {
      plan_.flip_at = FaultWay::never;
      const auto bit = plan_.flip_bit < 0 ? static_cast<int>(random() % 8) : plan_.flip_bit;
      waiting_.front() ^= std::byte{1} << bit;
      ++counts.flips;
    }
    send(piece(random), counts);
    if (plan_.delay_max.count() > 0)
      not_before_ =
          now + std::chrono::microseconds(random() % static_cast<std::uint64_t>(plan_.delay_max.count()));
    return End::none;
  }

  void writable() { blocked_ = false; }
  /// Ends the direction: later bytes are read and thrown away.
  void stop() { stopped_ = true; }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool blocked() const { return blocked_ && !is_deaf(); }
  [[nodiscard]] bool wants_input(Clock::time_point now) const {
    if (ended_ || leaves_input(now)) return false;
    return is_deaf() || waiting_.size() < buffer_bytes_max;
  }
  /// Returns the time of the next action that needs no event of a socket.
  [[nodiscard]] Clock::time_point next(Clock::time_point now) const {
    if (leaves_input(now)) return not_before_;
    if (is_deaf()) return Clock::time_point::max();
    if (passed_ >= std::min({plan_.cut_at, plan_.stall_at, plan_.replay_at})) return Clock::time_point::min();
    if (blocked_) return Clock::time_point::max();
    if (waiting_.empty()) return ended_ && !shut_ ? Clock::time_point::min() : Clock::time_point::max();
    return not_before_;
  }

 private:
  /// Returns true while stalled bytes stay with their sender. That time is limited, because the end behind
  /// unread bytes would never be seen.
  [[nodiscard]] bool leaves_input(Clock::time_point now) const {
    return stalled_ && !plan_.stall_swallows && !ended_ && now < not_before_;
  }
  [[nodiscard]] bool is_deaf() const { return stalled_ || stopped_; }

  /// Returns the size of the next piece: at most up to the next position where a fault happens.
  std::size_t piece(std::mt19937_64& random) const {
    constexpr std::size_t large = 65536;
    const std::size_t most = passed_ < plan_.pieces_until ? plan_.piece_bytes_max : large;
    std::uint64_t bytes = std::min<std::uint64_t>(1 + random() % most, waiting_.size());
    for (const std::uint64_t place : {plan_.cut_at, plan_.stall_at, plan_.replay_at, plan_.flip_at}) {
      if (place > passed_) bytes = std::min(bytes, place - passed_);
    }
    return static_cast<std::size_t>(bytes);
  }
  void send(std::size_t bytes, FaultCounts& counts) {
    const ssize_t sent = ::send(to_, waiting_.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        blocked_ = true;
      } else {
        stop();  // the destination is gone, which its own direction will report
      }
      return;
    }
    const auto end = waiting_.begin() + sent;
    passed_ += static_cast<std::uint64_t>(sent);
    counts.bytes += static_cast<std::uint64_t>(sent);
    remembered_.insert(remembered_.end(), waiting_.begin(), end);
    if (remembered_.size() > 2 * remembered_bytes)
      remembered_.erase(remembered_.begin(), remembered_.end() - remembered_bytes);
    waiting_.erase(waiting_.begin(), end);
  }
  void replay(FaultCounts& counts) {
    plan_.replay_at = FaultWay::never;
    const auto bytes = static_cast<std::ptrdiff_t>(std::min(plan_.replay_bytes, remembered_.size()));
    if (bytes == 0) return;
    waiting_.insert(waiting_.begin(), remembered_.end() - bytes, remembered_.end());
    ++counts.replays;
  }

  int from_;
  int to_;
  FaultWay plan_;
  std::vector<std::byte> waiting_;
  std::vector<std::byte> remembered_;  // the last bytes that were passed on
  std::uint64_t passed_ = 0;
  Clock::time_point not_before_ = Clock::time_point::min();
  bool ended_ = false;    // the source has ended
  bool shut_ = false;     // the destination has received the end
  bool blocked_ = false;  // the destination accepts no more bytes now
  bool stalled_ = false;
  bool stopped_ = false;
};

/// The two sockets of a relayed connection: to the client and to the broker.
class FaultProxy::Link {
 public:
  Link(int client, int broker, const FaultPlan& plan)
      : client_(client),
        broker_(broker),
        to_broker_(client, broker, plan.to_broker),
        to_client_(broker, client, plan.to_client),
        cut_resets_(plan.cut_resets),
        random_(plan.seed) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { close(); }

  [[nodiscard]] std::array<pollfd, 2> wanted(Time now) const {
    return {entry(client_, to_broker_, to_client_, now), entry(broker_, to_client_, to_broker_, now)};
  }
  [[nodiscard]] Time next(Time now) const { return std::min(to_broker_.next(now), to_client_.next(now)); }

  /// Does the work that is due. Returns false when the connection is over.
  bool work(short client_events, short broker_events, Time now, FaultCounts& counts) {
    for (auto [events, in, out] : {std::tuple{client_events, &to_broker_, &to_client_},
                                   std::tuple{broker_events, &to_client_, &to_broker_}}) {
      if ((events & (POLLOUT | POLLERR)) != 0) out->writable();
      const bool hung_up = (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
      if (in->receive((events & POLLIN) != 0, hung_up, now) == FaultPipe::End::reset) {
        reset();
        return false;
      }
    }
    for (FaultPipe* const way : {&to_broker_, &to_client_}) {
      if (way->pass_on(now, random_, counts) != FaultPipe::End::cut) continue;
      ++counts.cuts;
      if (!cut()) return false;
    }
    return !to_broker_.ended() || !to_client_.ended();
  }

 private:
  static pollfd entry(int fd, const FaultPipe& in, const FaultPipe& out, Time now) {
    int events = in.wants_input(now) ? POLLIN : 0;
    if (!in.ended()) events |= POLLRDHUP;
    if (out.blocked()) events |= POLLOUT;
    return {events == 0 ? -1 : fd, static_cast<short>(events), 0};
  }
  /// Cuts the connection. Returns false if it is over immediately.
  bool cut() {
    if (cut_resets_) {
      reset();
      return false;
    }
    // Closes neither side before it has ended, so that bytes that were passed on arrive.
    for (const int fd : {client_, broker_}) ::shutdown(fd, SHUT_WR);
    to_broker_.stop();
    to_client_.stop();
    return true;
  }
  void reset() {
    close_with_reset(std::exchange(client_, -1));
    close_with_reset(std::exchange(broker_, -1));
  }
  void close() {
    for (int* const fd : {&client_, &broker_}) {
      if (*fd >= 0) ::close(*fd);
      *fd = -1;
    }
  }

  int client_;
  int broker_;
  FaultPipe to_broker_;
  FaultPipe to_client_;
  bool cut_resets_;
  std::mt19937_64 random_;
};

FaultProxy::FaultProxy(std::function<FaultPlan()> plan) : plan_(std::move(plan)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof name;
  if (listener_ < 0 || wake_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&name), bytes) != 0 ||
      ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) {
    throw std::runtime_error("the fault proxy cannot listen");
  }
  uri_ = "tcp://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  thread_ = std::thread([this] { run(); });
}

FaultProxy::~FaultProxy() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  thread_.join();
  links_.clear();
  ::close(listener_);
  ::close(wake_);
}

std::string FaultProxy::in_front_of(const std::string& uri) {
  const std::scoped_lock lock(mutex_);
  target_ = uri;
  return uri_;
}

FaultCounts FaultProxy::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

bool FaultProxy::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] { return counts_.open == 0; });
}

void FaultProxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  std::string target;
  {
    const std::scoped_lock lock(mutex_);
    target = target_;
  }
  const int broker = connect_to(target);
  if (broker < 0) {
    close_with_reset(client);
    return;
  }
  be_quick(client);
  be_quick(broker);
  ++done_.connections;
  links_.push_back(std::make_unique<Link>(client, broker, plan_()));
}

void FaultProxy::publish() {
  done_.open = links_.size();
  const std::scoped_lock lock(mutex_);
  counts_ = done_;
  if (done_.open == 0) idle_.notify_all();
}

int FaultProxy::wait_ms(Time until) const {
  if (until == Time::max()) return -1;
  const Time now = Clock::now();
  if (until <= now) return 0;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(until - now).count());
}

void FaultProxy::run() {
  std::vector<pollfd> entries;
  while (true) {
    entries.assign({{listener_, POLLIN, 0}, {wake_, POLLIN, 0}});
    Time now = Clock::now();
    Time next = Time::max();
    for (const auto& link : links_) {
      for (const pollfd& entry : link->wanted(now)) entries.push_back(entry);
      next = std::min(next, link->next(now));
    }
    (void)::poll(entries.data(), entries.size(), wait_ms(next));
    {
      const std::scoped_lock lock(mutex_);
      if (stops_) return;
    }
    now = Clock::now();
    std::size_t at = 2;
    for (auto link = links_.begin(); link != links_.end(); at += 2) {
      const bool lives = (*link)->work(entries[at].revents, entries[at + 1].revents, now, done_);
      link = lives ? std::next(link) : links_.erase(link);
    }
    if (entries.front().revents != 0) accept_one();
    publish();
  }
}

}  // namespace lightq::test
