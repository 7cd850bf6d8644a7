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
  explicit ControlClient(std::string control_uri) : control_uri_(std::move(control_uri)) {}

  /// The reply, if its status is ok. Error: `timeout` after 10 s, the broker's own sentence, or a reply that
  /// is not JSON.
  [[nodiscard]] const std::string& uri() const { return control_uri_; }
  [[nodiscard]] Result<nlohmann::json> ask(const nlohmann::json& request) const;

 private:
  std::string control_uri_;
};

}  // namespace lightq::bench
