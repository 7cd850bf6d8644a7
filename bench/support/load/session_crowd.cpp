/// The producer and consumer processes of a session crowd, and the check that each message arrived exactly
/// once. Layer: bench support.
#include "support/load/session_crowd.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr Timeout look_interval{50};

/// Shared memory in which a consumer records results.
struct CrowdBoard {
  std::uint64_t first_receive_ns;
  std::uint64_t last_receive_ns;
};

constexpr std::uint64_t seen_bits = 64;  // bits per word of `seen`

struct CrowdRun {
  CrowdRun(const SessionEnds& session_ends, const StreamPlan& plan, int producer_count, int consumer_count)
      : stream({}, plan),
        ends(session_ends),
        producers(static_cast<std::uint64_t>(producer_count)),
        each(plan.message_count / producers),
        boards(static_cast<std::size_t>(consumer_count)),
        seen(boards.size() * seen_words()) {}
  [[nodiscard]] std::uint64_t total() const { return each * producers; }
  [[nodiscard]] std::size_t seen_words() const { return total() / seen_bits + 1; }
  /// Returns the words of the consumer at `place`.
  [[nodiscard]] std::uint64_t* seen_by(std::size_t place) { return &seen[place * seen_words()]; }
  /// Checks that every message reached exactly one consumer; nullptr if so. Each consumer checks for
  /// repetitions itself.
  [[nodiscard]] const char* fault() {
    for (std::size_t word = 0; word < seen_words(); ++word) {
      std::uint64_t all = 0;
      for (std::size_t place = 0; place < boards.size(); ++place) {
        if ((all & seen_by(place)[word]) != 0) return "a message came to two consumers";
        all |= seen_by(place)[word];
      }
      const std::uint64_t left = std::min<std::uint64_t>(total() - word * seen_bits, seen_bits);
      if (all != (left == seen_bits ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1))
        return "a message did not come";
    }
    return nullptr;
  }

  StreamRun stream;
  SessionEnds ends;
  const std::uint64_t producers;
  const std::uint64_t each;  // messages per producer; those of producer i begin with i times this number
  SharedArray<CrowdBoard> boards;
  SharedArray<std::uint64_t> seen;                   // one bit per message, for each consumer
  SharedArray<std::atomic<std::uint64_t>> taken{1};  // messages received by all consumers
  SharedArray<std::atomic<std::size_t>> ready{1};    // processes that have opened
};

/// Waits until all processes have opened, so that every consumer takes part.
void wait_for_others(CrowdRun& run, Producer& producer) {
  const Clock::time_point give_up = Clock::now() + stream_patience;
  ++run.ready[0];
  while (run.ready[0] < run.boards.size() + run.producers) {
    if (Clock::now() > give_up) throw std::runtime_error("not all processes came");
    producer.poll(Timeout(1)).value_or_throw();
  }
}

int produce_part(CrowdRun& run, std::uint64_t place) {
  Client client = connect_to(run.ends);
  ProducerOptions options;
  options.level = run.ends.level;
  Producer producer = client.producer(run.ends.topic, std::move(options)).value_or_throw();
  wait_for_others(run, producer);
  const MessagePattern& pattern = run.stream.pattern;
  for (std::uint64_t i = 0; i < run.each; ++i) {
    const auto write = [&](std::span<std::byte> to) {
      pattern.write({run.stream.id, MessageKind::data, place * run.each + i, 0}, to.data());
    };
    producer.send_in_place(pattern.message_bytes(), write).value_or_throw();
  }
  producer.close(stream_patience).value_or_throw();
  return 0;
}

class CrowdConsumer {
 public:
  CrowdConsumer(CrowdRun& run, std::size_t place)
      : run_(run), board_(run.boards[place]), seen_(run.seen_by(place)), next_(run.producers) {}

