/// The producer's end of a stream: at full speed, paced, or with deliberate faults. Layer: bench support.
#include <sys/prctl.h>
#include <time.h>

#include <stdexcept>

#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::milliseconds probe_interval{100};

class ProducerRole {
 public:
  explicit ProducerRole(StreamRun& run)
      : run_(run), socket_(client_socket(context_, zmq::socket_type::push)) {
    socket_.set(zmq::sockopt::sndtimeo, static_cast<int>(stream_patience.count()));
  }

  int work() {
    if (!open_path()) return run_.fail("no probe came through from producer to consumer");
    run_.seen().send_begin_ns = now_ns();
    if (run_.plan.sabotage != Sabotage::none) {
      send_with_sabotage();
    } else if (run_.paced()) {
      send_paced();
    } else {
      for (std::uint64_t i = 0; i < run_.plan.message_count; ++i) send(data(i));
    }
    run_.seen().send_end_ns = now_ns();
    send({run_.id, MessageKind::end, run_.plan.message_count, 0});
    return 0;
  }

 private:
  [[nodiscard]] MessageHeader data(std::uint64_t sequence) const {
    return {run_.id, MessageKind::data, sequence, 0};
  }

  /// Sends probes until one has arrived. More than one may be needed: a broker may deliver the first to a
  /// consumer of the previous run, before it notices that this consumer has ended.
  bool open_path() {
    const Clock::time_point give_up = Clock::now() + stream_patience;
    if (!run_.listening.wait_until(give_up)) return false;
    show_ticket(socket_, run_.ends.producer_ticket, run_.ends.producer_keys);
    socket_.connect(run_.direct() ? run_.seen().consumer_uri : run_.ends.producer_uri);
    for (std::uint64_t i = 0; Clock::now() < give_up; ++i) {
      send({run_.id, MessageKind::probe, i, 0});
      if (run_.path_open.wait_until(Clock::now() + probe_interval)) return true;
    }
    return false;
  }

  void send(const MessageHeader& header) {
    zmq::message_t message(run_.pattern.message_bytes());
    run_.pattern.write(header, message.data<std::byte>());
    send(message);
  }

  void send(zmq::message_t& message) {
    if (!socket_.send(message, zmq::send_flags::none)) throw std::runtime_error("a send timed out");
  }

  /// Sends when messages are due. Due times follow the clock (open loop), however long earlier sends took.
  void send_paced() {
    ::prctl(PR_SET_TIMERSLACK, 1);
    const double interval_ns = 1e9 / run_.plan.messages_per_second;
    const std::uint64_t begin = run_.seen().send_begin_ns;
    for (std::uint64_t i = 0; i < run_.plan.message_count; ++i) {
      const auto due = begin + static_cast<std::uint64_t>(static_cast<double>(i) * interval_ns);
      const timespec when{static_cast<time_t>(due / 1'000'000'000), static_cast<long>(due % 1'000'000'000)};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
      send({run_.id, MessageKind::data, i, now_ns()});
    }
  }

  void send_with_sabotage() {
    const std::uint64_t count = run_.plan.message_count;
    const std::uint64_t sent = run_.plan.sabotage == Sabotage::end_early ? count - 1 : count;
    for (std::uint64_t i = 0; i < sent; ++i) {
      if (i == count / 2) {
        send_wrongly(i);
      } else {
        send(data(i));
      }
    }
    if (run_.plan.sabotage == Sabotage::extra) send(data(count));
  }

  void send_wrongly(std::uint64_t sequence) {
    zmq::message_t message(run_.pattern.message_bytes());
    run_.pattern.write(data(sequence), message.data<std::byte>());
    switch (run_.plan.sabotage) {
      case Sabotage::damage: message.data<std::byte>()[message.size() - 1] ^= std::byte{1}; break;
      case Sabotage::swap: send(data(sequence + 1)); break;
      case Sabotage::lose: return;
      case Sabotage::repeat: send(data(sequence)); break;
      case Sabotage::shorten: send_shortened(message); return;
      case Sabotage::stale: message.data<std::uint64_t>()[0] ^= 1; break;
      case Sabotage::stop: ::pause(); break;
      case Sabotage::crash: ::_exit(3);
      case Sabotage::none:
      case Sabotage::extra:
      case Sabotage::end_early: break;
    }
    send(message);
  }

  void send_shortened(const zmq::message_t& message) {
    zmq::message_t shorter(message.data<std::byte>(), message.size() - 1);
    send(shorter);
  }

  StreamRun& run_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
};

}  // namespace

int produce(StreamRun& run) {
  return ProducerRole(run).work();
}

}  // namespace lightq::bench
