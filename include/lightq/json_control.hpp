/// Sends requests that are written as JSON, for clients in other languages. Layer: client.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>

namespace lightq::inline v1 {

class Client;
struct ClientState;

/// Requests as docs/protocol.md, "Commands", writes them. The client may be destroyed before it. Thread: as
/// Client.
///
///     JsonControl::of(client).ask(R"({"cmd":"create_topic","topic":"orders"})").value_or_throw();
class JsonControl {
 public:
  static JsonControl of(const Client& client);

  /// Sends a request, and returns the broker's reply as JSON. Adds the client's credentials unless the
  /// request has some: the administrator's, if the client has them. Errors: those of
  /// protocol::parse_request, for the request; the broker's; those of Client's requests.
  [[nodiscard]] Result<std::string> ask(std::string_view request) const;

 private:
  explicit JsonControl(std::shared_ptr<ClientState> state) : state_(std::move(state)) {}

  std::shared_ptr<ClientState> state_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/control/json_control.hpp>  // IWYU pragma: export
#endif