  int work() {
    Client client = connect_to(run_.ends);
    Consumer consumer = client.consumer(run_.ends.topic).value_or_throw();
    ++run_.ready[0];
    Clock::time_point give_up = Clock::now() + stream_patience;
    while (run_.taken[0] < run_.total()) {
      auto batch = consumer.receive_batch(look_interval).value_or_throw();
      if (!batch) {
        if (Clock::now() < give_up) continue;
        return run_.stream.fail("messages are missing: " + std::to_string(run_.taken[0]) + " of " +
                                std::to_string(run_.total()) + " came");
      }
      std::uint64_t count = 0;
      for (const Delivered& message : *batch) {
        if (const char* const fault = fault_of(message.payload)) return run_.stream.fail(fault);
        ++count;
      }
      board_.last_receive_ns = now_ns();
      if (board_.first_receive_ns == 0) board_.first_receive_ns = board_.last_receive_ns;
      run_.taken[0] += count;
      consumer.acknowledge(*batch);
      give_up = Clock::now() + stream_patience;
    }
    consumer.close(stream_patience).value_or_throw();
    return 0;
  }

 private:
  const char* fault_of(ByteView message) {
    MessageHeader header;
    if (message.size() != run_.stream.pattern.message_bytes()) return "a message of another length";
    std::memcpy(&header, message.data(), sizeof header);
    if (header.run != run_.stream.id || header.sequence >= run_.total()) return "a message of another run";
    if (!run_.stream.pattern.content_matches(header.sequence, message)) return "a message came altered";
    if (header.sequence - of_producer_ * run_.each >= run_.each) of_producer_ = header.sequence / run_.each;
    std::uint64_t& next = next_[of_producer_];
    if (header.sequence < next) return "a producer's messages came out of order";
    next = header.sequence + 1;
    std::uint64_t& seen = seen_[header.sequence / seen_bits];
    const std::uint64_t bit = std::uint64_t{1} << header.sequence % seen_bits;
    if ((seen & bit) != 0) return "a message came twice";
    seen |= bit;
    return nullptr;
  }

  CrowdRun& run_;
  CrowdBoard& board_;
  std::uint64_t* const seen_;
  std::vector<std::uint64_t> next_;  // by producer
  std::uint64_t of_producer_ = 0;    // the producer of the latest message
};

StreamResult result_of(CrowdRun& run) {
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < run.boards.size(); ++i) {
    if (run.boards[i].first_receive_ns == 0) continue;  // faster consumers received all messages
    first = std::min(first, run.boards[i].first_receive_ns);
    last = std::max(last, run.boards[i].last_receive_ns);
  }
  StreamResult result;
  result.seconds = static_cast<double>(last - first) / 1e9;
  if (last > first) result.messages_per_second = static_cast<double>(run.total()) / result.seconds;
  return result;
}

}  // namespace

Result<StreamResult> run_session_crowd(const SessionEnds& ends, const StreamPlan& plan, int producers,
                                       int consumers) {
  CrowdRun run(ends, plan, producers, consumers);
  std::vector<ChildProcess> children;
  std::vector<std::string> names;
  const auto start = [&](const std::string& name, const std::function<int()>& role) -> Result<void> {
    Result<ChildProcess> child = ChildProcess::start([&] {
      try {
        return role();
      } catch (const std::exception& problem) {
        return run.stream.fail(problem.what());
      }
    });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    names.push_back(name);
    return {};
  };
  for (int i = 0; i < consumers; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (auto started = start("consumer " + std::to_string(i + 1),
                             [&run, place] { return CrowdConsumer(run, place).work(); });
        !started)
      return started.error();
  }
  for (int i = 0; i < producers; ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    if (auto started =
            start("producer " + std::to_string(i + 1), [&run, place] { return produce_part(run, place); });
        !started)
      return started.error();
  }
  const Result<void> ended = wait_for_all(children, names, Clock::now() + plan.time_max);
  if (run.stream.seen().fault[0] != '\0') return failure(run.stream.seen().fault);
  if (!ended) return ended.error();
  if (const char* const fault = run.fault()) return failure(fault);
  return result_of(run);
}

}  // namespace lightq::bench
