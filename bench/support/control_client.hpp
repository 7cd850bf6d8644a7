/// A client of a broker's JSON control protocol (docs/protocol.md). Layer: bench support.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// Opens a connection for each request and closes it before `ask` returns. Between requests this process
/// therefore has no ZeroMQ threads and may fork.
class ControlClient {
 public:
  /// `server_key`: the key of a broker that encrypts, Z85; empty: it does not encrypt.
  explicit ControlClient(std::string control_uri, std::string server_key = {})
      : control_uri_(std::move(control_uri)), server_key_(std::move(server_key)) {}

  [[nodiscard]] const std::string& uri() const { return control_uri_; }
  [[nodiscard]] const std::string& server_key() const { return server_key_; }
  /// Sends a request and returns its reply. Error: `timeout` after `wait_max`, the broker's error message if
  /// the reply's status is not ok, or a reply that is not JSON.
  [[nodiscard]] Result<nlohmann::json> ask(
      const nlohmann::json& request, std::chrono::milliseconds wait_max = std::chrono::seconds(10)) const;

 private:
  std::string control_uri_;
  std::string server_key_;
};

}  // namespace lightq::bench
