/// Prints a topic's messages until ten seconds pass without one, and acknowledges them.
#include <lightq/lightq.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main() {
  auto client = lightq::Client::connect().value_or_throw();
  auto orders = client.consumer("orders").value_or_throw();
  while (auto order = orders.receive(10s).value_or_throw()) {
    std::cout << order->text() << '\n';
    orders.acknowledge(*order);
  }
  orders.close(5s).value_or_throw();
}
