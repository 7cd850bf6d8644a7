/// A group retries messages that fail, with a back-off, and keeps hopeless ones apart. Later somebody looks
/// at the failures, and gives a message back. Runs its own broker.
#include <lightq/lightq.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::DeadCause;
using lightq::DeadMessage;
using lightq::DeadPage;
using lightq::Delivered;

namespace {

bool is_order(const Delivered& message) {
  return message.text().starts_with("order");
}

/// Bills an order. The order of pears fails as long as there are none.
void bill(const Delivered& order, bool has_pears) {
  if (!has_pears && order.text() == "order pears") throw std::runtime_error("no pears");
}

/// Processes messages until none comes for a second.
void work(lightq::Consumer& consumer, bool has_pears) {
  for (const Delivered& message : consumer.messages(1s)) {
    if (!is_order(message)) {
      consumer.dead_letter(message.offset, "not an order");  // no attempt would help
      continue;
    }
    try {
      bill(message, has_pears);
      consumer.acknowledge(message);
    } catch (const std::runtime_error&) {
      consumer.reject(message.offset);  // the group waits, and tries again
    }
  }
}

int run(lightq::Client& client) {
  client.create_topic("orders").value_or_throw();
  auto billing = client.group("orders", "billing").value_or_throw();
  billing.set({.max_attempts = 3, .backoff_ms = {{100, 200}}}).value_or_throw();

  auto out = client.producer("orders").value_or_throw();
  for (const char* text : {"order apples", "order pears", "hello", "order plums"})
    out.send(text).value_or_throw();
  out.close(5s).value_or_throw();
  auto consumer = client.consumer("orders", {.group = "billing"}).value_or_throw();
  work(consumer, false);
  consumer.flush(5s).value_or_throw();

  DeadPage page;
  while (page.messages.size() < 2) page = billing.list_dead().value_or_throw();
  for (const DeadMessage& dead : page.messages)
    std::cout << dead.offset << " failed " << dead.attempts << " times; " << dead.reason << "\n";

  billing.retry_dead({.cause = DeadCause::attempts}).value_or_throw();  // there are pears again
  work(consumer, true);
  billing.purge_dead({.cause = DeadCause::rejected}).value_or_throw();  // nobody needs it
  consumer.close(5s).value_or_throw();
  const auto stats = client.stats("orders").value_or_throw();
  return stats.groups.at(0).pending == 0 && stats.groups.at(0).dead == 2 ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
