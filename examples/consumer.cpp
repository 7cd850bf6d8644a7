/// Prints a topic's messages until ten seconds pass without one: the README's ten lines.
#include <lightq/lightq.hpp>

#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto client = lightq::Client::connect().value_or_throw();
  auto orders = client.consumer("orders", {.mode = lightq::Mode::pull}).value_or_throw();
  for (const lightq::Message& order : orders.messages(10s)) std::cout << order.text() << '\n';
  orders.leave().value_or_throw();  // what was handed over already still comes
  for (const lightq::Message& order : orders.messages(1s)) std::cout << order.text() << '\n';
}
