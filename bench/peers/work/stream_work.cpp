/// The roles of producer and consumers. Layer: bench peers.
#include "peers/work/stream_work.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>

#include "peers/work/run_children.hpp"
#include "support/once_check.hpp"
#include "support/process_usage.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds run_time_max{120};
constexpr std::chrono::milliseconds receive_wait{50};
constexpr std::chrono::nanoseconds look_interval{200'000};
constexpr std::chrono::seconds settle_time_max{5};
constexpr std::uint64_t looks_for_ns_max = 40'000;  // during shorter waits the producer polls
// A paced producer may end later than planned by this fraction of the plan, plus a fixed time for one hiccup.
constexpr double lateness_max = 0.05;
constexpr double hiccup_seconds_max = 0.2;

struct ConsumerTimes {
  std::uint64_t settled_ns;
};

struct StreamState {
  explicit StreamState(const StreamWork& wanted)
      : work(wanted),
        pattern(work.message_bytes),
        consumers(static_cast<std::size_t>(work.queue.consumers)),
        latency_ns(paced() ? work.messages : 1) {
    std::random_device random;
    id = std::uint64_t{random()} << 32 | random();
  }
  [[nodiscard]] bool paced() const { return work.messages_per_second > 0; }

  const StreamWork& work;
  MessagePattern pattern;
  std::uint64_t id = 0;
  SharedArray<ConsumerTimes> consumers;
  SharedArray<std::uint64_t> latency_ns;   // by sequence
  SharedArray<std::uint64_t> sending{2};   // when the first send began, and all confirms had come
  SharedArray<std::atomic<int>> ready{2};  // consumers that are open; that have received the probe
};

/// Checks the messages of one consumer.
class ConsumerCheck {
 public:
  explicit ConsumerCheck(const StreamState& state)
      : ordered_(state.work.ordered),
        id_(state.id),
        stream_(state.id, state.work.messages, state.pattern),
        once_(state.id, ordered_ ? 0 : state.work.messages, state.pattern) {}

  /// Returns the header of a data message; nothing for a probe and the end. Throws for a wrong message.
  std::optional<MessageHeader> accept(ByteView message) {
    return ordered_ ? accept_next(message) : accept_any(message);
  }
  [[nodiscard]] bool has_probe() const { return has_probe_; }
  [[nodiscard]] bool is_complete() { return ordered_ ? ended_ : once_.is_complete(); }
  [[nodiscard]] std::uint64_t received() { return ordered_ ? stream_.received() : once_.finished(); }

 private:
  std::optional<MessageHeader> accept_next(ByteView message) {
    switch (stream_.accept(message)) {
      case StreamCheck::Verdict::data: return stream_.header();
      case StreamCheck::Verdict::probe: has_probe_ = true; break;
      case StreamCheck::Verdict::end: ended_ = true; break;
      case StreamCheck::Verdict::fault: throw std::runtime_error(stream_.fault());
    }
    return std::nullopt;
  }
  std::optional<MessageHeader> accept_any(ByteView message) {
    MessageHeader header;
    if (message.size() >= sizeof header) std::memcpy(&header, message.data(), sizeof header);
    if (header.kind == MessageKind::probe && header.run == id_) {
      has_probe_ = true;
      return std::nullopt;
    }
    const auto number = once_.number_of(message);
    if (!number) throw std::runtime_error("a message came altered, or from another run");
    if (!once_.finish(*number))
      throw std::runtime_error("message " + std::to_string(*number) + " came twice");
    return header;
  }
  bool ordered_;
  std::uint64_t id_;
  StreamCheck stream_;
  OnceCheck once_;
  bool has_probe_ = false;
  bool ended_ = false;
};

void consume(PeerServer& server, StreamState& state, int number) {
  const auto consumer = server.consumer(state.work.queue, number);
  ConsumerCheck check(state);
  const bool stamps = state.paced() && number == 0;
  const auto take = [&](ByteView message) {
    const bool had_probe = check.has_probe();
    const auto header = check.accept(message);
    if (check.has_probe() && !had_probe) ++state.ready[1];
    if (stamps && header) state.latency_ns[header->sequence] = now_ns() - header->sent_ns;
  };
  ++state.ready[0];
  Clock::time_point give_up = Clock::now() + peer_patience;
  while (!check.is_complete()) {
    if (consumer->receive(receive_wait, take) > 0) {
      give_up = Clock::now() + peer_patience;
    } else if (Clock::now() > give_up) {
      throw std::runtime_error("nothing came for " + std::to_string(peer_patience.count()) + " ms, after " +
                               std::to_string(check.received()) + " messages");
    }
  }
  consumer->settle();
  state.consumers[static_cast<std::size_t>(number)].settled_ns = now_ns();
}

class StreamProducing {
 public:
  StreamProducing(PeerServer& server, StreamState& state)
      : state_(state), producer_(server.producer(state.work.queue)), message_(state.work.message_bytes) {}

  void run() {
    open_path();
    state_.sending[0] = now_ns();
    for (std::uint64_t i = 0; i < state_.work.messages; ++i) {
      if (!state_.paced()) {
        send(MessageKind::data, i, 0);
        continue;
      }
      wait_until_due(i);
      send(MessageKind::data, i, now_ns());
      producer_->poll();
    }
    const std::uint64_t last_sent_ns = now_ns();
    if (state_.work.ordered) send(MessageKind::end, state_.work.messages, 0);
    producer_->flush();
    state_.sending[1] = now_ns();
    if (state_.work.confirmed && producer_->confirmed() != sent_)
      throw std::runtime_error(std::to_string(producer_->confirmed()) +
                               " messages were confirmed instead of " + std::to_string(sent_));
    if (state_.paced() && state_.work.keeps_pace) check_pace(last_sent_ns);
  }

 private:
  void send(MessageKind kind, std::uint64_t sequence, std::uint64_t sent_ns) {
    state_.pattern.write({state_.id, kind, sequence, sent_ns}, message_.data());
    producer_->send(message_);
    ++sent_;
  }
  /// Waits until each consumer has received a first message.
  void open_path() {
    wait_for(0, "not all consumers came");
    send(MessageKind::probe, 0, 0);
    producer_->flush();
    wait_for(1, "no message came through to all consumers");
  }
  void wait_for(std::size_t step, const char* otherwise) {
    const Clock::time_point give_up = Clock::now() + peer_patience;
    while (state_.ready[step] < state_.work.queue.consumers) {
      if (Clock::now() > give_up) throw std::runtime_error(otherwise);
      sleep_exactly(look_interval);
    }
  }
  /// Waits until message `number` is due by the clock, however long the sends before it took.
  void wait_until_due(std::uint64_t number) {
    if (number == 0) ::prctl(PR_SET_TIMERSLACK, 1);
    const double interval_ns = 1e9 / state_.work.messages_per_second;
    const auto due =
        state_.sending[0] + static_cast<std::uint64_t>(static_cast<double>(number) * interval_ns);
    while (now_ns() < due) {
      producer_->poll();
      const std::uint64_t now = now_ns();
      if (now + looks_for_ns_max < due) sleep_exactly(std::chrono::nanoseconds(due - now));
    }
  }
  void check_pace(std::uint64_t last_sent_ns) const {
    const double seconds = static_cast<double>(last_sent_ns - state_.sending[0]) / 1e9;
    const double planned = static_cast<double>(state_.work.messages) / state_.work.messages_per_second;
    if (seconds > planned * (1 + lateness_max) + hiccup_seconds_max)
      throw std::runtime_error("the producer took " + std::to_string(seconds) +
                               " s for messages that are due in " + std::to_string(planned) + " s");
  }

  StreamState& state_;
  std::unique_ptr<PeerProducer> producer_;
  std::vector<std::byte> message_;
  std::uint64_t sent_ = 0;
};

StreamTimes times_of(StreamState& state) {
  std::uint64_t end_ns = state.sending[1];
  for (std::size_t i = 0; i < state.consumers.size(); ++i)
    end_ns = std::max(end_ns, state.consumers[i].settled_ns);
  StreamTimes times;
  times.seconds = static_cast<double>(end_ns - state.sending[0]) / 1e9;
  if (!state.paced()) return times;
  for (std::size_t i = state.latency_ns.size() / 10; i < state.latency_ns.size(); ++i)
    times.latency_us.push_back(static_cast<double>(state.latency_ns[i]) / 1e3);
  return times;
}

}  // namespace

