/// Contains the parts of programs that docs/clients.md shows. tests/e2e/test_docs_examples.py runs it.
#include <lightq/lightq.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <span>
#include <string_view>

using namespace std::chrono_literals;

namespace {

void bill(std::string_view order) {
  std::cout << "billed " << order << '\n';
}

void bill_all(lightq::Client& client) {
  auto orders = client.consumer("orders", {.group = "billing"}).value_or_throw();
  for (const lightq::Delivered& order : orders.messages(10s)) {  // until ten seconds pass without one
    bill(order.text());                                          // in the received batch, not a copy
    orders.acknowledge(order);
  }
  orders.close(5s).value_or_throw();  // the broker knows what was billed
}

void send_with_key_and_headers(lightq::Producer& orders, const lightq::Delivered& order) {
  const lightq::Header headers[] = {{"content-type", "application/json"}};
  orders.send(R"({"tea": 2})", {.key = "customer 17", .headers = headers}).value_or_throw();

  if (order.key() == "customer 17" && order.header("content-type")) bill(order.text());
}

void send_in_place(lightq::Producer& orders) {
  const std::uint64_t reading = 17;
  const auto write = [&](std::span<std::byte> to) { std::memcpy(to.data(), &reading, sizeof reading); };
  orders.send_in_place(sizeof reading, write).value_or_throw();
}

}  // namespace

int main() {
  auto client = lightq::Client::connect().value_or_throw();
  auto orders = client.producer("orders").value_or_throw();
  auto own = client.consumer("orders", {.mode = lightq::ConsumeMode::own}).value_or_throw();
  orders.send("the first").value_or_throw();
  orders.flush(5s).value_or_throw();
  const auto first = own.receive(10s).value_or_throw();
  send_with_key_and_headers(orders, *first);  // the first message has none itself
  orders.flush(5s).value_or_throw();
  const auto second = own.receive(10s).value_or_throw();
  send_with_key_and_headers(orders, *second);  // this call bills the second message
  send_in_place(orders);
  orders.close(5s).value_or_throw();
  bill_all(client);
}
