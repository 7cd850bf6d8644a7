/// The way from HTTP to the desks for messages on the reactors. Layer: http.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

#include "http/control_gate.hpp"
#include "http/router.hpp"
#include "requests/message_desk.hpp"

namespace lightq::broker {

/// Passes requests to the reactor of their topic, after the control thread has checked the login. Owns the
/// desks that serve them there. Lifetime: the parts outlive it; it is destroyed after the reactors' threads
/// have ended.
class MessageDesks {
 public:
  /// Calls `call` on the thread of the topic's reactor, with the reactor's number. Returns false if it
  /// cannot.
  using OnTopic =
      std::function<bool(TopicId topic, std::function<void(std::size_t index, Reactor& reactor)> call)>;
  struct Parts {
    const ControlGate& gate;
    OnTopic on_topic;  ///< any thread
    std::size_t reactors = 1;
  };
  /// Works at a desk. Thread: the reactor's.
  using Work =
      std::function<void(MessageDesk& desk, Reactor& reactor, TopicId topic, const Requester& requester)>;

  /// Called with a client that has a right on a topic. Thread: the control thread.
  using Permitted = std::function<void(TopicId topic, const Requester& requester, const HttpReply& reply)>;

  explicit MessageDesks(Parts parts);
  MessageDesks(const MessageDesks&) = delete;
  MessageDesks& operator=(const MessageDesks&) = delete;

  /// Calls `work` on the reactor of the topic that the path's first part names, if the client may do what
  /// `role` and `scope` say. Otherwise answers with the error. Thread: the HTTP thread.
  void at_desk(HttpExchange exchange, EndpointRole role, const GroupScope& scope, Work work);
  /// Calls `then` if the client has the right that `role` and `scope` need on that topic. Otherwise answers
  /// with the error. Thread: the HTTP thread.
  void permit(HttpExchange exchange, EndpointRole role, const GroupScope& scope, Permitted then) const;
  /// Calls `work` on the topic's reactor. Answers with the error `busy` if it cannot. Thread: any.
  void to_desk(TopicId topic, const Requester& requester, const HttpReply& reply, Work work) const;
  /// Calls `call` with the topic's desk, on its reactor. Returns false if the reactor has too many tasks, or
  /// has stopped. Thread: any.
  [[nodiscard]] bool call(TopicId topic, std::function<void(MessageDesk& desk)> call) const;

 private:
  const Parts parts_;
  std::vector<std::unique_ptr<MessageDesk>> desks_;  // one for each reactor, used on its thread
};

}  // namespace lightq::broker
