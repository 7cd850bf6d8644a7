/// The two ends of a stream over sessions. Layer: bench support.
#include "support/session_stream.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <stdexcept>

#include "support/broker_route.hpp"
#include "support/child_process.hpp"
#include "support/stamp_clock.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t confirm_sample = 64;        // one of this many messages is sampled
constexpr std::uint64_t looks_for_ns_max = 40'000;  // during shorter waits the producer polls for confirms

/// Shared memory in which a consumer records results.
struct ConsumerBoard {
  std::uint64_t first_receive_ns;
  std::uint64_t last_receive_ns;
};

struct SessionRun {
  SessionRun(const SessionEnds& session_ends, const StreamPlan& plan, bool is_stamped)
      : stream({}, plan),
        ends(session_ends),
        stamped(is_stamped || stream.paced()),
        consumers(static_cast<std::size_t>(std::max(ends.subscribers, 1))),
        latency_ns(stamped ? plan.message_count : 1),
        sent_ns(stamped ? plan.message_count / confirm_sample + 1 : 1),
        confirm_ns(sent_ns.size()) {}

  StreamRun stream;
  SessionEnds ends;
  bool stamped;
  SharedArray<ConsumerBoard> consumers;
  SharedArray<std::uint64_t> latency_ns;   // of the first consumer, by sequence; if stamped
  SharedArray<std::uint64_t> sent_ns;      // by sequence / confirm_sample; if stamped
  SharedArray<std::uint64_t> confirm_ns;   // by sequence / confirm_sample; if stamped
  SharedArray<std::atomic<int>> ready{2};  // consumers that are open; that have received a probe
};

class ProducerRole {
 public:
  explicit ProducerRole(SessionRun& run) : run_(run), stream_(run.stream) {}

  int work() {
    Client client = connect_to(run_.ends);
    ProducerOptions options;
    options.level = run_.ends.level;
    options.connection = run_.ends.connection;
    options.window_bytes = run_.ends.window_bytes;
    producer_.emplace(
        client.producer(run_.ends.topic, std::move(options), run_.ends.transport).value_or_throw());
    if (!open_path()) return stream_.fail("no probe came through from producer to consumer");
    if (run_.stamped) keep_confirm_times();
    stream_.seen().send_begin_ns = now_ns();
    for (std::uint64_t i = 0; i < stream_.plan.message_count; ++i) {
      if (stream_.plan.sabotage == Sabotage::lose && i == stream_.plan.message_count / 2) continue;
      if (stream_.paced()) wait_until_due(i);
      send(MessageKind::data, i, run_.stamped ? stamp_ns() : 0);
    }
    stream_.seen().send_end_ns = now_ns();
    send(MessageKind::end, stream_.plan.message_count, 0);
    producer_->close(stream_patience).value_or_throw();
    return 0;
  }

 private:
  bool open_path() {
    const Clock::time_point give_up = Clock::now() + stream_patience;
    const int consumers = static_cast<int>(run_.consumers.size());
    for (bool probed = false; Clock::now() < give_up;) {
      if (run_.ready[0] == consumers && !probed) {
        probed = true;
        send(MessageKind::probe, 0, 0);
        producer_->flush(stream_patience).value_or_throw();
        probes_ = 1;
      }
      if (run_.ready[1] == consumers) return true;
      producer_->poll(Timeout(1)).value_or_throw();
    }
    return false;
  }

  /// Records confirm times by message number. The producer's own count includes the probes sent before.
  void keep_confirm_times() {
    producer_->on_report([this](const SendReport& report) {
      const std::uint64_t now = stamp_ns();
      const std::uint64_t first =
          (std::max(report.begin, probes_) - probes_ + confirm_sample - 1) / confirm_sample;
      for (std::uint64_t i = first; i * confirm_sample + probes_ < report.end && i < run_.confirm_ns.size();
           ++i)
        run_.confirm_ns[i] = now;
    });
  }

  void send(MessageKind kind, std::uint64_t sequence, std::uint64_t sent_ns) {
    const MessagePattern& pattern = stream_.pattern;
    const auto write = [&](std::span<std::byte> to) {
      pattern.write({stream_.id, kind, sequence, sent_ns}, to.data());
    };
    if (sent_ns != 0 && sequence % confirm_sample == 0) run_.sent_ns[sequence / confirm_sample] = sent_ns;
    producer_->send_in_place(pattern.message_bytes(), write).value_or_throw();
  }

  /// Waits until message `number` is due. Due times follow the clock (open loop), however long earlier sends
  /// took.
  void wait_until_due(std::uint64_t number) {
    if (number == 0) ::prctl(PR_SET_TIMERSLACK, 1);
    const double interval_ns = 1e9 / stream_.plan.messages_per_second;
    const auto due =
        stream_.seen().send_begin_ns + static_cast<std::uint64_t>(static_cast<double>(number) * interval_ns);
    while (now_ns() < due) {
      producer_->poll(Timeout(0)).value_or_throw();
      if (now_ns() + looks_for_ns_max > due) continue;
      const timespec when{static_cast<time_t>(due / 1'000'000'000), static_cast<long>(due % 1'000'000'000)};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
    }
  }

