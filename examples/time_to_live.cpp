/// Sends prices that expire, and shows that a consumer which comes later receives only those that have not.
/// Runs its own broker.
#include <lightq/lightq.hpp>

#include <iostream>
#include <string>
#include <vector>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::Delivered;

namespace {

void produce(lightq::Client& client) {
  auto out = client.producer("prices").value_or_throw();
  out.send("apples 1.20", {.ttl = 50ms}).value_or_throw();  // a time of its own
  out.send("pears 1.40").value_or_throw();                  // that of the topic
  out.close(5s).value_or_throw();
}

/// Waits until the first price has expired. A reader sees it nevertheless, marked.
void await_expiry(lightq::Client& client) {
  auto reader = client.reader("prices").value_or_throw();
  for (bool expired = false; !expired;) {
    reader.read({{0}, {1}}, [&](const Delivered& price) { expired = price.expired(); }, 5s).value_or_throw();
  }
}

int run(lightq::Client& client) {
  lightq::TopicSettings settings;
  settings.message_ttl_ms = 60'000;
  client.create_topic("prices", settings).value_or_throw();
  produce(client);
  await_expiry(client);
  std::vector<std::string> prices;
  auto in = client.consumer("prices").value_or_throw();
  const auto handled =
      in.for_each([&](const Delivered& price) { prices.emplace_back(price.text()); }, 500ms).value_or_throw();
  in.close(5s).value_or_throw();
  client.set_topic("prices", {.message_ttl_ms = 10'000}).value_or_throw();
  for (const std::string& price : prices) std::cout << price << "\n";
  return handled == 1 && prices.front() == "pears 1.40" ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
