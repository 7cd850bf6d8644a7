/// Runs a broker inside a program: starts it on a free port, sends and receives through it, and stops it.
#include <lightq/lightq.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "broker/broker.hpp"

using namespace std::chrono_literals;

namespace {

/// Prints the broker's warnings and errors only.
class Errors final : public lightq::broker::LogSink {
 public:
  void write(lightq::broker::LogLevel level, std::string_view line) override {
    if (level >= lightq::broker::LogLevel::warn) std::cerr << line << '\n';
  }
};

/// A fresh directory, which the destructor removes.
struct TempDirectory {
  TempDirectory() {
    // the form that mkdtemp needs
    std::string name = (std::filesystem::temp_directory_path() / "lightq-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TempDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

int main() {
  const TempDirectory data;
  Errors errors;
  lightq::broker::Config config;
  config.data_dir = data.path / "data";
  config.control_uri = "tcp://127.0.0.1:0";
  config.min_free_bytes = 0;
  config.admin_password = "only for this process";
  auto broker = lightq::broker::Broker::start(std::move(config), errors).value_or_throw();

  lightq::ClientOptions options;
  options.admin = {"lightq_admin", "only for this process"};
  options.discover_credentials = false;
  auto client = lightq::Client::connect(broker->control_uri(), options).value_or_throw();
  client.create_topic("orders", {.broker_type = lightq::BrokerType::file}).value_or_throw();
  auto producer = client.plain_producer("orders").value_or_throw();
  for (int i = 0; i < 1000; ++i) producer.send("order " + std::to_string(i)).value_or_throw();
  auto consumer = client.plain_consumer("orders").value_or_throw();
  for (int i = 0; i < 1000; ++i) {
    const auto message = consumer.receive(10s).value_or_throw();
    if (!message || message->text() != "order " + std::to_string(i)) return EXIT_FAILURE;
  }
  producer.close(5s).value_or_throw();
  consumer.leave().value_or_throw();
  consumer.close();
  broker->stop();
  std::cout << "1000 orders there and back\n";
}
