/// Sends messages that are delivered later, cancels one of them, and has another delivered at once. Runs its
/// own broker.
#include <lightq/lightq.hpp>

#include <chrono>
#include <iostream>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::DelayedMessage;
using lightq::Delivered;
using lightq::Timestamp;

namespace {

/// Returns 9 o'clock of the next day, in UTC.
Timestamp nine_o_clock_tomorrow() {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const auto nine = today + std::chrono::days(1) + 9h;
  return {std::chrono::duration_cast<std::chrono::microseconds>(nine.time_since_epoch()).count()};
}

int run(lightq::Client& client) {
  client.create_topic("reminders").value_or_throw();
  const Timestamp tomorrow_at_nine = nine_o_clock_tomorrow();

  auto out = client.producer("reminders", {.delayed = true}).value_or_throw();
  out.send("drink tea", {.delay = 10min}).value_or_throw();
  out.send("call Ann", {.deliver_at = tomorrow_at_nine, .id = "call 7"}).value_or_throw();
  out.flush(5s).value_or_throw();  // both are in the schedule

  auto reminders = client.delayed("reminders").value_or_throw();
  reminders.cancel({.id = "call 7"}).value_or_throw();

  out.send("look out of the window", {.delay = 200ms}).value_or_throw();
  out.close(5s).value_or_throw();
  for (const DelayedMessage& message : reminders.list().value_or_throw().messages)
    std::cout << "message " << message.number << " of " << message.bytes << " bytes waits\n";
  reminders.hurry({}).value_or_throw();  // all that wait

  auto consumer = client.consumer("reminders", {.group = "me"}).value_or_throw();
  int received = 0;
  for (const Delivered& message : consumer.messages(5s)) {
    std::cout << message.text() << "\n";
    consumer.acknowledge(message);
    if (++received == 2) break;
  }
  consumer.close(5s).value_or_throw();
  const auto stats = client.stats("reminders").value_or_throw();
  return received == 2 && stats.delayed && stats.delayed->cancelled == 1 ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
