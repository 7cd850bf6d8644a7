/// The speed of a wire without a broker. Layer: bench support.
#include "support/load/tcp_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <vector>

#include "support/child_process.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t piece_bytes = 256 * 1024;
constexpr std::size_t batch_bytes = limits::batch_bytes_target;  // the size of a producer's batches

void demand(bool good, const char* what) {
  if (!good) throw std::runtime_error(system_error(what).text());
}

/// A listening socket. It is created before the fork, so that the other process need not wait for it. A Unix
/// socket gets a name without a file from the system.
class Door {
 public:
  explicit Door(RelayWire wire = RelayWire::tcp)
      : family_(wire == RelayWire::tcp ? AF_INET : AF_UNIX),
        listening_(::socket(family_, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.ss_family = static_cast<sa_family_t>(family_);
    bytes_ = sizeof(sa_family_t);
    if (family_ == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address_).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      bytes_ = sizeof(sockaddr_in);
    }
    demand(::bind(listening_.get(), address(), bytes_) == 0, "bind");
    bytes_ = sizeof address_;
    demand(::getsockname(listening_.get(), address(), &bytes_) == 0, "getsockname");
    demand(::listen(listening_.get(), 1) == 0, "listen");
  }
  [[nodiscard]] Descriptor accept() const {
    return ready(Descriptor(::accept(listening_.get(), nullptr, nullptr)));
  }
  [[nodiscard]] Descriptor connect() {
    Descriptor connection(::socket(family_, SOCK_STREAM | SOCK_CLOEXEC, 0));
    demand(::connect(connection.get(), address(), bytes_) == 0, "connect");
    return ready(std::move(connection));
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }
  [[nodiscard]] Descriptor ready(Descriptor connection) const {
    const int on = 1;
    if (family_ == AF_INET)
      demand(::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    return connection;
  }
  const int family_;
  Descriptor listening_;
  sockaddr_storage address_{};
  socklen_t bytes_ = 0;
};

void send_all(int descriptor, const std::byte* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t sent = ::send(descriptor, bytes, count, MSG_NOSIGNAL);
    demand(sent > 0, "send");
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

std::size_t receive_some(int descriptor, std::vector<std::byte>& into) {
  const ssize_t got = ::recv(descriptor, into.data(), into.size(), 0);
  demand(got >= 0, "recv");
  return static_cast<std::size_t>(got);
}

int send_pieces(StreamRun& run, Door& door, std::size_t bytes_each) {
  const Descriptor connection = door.connect();
  const std::vector<std::byte> piece(bytes_each, std::byte{'x'});
  for (std::uint64_t left = run.plan.message_count * run.plan.message_bytes; left > 0;) {
    const std::size_t bytes = std::min<std::uint64_t>(left, piece.size());
    send_all(connection.get(), piece.data(), bytes);
    left -= bytes;
  }
  return 0;
}

int receive_pieces(StreamRun& run, Door& door) {
  const Descriptor connection = door.accept();
  std::vector<std::byte> piece(piece_bytes);
  std::uint64_t received = 0;
  while (const std::size_t got = receive_some(connection.get(), piece)) {
    if (received == 0) run.seen().first_receive_ns = now_ns();
    received += got;
  }
  run.seen().last_receive_ns = now_ns();
  if (received == run.plan.message_count * run.plan.message_bytes) return 0;
  return run.fail("bytes are missing");
}

int send_paced(StreamRun& run, Door& door) {
  const Descriptor connection = door.connect();
  ::prctl(PR_SET_TIMERSLACK, 1);
  std::vector<std::byte> message(run.pattern.message_bytes());
  const double interval_ns = 1e9 / run.plan.messages_per_second;
  const std::uint64_t begin = run.seen().send_begin_ns = now_ns();
  for (std::uint64_t i = 0; i < run.plan.message_count; ++i) {
    const auto due = begin + static_cast<std::uint64_t>(static_cast<double>(i) * interval_ns);
    const timespec when{static_cast<time_t>(due / 1'000'000'000), static_cast<long>(due % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
    run.pattern.write({run.id, MessageKind::data, i, now_ns()}, message.data());
    send_all(connection.get(), message.data(), message.size());
  }
  run.seen().send_end_ns = now_ns();
  return 0;
}

/// Forwards bytes until the end. `cpu_seconds`: receives the processor time that it used.
int relay(Door& in, Door& out, double& cpu_seconds) {
  const Descriptor from = in.accept();
  const Descriptor to = out.connect();
  std::vector<std::byte> bytes(piece_bytes);
  while (const std::size_t got = receive_some(from.get(), bytes)) send_all(to.get(), bytes.data(), got);
  rusage used{};
  demand(::getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    cpu_seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  return 0;
}

int receive_messages(StreamRun& run, Door& door) {
  const Descriptor connection = door.accept();
  StreamCheck check(run.id, run.plan.message_count, run.pattern);
  std::vector<std::byte> bytes(piece_bytes);
  std::vector<std::byte> rest;
  const std::size_t whole = run.pattern.message_bytes();
  while (const std::size_t got = receive_some(connection.get(), bytes)) {
    rest.insert(rest.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(got));
    std::size_t at = 0;
    for (; rest.size() - at >= whole; at += whole) {
      if (check.accept(ByteView(rest.data() + at, whole)) != StreamCheck::Verdict::data)
        return run.fail(check.fault());
      run.latency_ns[check.header().sequence] = now_ns() - check.header().sent_ns;
    }
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return check.received() == run.plan.message_count ? 0 : run.fail("messages are missing");
}

using Role = std::pair<std::string, std::function<int()>>;

Result<void> run_roles(StreamRun& run, const std::vector<Role>& roles) {
  std::vector<ChildProcess> children;
  std::vector<std::string> names;
  for (const auto& [name, work] : roles) {
    Result<ChildProcess> child = ChildProcess::start(work);
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    names.push_back(name);
  }
  const Result<void> ended = wait_for_all(children, names, Clock::now() + run.plan.time_max);
  if (run.seen().fault[0] != '\0') return failure(run.seen().fault);
  return ended;
}

Result<StreamResult> rate_of(StreamRun& run) {
  StreamResult result;
  result.seconds = static_cast<double>(run.seen().last_receive_ns - run.seen().first_receive_ns) / 1e9;
  if (result.seconds > 0)
    result.messages_per_second = static_cast<double>(run.plan.message_count) / result.seconds;
  return result;
}

}  // namespace

Result<StreamResult> run_tcp_stream(const StreamPlan& plan) {
  StreamRun run({}, plan);
  Door door;
  const Result<void> ended =
      run_roles(run, {{"receiver", [&] { return receive_pieces(run, door); }},
                      {"sender", [&] { return send_pieces(run, door, piece_bytes); }}});
  if (!ended) return ended.error();
  return rate_of(run);
}

Result<StreamResult> run_batch_relay(const StreamPlan& plan, RelayWire wire) {
  StreamRun run({}, plan);
  Door in(wire);
  Door out(wire);
  SharedArray<double> cpu_seconds(1);
  const Result<void> ended = run_roles(run, {{"receiver", [&] { return receive_pieces(run, out); }},
                                             {"relay", [&] { return relay(in, out, cpu_seconds[0]); }},
                                             {"sender", [&] { return send_pieces(run, in, batch_bytes); }}});
  if (!ended) return ended.error();
  return rate_of(run);
}

Result<StreamResult> run_tcp_relay(const StreamPlan& plan) {
  StreamRun run({}, plan);
  Door in;
  Door out;
  SharedArray<double> cpu_seconds(1);
  const Result<void> ended = run_roles(run, {{"receiver", [&] { return receive_messages(run, out); }},
                                             {"relay", [&] { return relay(in, out, cpu_seconds[0]); }},
                                             {"sender", [&] { return send_paced(run, in); }}});
  if (!ended) return ended.error();
  StreamResult result;
  result.relay_cpu_seconds = cpu_seconds[0];
  for (std::size_t i = run.latency_ns.size() / 10; i < run.latency_ns.size(); ++i)
    result.latency_us.push_back(static_cast<double>(run.latency_ns[i]) / 1e3);
  return result;
}

}  // namespace lightq::bench
