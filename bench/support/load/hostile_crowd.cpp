/// The process of a hostile crowd: an event loop that connects the members and acts for each of them. Layer:
/// bench support.
#include "support/load/hostile_crowd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <random>

namespace lightq::bench {

struct HostileCrowd::Shared {
  std::atomic<std::uint64_t> made = 0;
  std::atomic<std::uint64_t> closed = 0;
  std::atomic<std::uint64_t> members_in = 0;  ///< members that have connected at least once
};

namespace {

constexpr auto come_again_after = std::chrono::seconds(2);
constexpr auto slow_byte_after = std::chrono::milliseconds(100);
/// The interval at which all members act together. If each woke the process separately, it would take the
/// processor from other processes of the machine more often than a crowd on other machines does.
constexpr useconds_t tick_us = 10'000;
constexpr auto start_time_max = std::chrono::seconds(60);
constexpr std::size_t starts_a_millisecond = 5;  // so 10,000 connect over 2 s, as they do later

enum class Manner { silent, slow, garbage, restless };

struct Member {
  Manner manner = Manner::silent;
  sockaddr_in target{};
  Descriptor socket;
  std::size_t said = 0;
  bool was_in = false;
};

/// A time at which a member acts. Each kind of action has its own queue of moments, in the order of time.
struct Moment {
  Clock::time_point at;
  std::size_t member;
};

Result<sockaddr_in> address_of(const std::string& uri) {
  constexpr std::string_view prefix = "tcp://";
  const std::size_t colon = uri.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const bool good =
      uri.starts_with(prefix) && colon > prefix.size() &&
      inet_pton(AF_INET, uri.substr(prefix.size(), colon - prefix.size()).c_str(), &address.sin_addr) == 1;
  if (!good) return failure("not an address of a hostile crowd: " + uri);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(uri.substr(colon + 1))));
  return address;
}

/// The code of the process. Runs until it is killed.
class Crowd {
 public:
  Crowd(std::vector<Member> members, std::atomic<std::uint64_t>& made, std::atomic<std::uint64_t>& closed,
        std::atomic<std::uint64_t>& members_in)
      : members_(std::move(members)), made_(made), closed_(closed), members_in_(members_in) {
    std::mt19937 random(std::random_device{}());
    for (char& byte : garbage_) byte = static_cast<char>(random());
  }

  int run() {
    epoll_ = Descriptor(epoll_create1(0));
    const auto now = Clock::now();
    for (std::size_t i = 0; i < members_.size(); ++i)
      coming_.push_back({now + std::chrono::milliseconds(i / starts_a_millisecond), i});
    while (true) {
      const auto present = Clock::now();
      while (!coming_.empty() && coming_.front().at <= present) come(take(coming_));
      while (!speaking_.empty() && speaking_.front().at <= present) speak(take(speaking_));
      look_around();
      ::usleep(tick_us);
      look_around();
    }
  }

 private:
  void look_around() {
    std::array<epoll_event, 512> events{};
    int count = 0;
    do {
      count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
      for (int i = 0; i < count; ++i) look(events[static_cast<std::size_t>(i)]);
    } while (count == static_cast<int>(events.size()));
  }
  static std::size_t take(std::deque<Moment>& moments) {
    const std::size_t member = moments.front().member;
    moments.pop_front();
    return member;
  }
  void come(std::size_t index) {
    Member& member = members_[index];
    member.socket = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    member.said = 0;
    const int fd = member.socket.get();
    const int connected =
        connect(fd, reinterpret_cast<const sockaddr*>(&member.target), sizeof member.target);
    if (fd < 0 || (connected != 0 && errno != EINPROGRESS)) return go(index);
    epoll_event event{EPOLLOUT | EPOLLRDHUP, {.u64 = index}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void go(std::size_t index) {
    members_[index].socket = Descriptor();
    coming_.push_back({Clock::now() + come_again_after, index});
  }
  void look(const epoll_event& event) {
    const std::size_t index = event.data.u64;
    Member& member = members_[index];
    if (member.socket.get() < 0) return;
    if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      closed_.fetch_add(1, std::memory_order_relaxed);
      return go(index);
    }
    if ((event.events & EPOLLOUT) == 0) return;
    made_.fetch_add(1, std::memory_order_relaxed);
    if (!std::exchange(member.was_in, true)) members_in_.fetch_add(1, std::memory_order_relaxed);
    epoll_event rest{EPOLLRDHUP, {.u64 = index}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, member.socket.get(), &rest);
    switch (member.manner) {
      case Manner::silent: return;
      case Manner::slow: return speak(index);
      case Manner::garbage: say(member, garbage_.data(), garbage_.size()); return;
      case Manner::restless: return go(index);
    }
  }
  static void say(const Member& member, const char* bytes, std::size_t count) {
    static_cast<void>(send(member.socket.get(), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void speak(std::size_t index) {
    Member& member = members_[index];
    if (member.socket.get() < 0 || member.said >= greeting.size()) return;
    say(member, &greeting[member.said++], 1);
    speaking_.push_back({Clock::now() + slow_byte_after, index});
  }

  static constexpr std::array<char, 12> greeting = {'\xFF', 0, 0, 0, 0, 0, 0, 0, 1, '\x7F', 3, 1};
  std::vector<Member> members_;
  std::atomic<std::uint64_t>& made_;
  std::atomic<std::uint64_t>& closed_;
  std::atomic<std::uint64_t>& members_in_;
  std::array<char, 256> garbage_{};
  Descriptor epoll_;
  std::deque<Moment> coming_;
  std::deque<Moment> speaking_;
};

}  // namespace

Result<std::unique_ptr<HostileCrowd>> HostileCrowd::start(const HostilePlan& plan) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < plan.connections + 64)
    return failure("a hostile crowd of " + std::to_string(plan.connections) +
                   " needs as many file descriptors (ulimit -Hn says " + std::to_string(files.rlim_max) +
                   ")");
  std::vector<Member> members(plan.connections);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto address = address_of(plan.uris.at(i / 4 % plan.uris.size()));
    if (!address) return address.error();
    members[i].manner = static_cast<Manner>(i % 4);
    members[i].target = *address;
  }
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("memory for a hostile crowd");
  std::unique_ptr<HostileCrowd> crowd(new HostileCrowd(new (memory) Shared));
  auto process = ChildProcess::start([&, limit = files] {
    rlimit raised = limit;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
    auto& shared = *crowd->shared_;
    return Crowd(std::move(members), shared.made, shared.closed, shared.members_in).run();
  });
  if (!process) return process.error();
  crowd->process_ = std::move(*process);
  const auto give_up = Clock::now() + start_time_max;
  while (crowd->shared_->members_in.load() < plan.connections) {
    const auto ended = crowd->process_->wait_until(Clock::now() + std::chrono::milliseconds(10));
    if (ended || Clock::now() >= give_up || stop_requested())
      return failure("the hostile crowd did not get together: " +
                     std::to_string(crowd->shared_->members_in.load()) + " connections");
  }
  return crowd;
}

HostileCrowd::~HostileCrowd() {
  if (process_) process_->kill();
  munmap(shared_, sizeof(Shared));
}

HostileCrowd::Counts HostileCrowd::counts() const {
  return {shared_->made.load(), shared_->closed.load()};
}

}  // namespace lightq::bench
