/// A control socket and its clients, for tests of the control socket. Layer: control.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include <lightq/protocol/control.hpp>

#include "control/catalogue_room.hpp"
#include "control/control_server.hpp"
#include "support/planted.hpp"

namespace lightq::broker::test {

/// Identifies the user of a request: a user id that is a number is the user's number. Other user ids are
/// unknown users.
inline std::optional<Error> asked_by(const protocol::Credentials& given,
                                     const ControlServer::Answer& answer) {
  if (given.user_id.empty() || given.user_id.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return answer.asked_by(std::stoull(given.user_id));
}

/// A server on its own thread that answers ping and keeps stats requests. It refuses a stats request if its
/// user has too many under way.
class Server {
 public:
  explicit Server(const ControlLimits& control_limits = {}, std::size_t answer_bytes = 0,
                  std::size_t requests_per_second = limits::requests_per_second_default)
      : answer_bytes_(answer_bytes) {
    auto opened = ControlServer::open(
        loop_, sink_, "tcp://127.0.0.1:0",
        [this](protocol::Request request, ControlServer::Answer answer) {
          if (const auto* const stats = std::get_if<protocol::Stats>(&request)) {
            if (const auto busy = asked_by(stats->user, answer))
              return answer(protocol::ErrorReply{"stats", busy->code, busy->message});
            kept_.push_back(std::move(answer));
          } else if (const auto* const list = std::get_if<protocol::ListTopics>(&request)) {
            EXPECT_EQ(asked_by(list->admin, answer), std::nullopt);
            answer(protocol::OkReply{"list_topics", {}, {}});
          } else if (std::holds_alternative<protocol::Pause>(request)) {
            answer.stand_aside(true);
            aside_.push_back(std::move(answer));
          } else {
            answer(protocol::OkReply{"ping", {}, {}});
          }
        },
        {}, {.requests_per_second = requests_per_second}, control_limits);
    server_ = std::move(opened).value_or_throw();
    server_->count_in(counts_);
    server_->accept().value_or_throw();
    thread_ = std::jthread([this](const std::stop_token& stop) { loop_.run(stop); });
  }
  ~Server() { thread_ = {}; }
  [[nodiscard]] const std::string& uri() const { return server_->bound_uri(); }
  [[nodiscard]] int port() const { return std::stoi(uri().substr(uri().rfind(':') + 1)); }
  /// Answers the kept requests. `work_bytes`: the work that each has caused.
  void release(std::uint64_t work_bytes = 0) {
    loop_.post_answer([this, work_bytes] {
      for (const auto& answer : kept_) {
        answer.worked(work_bytes);
        answer(protocol::OkReply{"stats", std::string(answer_bytes_, 'x'), {}});
      }
      kept_.clear();
      for (const auto& answer : aside_) {
        answer.stand_aside(false);
        answer(protocol::OkReply{"pause", {}, {}});
      }
      aside_.clear();
    });
  }
  /// Returns a count. The loop's thread reads it after its current work.
  [[nodiscard]] std::uint64_t count_of(Limit limit) {
    std::promise<std::uint64_t> told;
    loop_.post_answer([&] { told.set_value(counts_.of(limit)); });
    return told.get_future().get();
  }

 private:
  const std::size_t answer_bytes_;
  EventLoop loop_;
  RecordingSink sink_;
  std::vector<ControlServer::Answer> kept_;
  std::vector<ControlServer::Answer> aside_;
  LimitCounts counts_;
  std::unique_ptr<ControlServer> server_;
  std::jthread thread_;
};

class Client {
 public:
  template <typename AnyServer>
  Client(const AnyServer& server, zmq::socket_type type) : socket_(context_, type) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(server.uri());
  }
  /// Connects from address `from` of the loopback network. The socket does not read ahead.
  Client(const Server& server, zmq::socket_type type, const std::string& from) : socket_(context_, type) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.set(zmq::sockopt::rcvhwm, 1);
    socket_.connect("tcp://" + from + ":0;127.0.0.1:" + std::to_string(server.port()));
  }
  [[nodiscard]] zmq::socket_t& socket() { return socket_; }
  void send(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto flags = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
      socket_.send(zmq::buffer(parts[i]), flags);
    }
  }
  /// Returns the parts of one reply, or nothing after 10 s.
  std::vector<std::string> receive() {
    std::vector<std::string> parts;
    zmq::message_t part;
    do {
      if (!socket_.recv(part)) return parts;
      parts.push_back(part.to_string());
    } while (part.more());
    return parts;
  }
  std::string ask(const std::string& request) {
    send({request});
    const auto answer = receive();
    return answer.size() == 1 ? answer[0] : "no answer of one part";
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

inline const std::string ping = R"({"cmd":"ping"})";
inline const std::string pong = R"({"cmd":"ping","status":"ok"})";

inline const std::string kept_request =
    std::string(R"({"cmd":"stats","topic":"t","user_id":"u","password":")") + planted::user_password +
    R"("})";

}  // namespace lightq::broker::test
