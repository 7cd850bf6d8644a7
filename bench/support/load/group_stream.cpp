/// The producer and the consumer of a group stream. Layer: bench support.
#include "support/load/group_stream.hpp"

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/once_check.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

struct GroupRun {
  GroupRun(const SessionEnds& session_ends, const StreamPlan& plan, const GroupWork& group_work)
      : stream({}, plan),
        ends(session_ends),
        work(group_work),
        check(stream.id, plan.message_count, stream.pattern) {}

  StreamRun stream;
  SessionEnds ends;
  GroupWork work;
  OnceCheck check;
};

int produce_all(GroupRun& run) {
  Client client = connect_to(run.ends);
  ProducerOptions options;
  options.level = run.ends.level;
  options.connection = run.ends.connection;
  options.delayed = run.work.delay.count() > 0;
  Producer producer =
      client.producer(run.ends.topic, std::move(options), run.ends.transport).value_or_throw();
  producer.poll(Timeout(0)).value_or_throw();
  if (!run.stream.listening.wait_until(Clock::now() + stream_patience))
    return run.stream.fail("the consumer did not open the topic");
  const MessagePattern& pattern = run.stream.pattern;
  const Header header{run.work.header_name, run.work.header_value};
  const Attributes attributes{.headers = {&header, run.work.header_name.empty() ? 0U : 1U},
                              .delay = run.work.delay};
  const bool has_attributes = !attributes.headers.empty() || attributes.has_due();
  for (std::uint64_t i = 0; i < run.stream.plan.message_count; ++i) {
    const bool is_stamped = run.work.delay.count() > 0 && i % GroupWork::stamped_one_of == 0;
    const std::uint64_t sent_ns = is_stamped ? now_ns() : 0;
    const auto write = [&](std::span<std::byte> to) {
      pattern.write({run.stream.id, MessageKind::data, i, sent_ns}, to.data());
    };
    if (!has_attributes) {
      producer.send_in_place(pattern.message_bytes(), write).value_or_throw();
    } else {
      producer.send_in_place(pattern.message_bytes(), write, attributes).value_or_throw();
    }
  }
  producer.close(stream_patience).value_or_throw();
  return 0;
}

class GroupConsumer {
 public:
  explicit GroupConsumer(GroupRun& run) : run_(run), board_(run.stream.seen()) {}

  int work() {
    Client client = connect_to(run_.ends);
    ConsumerOptions options;
    options.connection = run_.ends.connection;
    options.group = run_.work.group;
    Consumer consumer = client.consumer(run_.ends.topic, options, run_.ends.transport).value_or_throw();
    consumer.wait_open(stream_patience).value_or_throw();
    run_.stream.listening.raise();
    while (!run_.check.is_complete()) {
      const auto batch = consumer.receive_batch(stream_patience).value_or_throw();
      if (!batch) {
        return run_.stream.fail("nothing came for " + std::to_string(stream_patience.count()) +
                                " ms, after " + std::to_string(run_.check.finished()) + " messages");
      }
      received_ns_ = now_ns();
      if (board_.first_receive_ns == 0) board_.first_receive_ns = received_ns_;
      for (const Delivered& message : *batch) {
        if (const char* const fault = settle(consumer, message)) return run_.stream.fail(fault);
      }
      if (run_.work.whole_batches) settle_batch(consumer, *batch);
    }
    board_.last_receive_ns = now_ns();
    consumer.close(stream_patience).value_or_throw();
    return 0;
  }

 private:
  /// Acknowledges or rejects the message, unless its batch is settled as a whole. Returns the fault of
  /// the message, or nullptr.
  const char* settle(Consumer& consumer, const Delivered& message) {
    const auto number = run_.check.number_of(message.payload);
    if (!number) return "a message came altered, or from another run";
    if (*number % GroupWork::stamped_one_of == 0 &&
        run_.work.is_early(OnceCheck::sent_ns_of(message.payload), received_ns_))
      return "a delayed message came too early";
    const bool has_second = run_.work.rejects(*number);
    if (message.delivery > (has_second ? 2U : 1U)) return "a message came too often";
    const bool finishes = message.delivery == (has_second ? 2U : 1U);
    if (finishes && !run_.check.finish(*number)) return "a message came twice";
    if (run_.work.whole_batches) return nullptr;
    if (finishes) {
      consumer.acknowledge(message);
    } else {
      consumer.reject(message.offset);
    }
    return nullptr;
  }
  /// All messages of a batch have the same number of deliveries.
  void settle_batch(Consumer& consumer, const DeliveredBatch& batch) {
    const std::uint32_t finishing = run_.work.rejects_one_of == 1 ? 2 : 1;
    if ((*batch.begin()).delivery == finishing) {
      consumer.acknowledge(batch);
    } else {
      consumer.reject(batch.range());
    }
  }

  GroupRun& run_;
  StreamBoard& board_;
  std::uint64_t received_ns_ = 0;  // of the last batch
};

}  // namespace

Result<StreamResult> run_group_stream(const SessionEnds& ends, const StreamPlan& plan,
                                      const GroupWork& work) {
  GroupRun run(ends, plan, work);
  std::vector<ChildProcess> children;
  const auto start = [&](const std::function<int()>& role) -> Result<void> {
    Result<ChildProcess> child = ChildProcess::start([&] {
      try {
        return role();
      } catch (const std::exception& problem) {
        return run.stream.fail(problem.what());
      }
    });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    return {};
  };
  if (auto started = start([&run] { return GroupConsumer(run).work(); }); !started) return started.error();
  if (auto started = start([&run] { return produce_all(run); }); !started) return started.error();
  const Result<void> ended = wait_for_all(children, {"consumer", "producer"}, Clock::now() + plan.time_max);
  if (run.stream.seen().fault[0] != '\0') return failure(run.stream.seen().fault);
  if (!ended) return ended.error();
  StreamResult result;
  const StreamBoard& board = run.stream.seen();
  result.seconds = static_cast<double>(board.last_receive_ns - board.first_receive_ns) / 1e9;
  if (result.seconds > 0)
    result.messages_per_second = static_cast<double>(plan.message_count) / result.seconds;
  return result;
}

}  // namespace lightq::bench
