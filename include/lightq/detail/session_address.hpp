/// The address and ticket that a session connects with. Layer: client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>

namespace zmq {
class context_t;
}

namespace lightq::inline v1 {

class CurveIdentity;

/// The result of a join. A value type.
struct SessionAddress {
  std::string uri;        ///< `tcp://HOST:PORT`, or `ipc://PATH` of a Unix socket
  Secret ticket;          ///< `ID.SECRET`; empty if the topic requires none
  bool over_zmq = false;  ///< frames come in ZeroMQ messages
  /// The CURVE keys that encrypt the session over a libzmq socket of `context`. Null: the session is not
  /// encrypted by CURVE.
  std::shared_ptr<const CurveIdentity> identity = nullptr;
  std::shared_ptr<zmq::context_t> context = nullptr;
  /// SHA-256 of the certificate behind `uri`, 64 hexadecimal digits, if TLS encrypts the connection. Empty:
  /// it does not.
  std::string certificate_sha256 = {};
  /// Set to true when a session has been established there. Null: not needed.
  std::shared_ptr<bool> opened = nullptr;
};

/// Joins the topic and returns the address to connect to. It may wait, and blocks the call of the producer or
/// consumer that needs the connection; so it should not take long. An error that `is_final` ends the producer
/// or consumer.
using SessionJoin = std::function<Result<SessionAddress>()>;

}  // namespace lightq::inline v1
