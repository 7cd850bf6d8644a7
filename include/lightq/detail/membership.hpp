/// The interface through which a plain producer or consumer joins and leaves its topic. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

class CurveIdentity;

/// The result of a join: the endpoint's URI and the credentials for it. A plain ZeroMQ socket connects to the
/// URI with the keys of `identity`, if there is one (see CurveIdentity). Otherwise it uses the ticket: its id
/// as ZMQ_PLAIN_USERNAME and its secret as ZMQ_PLAIN_PASSWORD.
struct EndpointAddress {
  std::string uri;
  std::optional<protocol::Ticket> ticket;  ///< nothing: an older broker, which asks for no ticket
  std::shared_ptr<const CurveIdentity> identity = nullptr;  ///< null: nothing is encrypted
};

/// The membership of one producer or consumer in a topic. Keeps JSON out of the headers of producers and
/// consumers. Thread: calls send requests to the broker and may be made on any thread, one at a time.
class Membership {
 public:
  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  virtual ~Membership() = default;

  [[nodiscard]] virtual const std::string& topic() const = 0;
  /// Joins the topic (again) and returns the endpoint to connect to.
  virtual Result<EndpointAddress> join() = 0;
  /// Tells the broker that the endpoint is no longer used. Returns the number of messages that the broker
  /// sent to it.
  virtual Result<std::uint64_t> leave(const std::string& bind_uri) = 0;
};

}  // namespace lightq::inline v1