void check_nothing_left(PeerServer& server, const QueueTerms& queue) {
  in_child("check for messages that are left", [&] {
    const Clock::time_point give_up = Clock::now() + settle_time_max;
    for (;;) {
      const auto count = server.left(queue);
      if (count.value_or(0) == 0) return;
      if (Clock::now() > give_up)
        throw std::runtime_error(std::to_string(*count) + " messages are left in the queue");
      sleep_exactly(std::chrono::milliseconds(10));
    }
  });
}

StreamTimes run_stream_work(PeerServer& server, const StreamWork& work) {
  in_child("making the queue", [&] { server.make_queue(work.queue); });
  StreamState state(work);
  RunChildren children(run_time_max);
  const double cpu_before = cpu_seconds_of(server.process()).value_or_throw();
  for (int i = 0; i < work.queue.consumers; ++i)
    children.start("consumer " + std::to_string(i + 1), [&, i] { consume(server, state, i); });
  children.start("producer", [&] { StreamProducing(server, state).run(); });
  children.wait();
  StreamTimes times = times_of(state);
  times.server_cpu_seconds = cpu_seconds_of(server.process()).value_or_throw() - cpu_before;
  check_nothing_left(server, work.queue);
  in_child("dropping the queue", [&] { server.drop_queue(work.queue); });
  return times;
}

}  // namespace lightq::bench
