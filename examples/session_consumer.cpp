/// Two members of a group share a topic's messages: each is acknowledged when it is done with, and what was
/// not acknowledged goes to the other member. Brings a broker of its own.
#include <lightq/lightq.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>

#include "broker/broker.hpp"

using namespace std::chrono_literals;
using lightq::Delivered;

namespace {

/// The broker's log lines: here only what went wrong.
class Errors final : public lightq::broker::LogSink {
 public:
  void write(lightq::broker::LogLevel level, std::string_view line) override {
    if (level >= lightq::broker::LogLevel::warn) std::cerr << line << '\n';
  }
};

/// A fresh directory, gone at the end.
struct TempDirectory {
  TempDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "lightq-XXXXXX").string();  // mkdtemp's form
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TempDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

constexpr int orders = 1000;

void produce(lightq::Client& client) {
  auto out = client.producer("orders").value_or_throw();
  for (int i = 0; i < orders; ++i) out.send("order " + std::to_string(i)).value_or_throw();
  out.close(5s).value_or_throw();
}

/// Receives three hundred orders, bills a hundred, and goes.
void bill_some(lightq::Client& client, std::set<std::string>& billed) {
  auto first = client.consumer("orders", {.group = "billing"}).value_or_throw();
  for (int i = 0; i < 300; ++i) {
    const auto order = first.receive(5s).value_or_throw();
    if (!order) throw std::runtime_error("an order is missing");
    if (i >= 100) continue;
    billed.emplace(order->text());
    first.acknowledge(*order);
  }
  first.close(5s).value_or_throw();  // the broker knows of the hundred
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
  const TempDirectory data;
  Errors errors;
  lightq::broker::Config config;
  config.data_dir = data.path / "data";
  config.control_uri = "tcp://127.0.0.1:0";
  config.min_free_bytes = 0;
  config.admin_password = lightq::broker::Secret("only for this process");
  auto broker = lightq::broker::Broker::start(std::move(config), errors).value_or_throw();

  lightq::ClientOptions options;
  options.admin = {"lightq_admin", "only for this process"};
  options.discover_credentials = false;
  auto client = lightq::Client::connect(broker->control_uri(), options).value_or_throw();
  return run(client);
}