  SessionRun& run_;
  StreamRun& stream_;
  std::optional<Producer> producer_;
  std::uint64_t probes_ = 0;
};

class ConsumerRole {
 public:
  ConsumerRole(SessionRun& run, std::size_t number)
      : run_(run),
        board_(run.consumers[number]),
        stamps_(run.stamped && number == 0),
        check_(run.stream.id, run.stream.plan.message_count, run.stream.pattern) {}

  int work() {
    Client client = connect_to(run_.ends);
    ConsumerOptions options;
    options.connection = run_.ends.connection;
    if (run_.ends.subscribers > 0) {
      options.mode = ConsumeMode::own;
      options.from = From::next();
    }
    auto consumer = client.consumer(run_.ends.topic, options, run_.ends.transport).value_or_throw();
    ++run_.ready[0];
    while (!ended_) {
      auto batch = consumer.receive_batch(stream_patience).value_or_throw();
      if (!batch) {
        return run_.stream.fail("nothing came for " + std::to_string(stream_patience.count()) +
                                " ms, after " + std::to_string(check_.received()) + " messages");
      }
      for (const Delivered& message : *batch) {
        if (!take(message)) return run_.stream.fail(check_.fault());
      }
      consumer.acknowledge(*batch);
    }
    consumer.close(stream_patience).value_or_throw();
    return 0;
  }

 private:
  bool take(const Delivered& message) {
    switch (check_.accept(message.payload)) {
      case StreamCheck::Verdict::data: note_data(); return true;
      case StreamCheck::Verdict::probe: ++run_.ready[1]; return true;
      case StreamCheck::Verdict::end: return ended_ = true;
      case StreamCheck::Verdict::fault: break;
    }
    return false;
  }

  void note_data() {
    const std::uint64_t received = check_.received();
    if (stamps_) run_.latency_ns[check_.header().sequence] = stamp_ns() - check_.header().sent_ns;
    if (received == 1) board_.first_receive_ns = now_ns();
    if (received == run_.stream.plan.message_count) board_.last_receive_ns = now_ns();
  }

  SessionRun& run_;
  ConsumerBoard& board_;
  const bool stamps_;
  StreamCheck check_;
  bool ended_ = false;
};

SessionResult result_of(SessionRun& run) {
  SessionResult result;
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < run.consumers.size(); ++i) {
    first = std::min(first, run.consumers[i].first_receive_ns);
    last = std::max(last, run.consumers[i].last_receive_ns);
  }
  const double count = static_cast<double>(run.stream.plan.message_count);
  result.stream.seconds = static_cast<double>(last - first) / 1e9;
  if (last > first) result.stream.messages_per_second = count / result.stream.seconds;
  if (!run.stamped) return result;
  for (std::size_t i = run.latency_ns.size() / 10; i < run.latency_ns.size(); ++i)
    result.stream.latency_us.push_back(static_cast<double>(run.latency_ns[i]) / 1e3);
  for (std::size_t i = run.confirm_ns.size() / 10; i < run.confirm_ns.size(); ++i) {
    if (run.sent_ns[i] != 0 && run.confirm_ns[i] > run.sent_ns[i])
      result.confirm_us.push_back(static_cast<double>(run.confirm_ns[i] - run.sent_ns[i]) / 1e3);
  }
  return result;
}

/// Records an exception of a role as its fault.
template <typename Work>
int guarded(SessionRun& run, Work work) {
  try {
    return work();
  } catch (const std::exception& problem) {
    return run.stream.fail(problem.what());
  }
}

}  // namespace

Client connect_to(const SessionEnds& ends) {
  ClientOptions options;
  options.user = {bench_user, bench_password};
  options.discover_credentials = false;
  options.server_key = ends.server_key;
  return Client::connect(ends.control_uri, std::move(options)).value_or_throw();
}

Result<SessionResult> run_session_stream(const SessionEnds& ends, const StreamPlan& plan, bool stamped) {
  SessionRun run(ends, plan, stamped);
  std::vector<ChildProcess> children;
  std::vector<std::string> names;
  const auto start = [&](const std::string& name, const std::function<int()>& role) -> Result<void> {
    Result<ChildProcess> child = ChildProcess::start([&] { return guarded(run, role); });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    names.push_back(name);
    return {};
  };
  for (std::size_t i = 0; i < run.consumers.size(); ++i) {
    if (auto started =
            start("consumer " + std::to_string(i + 1), [&run, i] { return ConsumerRole(run, i).work(); });
        !started)
      return started.error();
  }
  if (auto started = start("producer", [&run] { return ProducerRole(run).work(); }); !started)
    return started.error();
  const Result<void> ended = wait_for_all(children, names, Clock::now() + plan.time_max);
  if (run.stream.seen().fault[0] != '\0') return failure(run.stream.seen().fault);
  if (!ended) return ended.error();
  return result_of(run);
}

}  // namespace lightq::bench
