/// Sends and receives one JSON document over a REQ socket. Layer: bench support.
#include "support/control_client.hpp"

#include <nlohmann/json.hpp>
#include <zmq.hpp>

#include "support/posix.hpp"

namespace lightq::bench {
namespace {

/// `server_key`: the key of a broker that encrypts; empty: it does not encrypt.
Result<std::string> round_trip(const std::string& uri, const std::string& server_key,
                               const std::string& request, std::chrono::milliseconds wait_max) {
  try {
    zmq::context_t context(1);
    zmq::socket_t socket(context, zmq::socket_type::req);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(wait_max.count()));
    socket.set(zmq::sockopt::sndtimeo, static_cast<int>(wait_max.count()));
    if (!server_key.empty()) {
      char public_key[41];
      char secret_key[41];
      zmq_curve_keypair(public_key, secret_key);
      socket.set(zmq::sockopt::curve_serverkey, server_key);
      socket.set(zmq::sockopt::curve_publickey, public_key);
      socket.set(zmq::sockopt::curve_secretkey, secret_key);
    }
    socket.connect(uri);
    zmq::message_t reply;
    if (socket.send(zmq::buffer(request), zmq::send_flags::none) &&
        socket.recv(reply, zmq::recv_flags::none)) {
      return reply.to_string();
    }
  } catch (const zmq::error_t& problem) {
    return failure("control " + uri + ": " + problem.what());
  }
  return Error{ErrorCode::timeout, "no answer from " + uri, 0};
}

}  // namespace

Result<nlohmann::json> ControlClient::ask(const nlohmann::json& request,
                                          std::chrono::milliseconds wait_max) const {
  const std::string command = request.value("cmd", "");
  const Result<std::string> text = round_trip(control_uri_, server_key_, request.dump(), wait_max);
  if (!text) return Error{text.error().code, command + ": " + text.error().message, 0};
  nlohmann::json reply = nlohmann::json::parse(*text, nullptr, false);
  if (!reply.is_object()) return failure(command + ": the reply is not a JSON object");
  if (reply.value("status", "") != "ok") {
    return failure(command + ": " + reply.value("code", "") + ": " + reply.value("description", ""));
  }
  return reply;
}

}  // namespace lightq::bench
