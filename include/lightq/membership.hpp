/// What a producer or consumer asks of the client that made it: its place in a topic. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

class CurveIdentity;

/// What a join answers: where a plain ZeroMQ socket connects to, and what it shows there: the keys of
/// `identity`, if there is one (see CurveIdentity), else the ticket, its id as ZMQ_PLAIN_USERNAME and its
/// secret as ZMQ_PLAIN_PASSWORD.
struct EndpointAddress {
  std::string uri;
  std::optional<protocol::Ticket> ticket;  ///< nothing: the broker is older, and asks for none
  std::shared_ptr<const CurveIdentity> identity = nullptr;  ///< null: nothing is encrypted
};

/// One producer's or consumer's place in a topic. Keeps JSON out of producer.hpp and consumer.hpp. Calls go
/// to the broker and may be made on any thread, but one at a time.
class Membership {
 public:
  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  virtual ~Membership() = default;

  [[nodiscard]] virtual const std::string& topic() const = 0;
  /// Joins the topic (again) and answers the endpoint to connect to.
  virtual Result<EndpointAddress> join() = 0;
  /// Tells the broker that nobody will use the endpoint any more; answers how many messages it was handed.
  virtual Result<std::uint64_t> leave(const std::string& bind_uri) = 0;
};

}  // namespace lightq::inline v1
