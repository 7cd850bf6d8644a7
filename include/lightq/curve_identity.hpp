/// The keys by which an encrypted ZeroMQ socket knows its broker, and is known. Layer: client.
#pragma once

#include <strings.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/z85.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

/// The broker's public key and a key pair of one's own, all Z85: what ZMQ_CURVE_SERVERKEY,
/// ZMQ_CURVE_PUBLICKEY and ZMQ_CURVE_SECRETKEY take. Immutable; the secret key is wiped at the end. Any
/// thread.
class CurveIdentity {
 public:
  CurveIdentity(const CurveIdentity&) = delete;
  CurveIdentity& operator=(const CurveIdentity&) = delete;
  ~CurveIdentity() { explicit_bzero(secret_key_.data(), secret_key_.size()); }

  /// A new key pair, for the broker with this public key. Errors: invalid_argument (no key), not_supported
  /// (this libzmq cannot encrypt).
  static Result<std::shared_ptr<const CurveIdentity>> make(const std::string& server_key) {
    if (!curve_key_of_z85(server_key))
      return Error{
          ErrorCode::invalid_argument,
          "the server key must be the broker's public key, 40 characters of Z85, as  lightq broker key  "
          "prints it"};
    std::array<char, curve_key_characters + 1> public_key{};
    std::array<char, curve_key_characters + 1> secret_key{};
    if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
      return Error{ErrorCode::not_supported, "this libzmq was built without CURVE, and cannot encrypt"};
    std::shared_ptr<CurveIdentity> made(new CurveIdentity(server_key, public_key.data(), secret_key.data()));
    explicit_bzero(secret_key.data(), secret_key.size());
    return std::shared_ptr<const CurveIdentity>(std::move(made));
  }

  [[nodiscard]] const std::string& server_key() const { return server_key_; }
  [[nodiscard]] const std::string& public_key() const { return public_key_; }
  [[nodiscard]] const std::string& secret_key() const { return secret_key_; }

  /// Where `socket` connects from now on, it speaks CURVE and nothing else. Throws zmq::error_t.
  void show(zmq::socket_t& socket) const {
    socket.set(zmq::sockopt::curve_serverkey, server_key_);
    socket.set(zmq::sockopt::curve_publickey, public_key_);
    socket.set(zmq::sockopt::curve_secretkey, secret_key_);
  }

 private:
  CurveIdentity(std::string server_key, const char* public_key, const char* secret_key)
      : server_key_(std::move(server_key)), public_key_(public_key), secret_key_(secret_key) {}

  const std::string server_key_;
  const std::string public_key_;
  std::string secret_key_;
};

}  // namespace lightq::inline v1
