/// A broker for the client's tests. A function answers control requests on the broker's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <zmq.hpp>

#include <lightq/protocol/json.hpp>

namespace lightq::testing {

/// Listens on 127.0.0.1 until it is destroyed. Thread: the answering function runs on the broker's thread, so
/// its captures must be safe to use there. If the function returns nothing, the client gets no reply.
class FakeBroker {
 public:
  using Answer = std::function<std::optional<protocol::Reply>(const protocol::Request&)>;

  explicit FakeBroker(Answer answer, const std::string& uri = "tcp://127.0.0.1:*")
      : router_(context_, zmq::socket_type::router), answer_(std::move(answer)) {
    router_.set(zmq::sockopt::linger, 0);
    router_.bind(uri);
    uri_ = router_.get(zmq::sockopt::last_endpoint);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      zmq_pollitem_t item{router_.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, 20) <= 0) continue;
      zmq::message_t peer;
      zmq::message_t empty;
      zmq::message_t text;
      (void)router_.recv(peer);
      (void)router_.recv(empty);
      (void)router_.recv(text);
      const protocol::ParsedRequest parsed = protocol::parse_request(text.to_string_view());
      std::optional<protocol::Reply> reply;
      if (parsed.request) {
        reply = answer_(*parsed.request);
      } else {
        reply = protocol::ErrorReply{parsed.cmd, parsed.request.error().code, parsed.request.error().message};
      }
      if (!reply) continue;
      router_.send(peer, zmq::send_flags::sndmore);
      router_.send(empty, zmq::send_flags::sndmore);
      router_.send(zmq::buffer(protocol::to_json(*reply)), zmq::send_flags::none);
    }
    router_.close();
  }

  zmq::context_t context_;
  zmq::socket_t router_;
  Answer answer_;
  std::string uri_;
  std::jthread thread_;
};

/// A bound data socket of an imaginary topic, for the test's own thread.
class FakeEndpoint {
 public:
  /// `receive_buffer` is the kernel's receive buffer in bytes; 0: the system's default.
  explicit FakeEndpoint(zmq::socket_type type, int high_water = 1000, int receive_buffer = 0)
      : socket_(context_, type) {
    if (receive_buffer > 0) socket_.set(zmq::sockopt::rcvbuf, receive_buffer);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.set(zmq::sockopt::sndtimeo, 10'000);
    socket_.set(zmq::sockopt::rcvhwm, high_water);
    socket_.set(zmq::sockopt::sndhwm, high_water);
    socket_.bind("tcp://127.0.0.1:*");
    uri_ = socket_.get(zmq::sockopt::last_endpoint);
  }

  void send(const std::string& text, zmq::send_flags flags = zmq::send_flags::none) {
    (void)socket_.send(zmq::buffer(text), flags);
  }
  /// Returns the next message's text, or "(nothing)" if none came within 10 s.
  std::string receive() {
    zmq::message_t message;
    return socket_.recv(message) ? message.to_string() : "(nothing)";
  }
  zmq::socket_t& socket() { return socket_; }
  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string uri_;
};

/// Replies to joins with `bind_uri`, to leaves with the count `handed`, and to everything else with success.
inline FakeBroker::Answer answers_with(std::string bind_uri, std::uint64_t handed = 0) {
  return [bind_uri = std::move(bind_uri),
          handed](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (const auto* join = std::get_if<protocol::Join>(&request)) {
      return protocol::JoinReply{join->topic.text(), bind_uri, {}};
    }
    protocol::OkReply ok{std::string(protocol::command_of(request)), "", std::nullopt};
    if (std::holds_alternative<protocol::Leave>(request)) ok.messages_handed = handed;
    return ok;
  };
}

}  // namespace lightq::testing
