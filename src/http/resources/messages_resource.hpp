/// Messages over HTTP: publish, receive and settle them. Layer: http. docs/http.md, "Messages".
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/router.hpp"
#include "requests/message_desk.hpp"

namespace lightq::broker {

/// Passes requests for messages to the reactor of their topic, after the control thread has checked the
/// login. Owns the desks that serve them there. No thread waits for another: replies are tasks, too.
/// Lifetime: the parts outlive it; it is destroyed after the reactors' threads have ended. Thread: the HTTP
/// thread.
class MessagesResource {
 public:
  /// Calls `call` on the thread of the topic's reactor, with the reactor's number. Returns false if it
  /// cannot.
  using OnTopic =
      std::function<bool(TopicId topic, std::function<void(std::size_t index, Reactor& reactor)> call)>;
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    OnTopic on_topic;  ///< any thread
    std::size_t reactors = 1;
  };

  explicit MessagesResource(Parts parts);
  MessagesResource(const MessagesResource&) = delete;
  MessagesResource& operator=(const MessagesResource&) = delete;

  void add_to(Router& router);

 private:
  using DeskWork =
      std::function<void(MessageDesk& desk, Reactor& reactor, TopicId topic, const Requester& requester)>;
  using Permitted = std::function<void(TopicId topic, const Requester& requester, const HttpReply& reply)>;

  void publish(HttpExchange exchange);
  void publish_lines(HttpExchange exchange);
  void receive(HttpExchange exchange);
  void received(TopicId topic, Result<Leased> leased, bool as_bytes, const HttpReply& reply) const;
  void settle(HttpExchange exchange, Settling::What what);
  void permit(HttpExchange exchange, EndpointRole role, const GroupScope& scope, Permitted then) const;
  void to_desk(TopicId topic, const Requester& requester, const HttpReply& reply, DeskWork work) const;
  void at_desk(HttpExchange exchange, EndpointRole role, const GroupScope& scope, DeskWork work) const;
  void take_back(TopicId topic, std::uint64_t lease) const;

  const Parts parts_;
  std::vector<std::unique_ptr<MessageDesk>> desks_;  // one for each reactor, used on its thread
};

}  // namespace lightq::broker
