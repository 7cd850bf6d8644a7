/// The addresses of a topic's endpoints, and their listening sockets. Layer: plain.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

#include "access/connection_authorizer.hpp"
#include "delivery/topic_definition.hpp"
#include "net/socket.hpp"
#include "plain/endpoint.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// Opens listening sockets for endpoints, and names endpoints for clients and in log lines. EndpointSet owns
/// it. Thread: the reactor's.
class EndpointAddresses {
 public:
  /// Lifetime: both outlive this.
  EndpointAddresses(ReactorContext& context, const TopicDefinition& topic)
      : context_(context), topic_(topic) {}

  /// Opens a listening socket, and notes its port in `record`. `again`: the endpoint existed before, so it
  /// gets its old port unless another process has taken that. Errors: limit_reached, io_error,
  /// address_in_use.
  Result<ListeningSocket> listen(EndpointRecord& record, bool again, const ConnectionAuthorizer& authorizer);
  /// Returns the address that clients receive.
  [[nodiscard]] std::string bind_uri_of(const EndpointRecord& record) const;
  /// Returns the endpoint's name in log lines.
  [[nodiscard]] std::string name_of(const Endpoint& endpoint) const;

 private:
  [[nodiscard]] std::string ipc_path_of(const EndpointRecord& record) const;

  ReactorContext& context_;
  const TopicDefinition& topic_;
};

}  // namespace lightq::broker
