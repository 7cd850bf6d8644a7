/// Messages over HTTP: publish, receive and settle them. Layer: http. docs/http.md, "Messages".
#pragma once

#include <cstdint>
#include <memory>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "http/http_loop.hpp"
#include "http/messages/message_desks.hpp"
#include "http/messages/message_text.hpp"
#include "http/router.hpp"
#include "requests/message_desk.hpp"

namespace lightq::broker {

/// Passes requests for messages to the desk of their topic. No thread waits for another: replies are tasks,
/// too. Lifetime: the parts outlive it. Thread: the HTTP thread.
class MessagesResource {
 public:
  struct Parts {
    HttpLoop& loop;
    MessageDesks& desks;
  };

  explicit MessagesResource(const Parts& parts) : parts_(parts) {}
  MessagesResource(const MessagesResource&) = delete;
  MessagesResource& operator=(const MessagesResource&) = delete;

  void add_to(Router& router);

 private:
  void publish(HttpExchange exchange);
  void publish_lines(HttpExchange exchange);
  void work_on(const std::shared_ptr<MessageLines>& lines, HttpLoop::Task done) const;
  void receive(HttpExchange exchange);
  void received(TopicId topic, Result<Leased> leased, bool as_bytes, const HttpReply& reply) const;
  void settle(HttpExchange exchange, Settling::What what);
  void take_back(TopicId topic, std::uint64_t lease) const;

  const Parts parts_;
};

}  // namespace lightq::broker
