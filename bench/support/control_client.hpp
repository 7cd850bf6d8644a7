/// Asks a broker over its JSON control protocol (docs/protocol.md). Layer: bench support.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// A fresh connection for each request, closed before `ask` returns: between requests this process has no
/// ZeroMQ threads and may fork.
class ControlClient {
 public:
  /// `server_key`: of a broker that encrypts, Z85; empty: it does not.
  explicit ControlClient(std::string control_uri, std::string server_key = {})
      : control_uri_(std::move(control_uri)), server_key_(std::move(server_key)) {}

  /// The reply, if its status is ok. Error: `timeout` after 10 s, the broker's own sentence, or a reply that
  /// is not JSON.
  [[nodiscard]] const std::string& uri() const { return control_uri_; }
  [[nodiscard]] const std::string& server_key() const { return server_key_; }
  [[nodiscard]] Result<nlohmann::json> ask(const nlohmann::json& request) const;

 private:
  std::string control_uri_;
  std::string server_key_;
};

}  // namespace lightq::bench
