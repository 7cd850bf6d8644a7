/// The addresses of a topic's endpoints, and their listening sockets. Layer: plain.
#include "plain/endpoint_addresses.hpp"

#include <string_view>

#include "admission/limit_counts.hpp"

namespace lightq::broker {

using protocol::ConnectionType;
using protocol::Transport;

namespace {

std::string_view word_of(const EndpointRecord& record) {
  switch (record.role) {
    case EndpointRole::produce: return "produce";
    case EndpointRole::pull: return record.connection_type == ConnectionType::zmq ? "pull" : "raw pull";
    case EndpointRole::sub: break;
  }
  return "sub";
}

}  // namespace

std::string EndpointAddresses::ipc_path_of(const EndpointRecord& record) const {
  const std::string name = context_.settings.ipc_prefix + "e" + std::to_string(record.id) + ".sock";
  return (context_.settings.ipc_directory / name).string();
}

std::string EndpointAddresses::bind_uri_of(const EndpointRecord& record) const {
  if (record.transport == Transport::ipc) return "ipc://" + ipc_path_of(record);
  return "tcp://" + uri_host(context_.settings.advertise_host) + ":" + std::to_string(record.port);
}

std::string EndpointAddresses::name_of(const Endpoint& endpoint) const {
  return "topic " + topic_.name.text() + ", " + std::string(word_of(endpoint.record())) + " endpoint " +
         endpoint.bind_uri();
}

Result<ListeningSocket> EndpointAddresses::listen(EndpointRecord& record, bool again,
                                                  const ConnectionAuthorizer& authorizer) {
  if (record.transport == Transport::ipc) {
    auto socket = listen_unix(ipc_path_of(record));
    if (!socket && socket.error().code == ErrorCode::limit_reached)
      count(context_.settings.limits_reached, Limit::descriptors_reserved);
    return socket;
  }
  if (again) {
    auto old = context_.ports.listen_again(record.port);
    // Clients know only the old port. So another one is chosen only if another process has taken it.
    if (old || old.error().code != ErrorCode::address_in_use) return old;
    context_.sink.error("topic " + topic_.name.text() + ": its " + std::string(word_of(record)) +
                        " endpoint gets another port, because its own is unavailable: " + old.error().text());
  }
  auto fresh =
      context_.ports.listen({record.topic, record.role, record.connection_type, !authorizer.is_open()});
  if (fresh) record.port = fresh->port;
  return fresh;
}

}  // namespace lightq::broker
