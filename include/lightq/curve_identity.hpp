/// The keys of an encrypted ZeroMQ socket: the broker's and the client's own. Layer: client.
#pragma once

#include <memory>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/base/separate.hpp>

namespace zmq {
class socket_t;
}

namespace lightq::inline v1 {

struct CurveKeyTexts;

/// The broker's public key and a client's key pair, all Z85, for ZMQ_CURVE_SERVERKEY, ZMQ_CURVE_PUBLICKEY and
/// ZMQ_CURVE_SECRETKEY. Immutable. Thread: any.
class CurveIdentity {
 public:
  CurveIdentity(const CurveIdentity&) = delete;
  CurveIdentity& operator=(const CurveIdentity&) = delete;

  /// Makes a new key pair, for the broker with this public key. Errors: invalid_argument (not a key),
  /// not_supported (this libzmq cannot encrypt).
  static Result<std::shared_ptr<const CurveIdentity>> make(const std::string& server_key);
  /// Reads the key pair from a file. Errors: those of make and read_client_key.
  static Result<std::shared_ptr<const CurveIdentity>> of_file(const std::string& server_key,
                                                              const std::string& path);

  [[nodiscard]] const std::string& server_key() const { return server_key_; }
  [[nodiscard]] const std::string& public_key() const { return public_key_; }
  [[nodiscard]] const Secret& secret_key() const { return secret_key_; }
  /// Returns the file of the key pair; empty if the pair is new.
  [[nodiscard]] const std::string& file() const { return file_; }

  /// Sets the keys on `socket`. Connections that it makes from now on use CURVE and nothing else. Throws
  /// zmq::error_t.
  void show(zmq::socket_t& socket) const;

 private:
  CurveIdentity(std::string server_key, const CurveKeyTexts& keys, std::string file);

  template <typename GetKeys>
  static Result<std::shared_ptr<const CurveIdentity>> for_broker(const std::string& server_key,
                                                                 GetKeys&& get_keys,
                                                                 const std::string& file = {});

  const std::string server_key_;
  const std::string public_key_;
  const Secret secret_key_;
  const std::string file_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/curve_identity.hpp>  // IWYU pragma: export
#endif
