/// Sends a thousand messages to a topic: the README's ten lines. Make the topic first:
/// lightq topic create orders
#include <lightq/lightq.hpp>

int main() {
  auto client = lightq::Client::connect().value_or_throw();  // LIGHTQ_BROKER, or this machine's broker
  auto orders = client.producer("orders").value_or_throw();  // move-only; joins the topic
  for (int i = 0; i < 1000; ++i)
    orders.send("order " + std::to_string(i)).value_or_throw();  // waits while the broker takes nothing
  orders.close().value_or_throw();                               // waits until everything has left
}
