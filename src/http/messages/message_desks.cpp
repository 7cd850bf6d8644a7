/// The way from HTTP to the desks for messages on the reactors. Layer: http.
#include "http/messages/message_desks.hpp"

#include <utility>

#include "http/problem.hpp"

namespace lightq::broker {

MessageDesks::MessageDesks(Parts parts) : parts_(std::move(parts)) {
  for (std::size_t i = 0; i < parts_.reactors; ++i) desks_.push_back(std::make_unique<MessageDesk>());
}

void MessageDesks::at_desk(HttpExchange exchange, EndpointRole role, const GroupScope& scope, Work work) {
  const auto topic = TopicName::parse(exchange.parts.at(0));
  if (!topic) return exchange.reply(problem({ErrorCode::invalid_request, "the path has no name of a topic"}));
  const auto right = role == EndpointRole::produce ? protocol::Right::produce : protocol::Right::consume;
  parts_.gate.on_topic(
      std::move(exchange), *topic, {right, scope},
      [this, topic = *topic, role, scope, work = std::move(work)](const Asker& asker, Operations& operations,
                                                                  const HttpReply& reply) {
        const auto found = operations.topics().find(topic);
        if (!found) return reply(problem(found.error()));
        const Requester requester(asker.holder, asker.kind == Asker::Kind::anonymous, role, scope);
        const bool posted = parts_.on_topic(
            *found, [this, id = *found, requester, work](std::size_t index, Reactor& reactor) {
              work(*desks_[index], reactor, id, requester);
            });
        if (!posted) reply(problem({ErrorCode::busy, "the broker has too many requests under way"}));
      });
}

bool MessageDesks::call(TopicId topic, std::function<void(MessageDesk& desk)> call) const {
  return parts_.on_topic(
      topic, [this, call = std::move(call)](std::size_t index, Reactor&) { call(*desks_[index]); });
}

}  // namespace lightq::broker
