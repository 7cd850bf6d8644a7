/// Sends a thousand messages to an existing topic, and ends when all are stored.
#include <lightq/lightq.hpp>

#include <string>

using namespace std::chrono_literals;

int main() {
  auto client = lightq::Client::connect().value_or_throw();  // or connect("tcp://HOST:PORT")
  auto orders = client.producer("orders").value_or_throw();
  for (int i = 0; i < 1000; ++i) orders.send("order " + std::to_string(i)).value_or_throw();
  orders.close(5s).value_or_throw();
}
