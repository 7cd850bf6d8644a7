/// Prints a topic's messages until ten seconds pass without one.
#include <lightq/lightq.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main() {
  auto client = lightq::Client::connect("tcp://127.0.0.1:5000").value_or_throw();
  auto orders = client.plain_consumer("orders").value_or_throw();
  while (auto message = orders.receive(10s).value_or_throw()) std::cout << message->text() << '\n';
}
