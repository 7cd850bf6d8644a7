/// The definitions of <lightq/curve_identity.hpp>. Layer: client.
#pragma once

#include <lightq/curve_identity.hpp>

#include <memory>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/z85.hpp>
#include <lightq/client_key_file.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE CurveIdentity::CurveIdentity(std::string server_key, const CurveKeyTexts& keys,
                                           std::string file)
    : server_key_(std::move(server_key)),
      public_key_(keys.public_key),
      secret_key_(keys.secret_key),
      file_(std::move(file)) {}

template <typename GetKeys>
Result<std::shared_ptr<const CurveIdentity>> CurveIdentity::for_broker(const std::string& server_key,
                                                                       GetKeys&& get_keys,
                                                                       const std::string& file) {
  if (!curve_key_of_z85(server_key))
    return Error{
        ErrorCode::invalid_argument,
        "the server key must be the broker's public key, 40 characters of Z85, as  lightq broker key  "
        "prints it"};
  const Result<CurveKeyTexts> keys = get_keys();
  if (!keys) return keys.error();
  return std::shared_ptr<const CurveIdentity>(new CurveIdentity(server_key, *keys, file));
}

LIGHTQ_INLINE Result<std::shared_ptr<const CurveIdentity>> CurveIdentity::make(
    const std::string& server_key) {
  return for_broker(server_key, [] { return make_curve_keys(); });
}

LIGHTQ_INLINE Result<std::shared_ptr<const CurveIdentity>> CurveIdentity::of_file(
    const std::string& server_key, const std::string& path) {
  return for_broker(server_key, [&path] { return read_client_key(path); }, path);
}

LIGHTQ_INLINE void CurveIdentity::show(zmq::socket_t& socket) const {
  socket.set(zmq::sockopt::curve_serverkey, server_key_);
  socket.set(zmq::sockopt::curve_publickey, public_key_);
  socket.set(zmq::sockopt::curve_secretkey, secret_key_.expose());
}

}  // namespace lightq::inline v1
