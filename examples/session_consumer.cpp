/// Two members of a group share a topic's messages. Each message is acknowledged when it is processed;
/// messages that the first member leaves unacknowledged go to the other one. Runs its own broker.
#include <lightq/lightq.hpp>

#include <iostream>
#include <set>
#include <stdexcept>
#include <string>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::Delivered;

namespace {

constexpr int orders = 1000;

void produce(lightq::Client& client) {
  auto out = client.producer("orders").value_or_throw();
  for (int i = 0; i < orders; ++i) out.send("order " + std::to_string(i)).value_or_throw();
  out.close(5s).value_or_throw();
}

/// Receives three hundred orders, bills a hundred, and leaves.
void bill_some(lightq::Client& client, std::set<std::string>& billed) {
  auto first = client.consumer("orders", {.group = "billing"}).value_or_throw();
  for (int i = 0; i < 300; ++i) {
    const auto order = first.receive(5s).value_or_throw();
    if (!order) throw std::runtime_error("an order is missing");
    if (i >= 100) continue;
    billed.emplace(order->text());
    first.acknowledge(*order);
  }
  first.close(5s).value_or_throw();  // the broker has the hundred acknowledgements
}

int run(lightq::Client& client) {
  client.create_topic("orders").value_or_throw();
  produce(client);
  std::set<std::string> billed;
  bill_some(client, billed);
  auto second = client.consumer("orders", {.group = "billing"}).value_or_throw();
  std::uint64_t again = 0;
  const auto handled = second.for_each(
      [&](const Delivered& order) {
        if (order.is_again()) ++again;
        billed.emplace(order.text());
      },
      500ms);
  if (!handled) throw lightq::Exception(handled.error());
  second.close(5s).value_or_throw();
  std::cout << *handled << " orders came to the second member, " << again << " of them again; "
            << billed.size() << " are billed\n";
  return *handled == orders - 100 && again >= 200 && billed.size() == orders ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
