/// The way from HTTP to the desks for messages on the reactors. Layer: http.
#include "http/messages/message_desks.hpp"

#include <utility>

#include "http/problem.hpp"

namespace lightq::broker {

MessageDesks::MessageDesks(Parts parts) : parts_(std::move(parts)) {
  const CopyBounds copies;
  for (std::size_t i = 0; i < parts_.reactors; ++i) desks_.push_back(std::make_unique<MessageDesk>(copies));
}

void MessageDesks::permit(HttpExchange exchange, EndpointRole role, const GroupScope& scope,
                          Permitted then) const {
  const auto topic = TopicName::parse(exchange.parts.at(0));
  if (!topic) return exchange.reply(problem({ErrorCode::invalid_request, "the path has no name of a topic"}));
  const auto right = role == EndpointRole::produce ? protocol::Right::produce : protocol::Right::consume;
  parts_.gate.on_topic(std::move(exchange), *topic, {right, scope},
                       [topic = *topic, role, scope, then = std::move(then)](
                           const Asker& asker, Operations& operations, const HttpReply& reply) {
                         const auto found = operations.topics().find(topic);
                         if (!found) return reply(problem(found.error()));
                         const bool is_open = asker.kind == Asker::Kind::anonymous;
                         then(*found, Requester(asker.holder, is_open, role, scope), reply);
                       });
}

void MessageDesks::to_desk(TopicId topic, const Requester& requester, const HttpReply& reply,
                           Work work) const {
  const bool posted = parts_.on_topic(
      topic, [this, topic, requester, work = std::move(work)](std::size_t index, Reactor& reactor) {
        work(*desks_[index], reactor, topic, requester);
      });
  if (!posted) reply(problem({ErrorCode::busy, "the broker has too many requests under way"}));
}

void MessageDesks::at_desk(HttpExchange exchange, EndpointRole role, const GroupScope& scope, Work work) {
  permit(std::move(exchange), role, scope,
         [this, work = std::move(work)](TopicId topic, const Requester& requester, const HttpReply& reply) {
           to_desk(topic, requester, reply, work);
         });
}

bool MessageDesks::call(TopicId topic, std::function<void(MessageDesk& desk)> call) const {
  return parts_.on_topic(
      topic, [this, call = std::move(call)](std::size_t index, Reactor&) { call(*desks_[index]); });
}

}  // namespace lightq::broker
