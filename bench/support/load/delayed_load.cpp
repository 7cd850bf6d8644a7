/// The producer and the consumer of delayed messages. Layer: bench support.
#include "support/load/delayed_load.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <string>

#include "support/child_process.hpp"

namespace lightq::bench {
namespace {

constexpr const char* load_group = "workers";
constexpr std::chrono::seconds roles_time_max{600};

StreamPlan plan_of(std::uint64_t count, std::size_t message_bytes) {
  StreamPlan plan;
  plan.message_count = count;
  plan.message_bytes = message_bytes;
  return plan;
}

}  // namespace

std::int64_t wall_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

DelayedLoad::DelayedLoad(std::uint64_t count, std::size_t message_bytes)
    : stream_({}, plan_of(count, message_bytes)),
      check_(stream_.id, count, stream_.pattern),
      appended_us_(count),
      received_us_(count) {}

int DelayedLoad::publish_all(const SessionEnds& ends, std::uint64_t begin, std::uint64_t end,
                             const DueOf& due) {
  Client client = connect_to(ends);
  ProducerOptions options;
  options.connection = ends.connection;
  options.delayed = true;
  Producer producer = client.producer(ends.topic, std::move(options), ends.transport).value_or_throw();
  const MessagePattern& pattern = stream_.pattern;
  for (std::uint64_t i = begin; i < end; ++i) {
    const auto write = [&](std::span<std::byte> to) {
      pattern.write({stream_.id, MessageKind::data, i, 0}, to.data());
    };
    producer.send_in_place(pattern.message_bytes(), write, {.deliver_at = {due(i)}}).value_or_throw();
  }
  producer.close(roles_time_max).value_or_throw();
  return 0;
}

int DelayedLoad::receive_all(const SessionEnds& ends, std::uint64_t wanted,
                             std::chrono::milliseconds wait_max) {
  Client client = connect_to(ends);
  ConsumerOptions options;
  options.connection = ends.connection;
  options.group = load_group;
  Consumer consumer = client.consumer(ends.topic, options, ends.transport).value_or_throw();
  consumer.wait_open(stream_patience).value_or_throw();
  stream_.listening.raise();
  while (check_.finished() < wanted) {
    const auto batch = consumer.receive_batch(wait_max).value_or_throw();
    if (!batch) {
      return stream_.fail("nothing came for " + std::to_string(wait_max.count()) + " ms, after " +
                          std::to_string(check_.finished()) + " messages");
    }
    const std::int64_t received_us = wall_us();
    for (const Delivered& message : *batch) {
      const auto number = check_.number_of(message.payload);
      if (!number) return stream_.fail("a message came altered, or from another run");
      if (message.lost != 0) return stream_.fail("messages were lost");
      if (!check_.finish(*number)) return stream_.fail("a message came twice");
      appended_us_[*number] = message.time.us;
      received_us_[*number] = received_us;
    }
    consumer.acknowledge(*batch);
  }
  consumer.close(stream_patience).value_or_throw();
  return 0;
}

Result<void> DelayedLoad::run_roles(const std::vector<std::function<int()>>& roles) {
  std::vector<ChildProcess> children;
  std::vector<std::string> names;
  for (const std::function<int()>& role : roles) {
    Result<ChildProcess> child = ChildProcess::start([&] {
      try {
        return role();
      } catch (const std::exception& problem) {
        return stream_.fail(problem.what());
      }
    });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    names.push_back("role " + std::to_string(names.size() + 1));
  }
  const Result<void> ended = wait_for_all(children, names, Clock::now() + roles_time_max);
  if (stream_.seen().fault[0] != '\0') return failure(stream_.seen().fault);
  return ended;
}

Result<void> DelayedLoad::publish(const SessionEnds& ends, std::uint64_t begin, std::uint64_t end,
                                  const DueOf& due) {
  return run_roles({[&] { return publish_all(ends, begin, end, due); }});
}

Result<void> DelayedLoad::receive(const SessionEnds& ends, std::uint64_t count,
                                  std::chrono::milliseconds wait_max) {
  const std::uint64_t wanted = check_.finished() + count;
  return run_roles({[&] { return receive_all(ends, wanted, wait_max); }});
}

Result<void> DelayedLoad::run(const SessionEnds& ends, const DueTimes& due,
                              std::chrono::milliseconds wait_max) {
  const std::uint64_t count = stream_.plan.message_count;
  const auto produce = [&] {
    if (!stream_.listening.wait_until(Clock::now() + stream_patience))
      return stream_.fail("the consumer did not open the topic");
    const int status = publish_all(ends, 0, count, [&](std::uint64_t number) { return due.of(number); });
    if (status == 0 && due.first_us <= wall_us())
      return stream_.fail("the messages were not published before they were due");
    return status;
  };
  return run_roles({[&] { return receive_all(ends, count, wait_max); }, produce});
}

Result<Lateness> DelayedLoad::lateness(const DueOf& due) {
  Lateness late;
  for (std::uint64_t number = 0; number < received_us_.size(); ++number) {
    if (received_us_[number] == 0) continue;
    const std::int64_t due_us = due(number);
    if (received_us_[number] < due_us || appended_us_[number] < due_us) {
      return failure("message " + std::to_string(number) + " was due at " + std::to_string(due_us) +
                     ", was appended at " + std::to_string(appended_us_[number]) + " and received at " +
                     std::to_string(received_us_[number]) + " µs");
    }
    late.appended_ms.push_back(static_cast<double>(appended_us_[number] - due_us) / 1e3);
    late.received_ms.push_back(static_cast<double>(received_us_[number] - due_us) / 1e3);
  }
  return late;
}

std::int64_t DelayedLoad::last_received_us() {
  std::int64_t last = 0;
  for (std::uint64_t number = 0; number < received_us_.size(); ++number)
    last = std::max(last, received_us_[number]);
  return last;
}

void DelayedLoad::note(std::uint64_t number, std::int64_t appended_us, std::int64_t received_us) {
  appended_us_[number] = appended_us;
  received_us_[number] = received_us;
}

}  // namespace lightq::bench
