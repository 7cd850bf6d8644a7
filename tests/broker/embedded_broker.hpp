/// A broker in the test's own process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/client.hpp>
#include <lightq/discovery.hpp>

#include "broker/broker.hpp"
#include "support/planted.hpp"
#include "support/temp_dir.hpp"

namespace lightq::testing {

/// Discards the log, and fails the test if a line contains a secret.
class SilentSink final : public broker::LogSink {
 public:
  void write(broker::LogLevel, std::string_view line) override { planted::expect_none_in(line); }
};

/// A broker with its own data directory, which it opens again after a restart.
class EmbeddedBroker {
 public:
  /// `adjust` changes the configuration before each start.
  explicit EmbeddedBroker(std::string control_uri = "tcp://127.0.0.1:0",
                          std::function<void(broker::Config&)> adjust = {})
      : adjust_(std::move(adjust)), uri_(std::move(control_uri)) {
    start();
  }
  /// Starts the broker, at its previous address if it had one.
  void start() {
    broker::Config config;
    config.data_dir = directory_ / "data";
    config.control_uri = uri_;
    config.http_uri = "";
    config.admin_password = Secret(planted::admin_password);
    config.min_free_bytes = 0;
    if (adjust_) adjust_(config);
    broker_ = broker::Broker::start(std::move(config), sink_).value_or_throw();
    uri_ = broker_->control_uri();
  }
  void stop() { broker_.reset(); }
  [[nodiscard]] const std::string& uri() const { return uri_; }
  [[nodiscard]] std::filesystem::path data_dir() const { return directory_ / "data"; }
  [[nodiscard]] Client client() const {
    return Client::connect(uri(), {.user = {"alice", planted::user_password},
                                   .admin = {"lightq_admin", planted::admin_password},
                                   .discover_credentials = false,
                                   .server_key = server_key()})
        .value_or_throw();
  }
  /// Returns the broker's public key, or an empty text if the broker does not encrypt.
  [[nodiscard]] std::string server_key() const {
    const auto file = detail::read_running_broker(data_dir()).value_or_throw();
    return file ? file->server_key : std::string();
  }

 private:
  test::TempDir directory_;
  const std::function<void(broker::Config&)> adjust_;
  SilentSink sink_;
  std::string uri_;
  std::unique_ptr<broker::Broker> broker_;
};

}  // namespace lightq::testing
