/// Sends messages with a key and headers in compressed batches. Runs its own broker.
#include <lightq/lightq.hpp>

#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::Delivered;

namespace {

struct Order {
  std::string text;
  std::string customer;
};

void produce(lightq::Client& client) {
  auto out = client.producer("orders", {.compression = lightq::Codec::zstd}).value_or_throw();
  const lightq::Header headers[] = {{"content-type", "text/plain"}, {"trace", "4711"}};
  for (int i = 0; i < 1000; ++i) {
    const Order order{"order " + std::to_string(i), "customer " + std::to_string(i % 10)};
    out.send(order.text, {.key = order.customer, .headers = headers}).value_or_throw();
  }
  out.close(5s).value_or_throw();
}

int run(lightq::Client& client) {
  client.create_topic("orders").value_or_throw();
  produce(client);
  std::map<std::string, int> of_customer;
  auto in = client.consumer("orders").value_or_throw();
  const auto handled = in.for_each(
      [&](const Delivered& order) {
        if (order.header("content-type") != "text/plain")
          throw std::runtime_error("an order without its type");
        ++of_customer[std::string(order.key())];
      },
      500ms);
  if (!handled) throw lightq::Exception(handled.error());
  in.close(5s).value_or_throw();
  for (const auto& [customer, orders] : of_customer) std::cout << customer << ": " << orders << " orders\n";
  return *handled == 1000 && of_customer.size() == 10 ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
