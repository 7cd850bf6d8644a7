/// The keys of an encrypted ZeroMQ socket: the broker's and the client's own. Layer: client.
#pragma once

#include <strings.h>

#include <memory>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/z85.hpp>
#include <lightq/client_key_file.hpp>

namespace lightq::inline v1 {

/// The broker's public key and a client's key pair, all Z85, for ZMQ_CURVE_SERVERKEY, ZMQ_CURVE_PUBLICKEY and
/// ZMQ_CURVE_SECRETKEY. Immutable. Wipes the secret key when destroyed. Thread: any.
class CurveIdentity {
 public:
  CurveIdentity(const CurveIdentity&) = delete;
  CurveIdentity& operator=(const CurveIdentity&) = delete;
  ~CurveIdentity() { explicit_bzero(secret_key_.data(), secret_key_.size()); }

  /// Makes a new key pair, for the broker with this public key. Errors: invalid_argument (not a key),
  /// not_supported (this libzmq cannot encrypt).
  static Result<std::shared_ptr<const CurveIdentity>> make(const std::string& server_key) {
    return for_broker(server_key, [] { return make_curve_keys(); });
  }
  /// Reads the key pair from a file. Errors: those of make and read_client_key.
  static Result<std::shared_ptr<const CurveIdentity>> of_file(const std::string& server_key,
                                                              const std::string& path) {
    return for_broker(server_key, [&path] { return read_client_key(path); }, path);
  }

  [[nodiscard]] const std::string& server_key() const { return server_key_; }
  [[nodiscard]] const std::string& public_key() const { return public_key_; }
  [[nodiscard]] const std::string& secret_key() const { return secret_key_; }
  /// Returns the file of the key pair; empty if the pair is new.
  [[nodiscard]] const std::string& file() const { return file_; }

  /// Sets the keys on `socket`. Connections that it makes from now on use CURVE and nothing else. Throws
  /// zmq::error_t.
  void show(zmq::socket_t& socket) const {
    socket.set(zmq::sockopt::curve_serverkey, server_key_);
    socket.set(zmq::sockopt::curve_publickey, public_key_);
    socket.set(zmq::sockopt::curve_secretkey, secret_key_);
  }

 private:
  CurveIdentity(std::string server_key, const CurveKeyTexts& keys, std::string file)
      : server_key_(std::move(server_key)),
        public_key_(keys.public_key),
        secret_key_(keys.secret_key),
        file_(std::move(file)) {}

  template <typename GetKeys>
  static Result<std::shared_ptr<const CurveIdentity>> for_broker(const std::string& server_key,
                                                                 GetKeys&& get_keys,
                                                                 const std::string& file = {}) {
    if (!curve_key_of_z85(server_key))
      return Error{
          ErrorCode::invalid_argument,
          "the server key must be the broker's public key, 40 characters of Z85, as  lightq broker key  "
          "prints it"};
    const Result<CurveKeyTexts> keys = get_keys();
    if (!keys) return keys.error();
    return std::shared_ptr<const CurveIdentity>(new CurveIdentity(server_key, *keys, file));
  }

  const std::string server_key_;
  const std::string public_key_;
  std::string secret_key_;
  const std::string file_;
};

}  // namespace lightq::inline v1
