/// The producer of the backlog and its workers. Layer: bench peers.
#include "peers/work/backlog_work.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>

#include "peers/work/run_children.hpp"
#include "peers/work/stream_work.hpp"
#include "support/once_check.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds run_time_max{120};
constexpr std::chrono::milliseconds receive_wait{20};
constexpr std::size_t message_bytes = 100;

struct WorkerTimes {
  std::uint64_t last_done_ns;
};

struct BacklogState {
  explicit BacklogState(const BacklogWork& wanted)
      : work(wanted),
        pattern(message_bytes),
        id(std::random_device()()),
        check(id, work.messages, pattern),
        workers(work.handlers.size()) {}
  const BacklogWork& work;
  MessagePattern pattern;
  std::uint64_t id;
  OnceCheck check;
  SharedArray<WorkerTimes> workers;
  SharedArray<std::atomic<std::size_t>> open{1};     // workers that are connected
  SharedArray<std::atomic<std::uint64_t>> begin{1};  // when all were
};

void send_backlog(PeerServer& server, BacklogState& state) {
  const auto producer = server.producer(state.work.queue);
  std::vector<std::byte> message(message_bytes);
  for (std::uint64_t i = 0; i < state.work.messages; ++i) {
    state.pattern.write({state.id, MessageKind::data, i, 0}, message.data());
    producer->send(message);
  }
  producer->flush();
}

/// Waits until all workers are connected, and notes the time.
void wait_for_all_workers(BacklogState& state) {
  const Clock::time_point give_up = Clock::now() + peer_patience;
  std::uint64_t none = 0;
  if (++state.open[0] == state.workers.size()) state.begin[0].compare_exchange_strong(none, now_ns());
  while (state.begin[0] == 0) {
    if (Clock::now() > give_up) throw std::runtime_error("not all workers came");
    sleep_exactly(std::chrono::microseconds(100));
  }
}

void work_off(PeerServer& server, BacklogState& state, std::size_t place) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  const auto consumer = server.consumer(state.work.queue, static_cast<int>(place));
  wait_for_all_workers(state);
  const auto handle = [&](ByteView message) {
    const auto number = state.check.number_of(message);
    if (!number) throw std::runtime_error("a message came altered, or from another run");
    sleep_exactly(state.work.handlers[place]);
    state.workers[place].last_done_ns = now_ns();
    if (!state.check.finish(*number))
      throw std::runtime_error("message " + std::to_string(*number) + " came to two workers, or twice");
  };
  Clock::time_point give_up = Clock::now() + peer_patience;
  std::uint64_t seen = 0;
  while (!state.check.is_complete()) {
    consumer->receive(receive_wait, handle);
    const std::uint64_t finished = state.check.finished();
    if (finished != seen) give_up = Clock::now() + peer_patience;
    seen = finished;
    if (Clock::now() > give_up)
      throw std::runtime_error("messages are missing: " + std::to_string(finished) + " were done");
  }
  consumer->settle();
}

}  // namespace

double run_backlog_work(PeerServer& server, const BacklogWork& work) {
  in_child("making the queue", [&] { server.make_queue(work.queue); });
  BacklogState state(work);
  in_child("producer", [&] { send_backlog(server, state); });
  RunChildren children(run_time_max);
  for (std::size_t i = 0; i < work.handlers.size(); ++i)
    children.start("worker " + std::to_string(i + 1), [&, i] { work_off(server, state, i); });
  children.wait();
  check_nothing_left(server, work.queue);
  in_child("dropping the queue", [&] { server.drop_queue(work.queue); });
  std::uint64_t last_ns = 0;
  for (std::size_t i = 0; i < state.workers.size(); ++i)
    last_ns = std::max(last_ns, state.workers[i].last_done_ns);
  return static_cast<double>(last_ns - state.begin[0]) / 1e9;
}

}  // namespace lightq::bench
