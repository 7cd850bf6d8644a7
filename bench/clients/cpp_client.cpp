/// The C++ client for suite `clients`, as clients/client_program.hpp specifies. As a producer it also makes
/// mistakes on purpose: modes swap, lose, repeat, damage and extra. Layer: bench.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>

#include "support/numbered_messages.hpp"

namespace {

using namespace lightq;
using namespace lightq::bench;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 30s;
constexpr int argument_count_wanted = 6;

struct Task {
  std::string mode;
  std::string topic;
  std::size_t bytes;
  std::uint64_t count;
};

void send(Producer& producer, ByteView message) {
  producer.send(message).value_or_throw();
}

void send_damaged(Producer& producer, ByteView message) {
  std::vector<std::byte> altered(message.begin(), message.end());
  altered.back() ^= std::byte{1};
  send(producer, altered);
}

int produce(Client& client, const Task& task) {
  NumberedMessages messages(task.bytes);
  auto producer = client.producer(task.topic).value_or_throw();
  const std::uint64_t wrong = task.mode == "single" ? task.count : task.count / 2;
  for (std::uint64_t i = 0; i < task.count; ++i) {
    if (i == wrong && task.mode == "lose") continue;
    if (i == wrong && task.mode == "damage") {
      send_damaged(producer, messages.at(i));
      continue;
    }
    if (i == wrong && task.mode == "repeat") send(producer, messages.at(i - 1));
    const bool swapped = task.mode == "swap" && (i == wrong || i == wrong + 1);
    send(producer, messages.at(swapped ? 2 * wrong + 1 - i : i));
  }
  if (task.mode == "extra") send(producer, messages.at(task.count));
  producer.close(patience).value_or_throw();
  return 0;
}

int consume(Client& client, const Task& task) {
  const NumberedMessages messages(task.bytes);
  auto consumer = client.consumer(task.topic, {.group = "bench"}).value_or_throw();
  consumer.wait_open(patience).value_or_throw();
  std::puts("ready");
  std::fflush(stdout);
  Clock::time_point begun;
  for (std::uint64_t i = 0; i < task.count; ++i) {
    const auto message = consumer.receive(patience).value_or_throw();
    check(message.has_value(), "no message came in time");
    messages.check_is(i, message->payload);
    consumer.acknowledge(*message);
    if (i == task.count / 10) begun = Clock::now();
  }
  std::printf("received %.9f\n", std::chrono::duration<double>(Clock::now() - begun).count());
  consumer.close(patience).value_or_throw();
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != argument_count_wanted) return 2;
  try {
    const Task task{arguments[2], arguments[3], std::stoul(arguments[4]), std::stoull(arguments[5])};
    auto client = Client::connect().value_or_throw();
    return arguments[1] == std::string("produce") ? produce(client, task) : consume(client, task);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
