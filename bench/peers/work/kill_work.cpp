/// Kills a server and counts the messages that it has kept. Layer: bench peers.
#include "peers/work/kill_work.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "peers/work/run_children.hpp"
#include "support/once_check.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds run_time_max{120};
constexpr std::chrono::milliseconds receive_wait{100};
constexpr std::chrono::seconds idle_time_max{5};
constexpr std::size_t message_bytes = 100;
constexpr std::uint64_t messages_max = 4'000'000;
constexpr std::uint64_t messages_per_poll = 64;

struct KillState {
  KillState() : pattern(message_bytes), id(std::random_device()()), check(id, messages_max, pattern) {}
  MessagePattern pattern;
  std::uint64_t id;
  OnceCheck check;
  SharedArray<std::atomic<std::uint64_t>> confirmed{1};
  SharedArray<std::atomic<std::uint64_t>> kept{1};  // confirmed messages that were delivered
  SharedArray<std::atomic<std::uint64_t>> altered{1};
};

/// Sends until it is killed with its server.
void send_on(PeerServer& server, const QueueTerms& queue, KillState& state) {
  const auto producer = server.producer(queue);
  std::vector<std::byte> message(message_bytes);
  for (std::uint64_t i = 0; i < messages_max; ++i) {
    state.pattern.write({state.id, MessageKind::data, i, 0}, message.data());
    producer->send(message);
    if (i % messages_per_poll == 0) producer->poll();
    state.confirmed[0] = producer->confirmed();
  }
  producer->flush();
  state.confirmed[0] = producer->confirmed();
}

void drain(PeerServer& server, const QueueTerms& queue, KillState& state) {
  const auto consumer = server.consumer(queue, 0);
  const auto take = [&](ByteView message) {
    const auto number = state.check.number_of(message);
    if (!number) {
      ++state.altered[0];
      return;
    }
    // The server may deliver a message again if it has lost the acknowledgement.
    if (state.check.finish(*number) && *number < state.confirmed[0]) ++state.kept[0];
  };
  Clock::time_point give_up = Clock::now() + idle_time_max;
  while (Clock::now() < give_up) {
    if (consumer->receive(receive_wait, take) > 0) give_up = Clock::now() + idle_time_max;
    if (state.kept[0] == state.confirmed[0]) break;
  }
  consumer->settle();
}

}  // namespace

KillCount run_kill_work(PeerServer& server, const QueueTerms& queue, std::uint64_t confirmed_min) {
  KillState state;
  in_child("making the queue", [&] { server.make_queue(queue); });
  {
    RunChildren producing(run_time_max);
    producing.start("producer", [&] { send_on(server, queue, state); });
    producing.wait_until([&] { return state.confirmed[0] >= confirmed_min; });
    server.kill();
  }  // ends the producer
  server.restart();
  RunChildren draining(run_time_max);
  draining.start("consumer", [&] { drain(server, queue, state); });
  draining.wait();
  return {state.confirmed[0], state.confirmed[0] - state.kept[0], state.altered[0]};
}

}  // namespace lightq::bench
