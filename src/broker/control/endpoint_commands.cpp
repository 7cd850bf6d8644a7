/// join, leave, and what the data plane says of endpoints. Layer: control.
#include <optional>
#include <utility>

#include "broker/control/command_handler.hpp"

namespace lightq::broker {

namespace {

/// Why a topic with these settings cannot be joined so; nothing: it can.
std::optional<Error> objection(const JoinWish& wish, bool open) {
  if (wish.delivery == protocol::Delivery::session) return std::nullopt;
  if (wish.connection_type == protocol::ConnectionType::zmq) return std::nullopt;
  if (wish.type != protocol::JoinType::pull) {
    return Error{ErrorCode::invalid_request, "type: must be pull where connection_type is socket"};
  }
  // A raw consumer has no way to show a ticket, so its topic has to be one that asks for none.
  if (!open) {
    return Error{ErrorCode::not_supported,
                 "connection_type: socket is for topics that were created with open, and this one was not"};
  }
  return std::nullopt;
}

}  // namespace

void CommandHandler::execute(protocol::Join request, const Answer& answer) {
  const auto topic = request.topic;
  const JoinWish wish{request.type, request.transport, request.connection_type, request.delivery};
  permit_topic("join", std::move(request.user), request.as_admin, topic, answer, [=, this](TopicId id) {
    const TopicEntry* const entry = catalogue_.state().find(id);
    const bool open = entry->definition.settings.open || settings_.open_topics;
    if (const auto refused = objection(wish, open)) {
      return answer(error_reply("join", *refused));
    }
    data_plane_.join(id, wish, [=, this](const Result<JoinedEndpoint>& joined) {
      if (!joined) return answer(error_reply("join", joined.error()));
      if (wish.delivery == protocol::Delivery::session)  // its endpoint is nobody's, and not remembered
        return answer(protocol::JoinReply{topic.text(), joined->bind_uri, joined->ticket});
      keep_joined(topic, joined.value(), answer);
    });
  });
}

/// A new endpoint's record is durable before anybody is told its address.
void CommandHandler::keep_joined(const TopicName& topic, const JoinedEndpoint& joined, const Answer& answer) {
  const auto& record = joined.record;
  const auto kept = joined.is_new ? catalogue_.put_endpoint(record) : Result<void>();
  const auto give_up = [=, this](const Error& error) {
    if (!joined.is_new) return answer(error_reply("join", error));
    data_plane_.leave(record.topic, joined.bind_uri,
                      [answer, error](const Result<std::uint64_t>&) { answer(error_reply("join", error)); });
  };
  if (!kept) return give_up(kept.error());
  commits_.commit([=](const Result<void>& committed) {
    if (!committed) return give_up(committed.error());
    answer(protocol::JoinReply{topic.text(), joined.bind_uri, joined.ticket});
  });
}

void CommandHandler::execute(protocol::Leave request, const Answer& answer) {
  permit_topic("leave", std::move(request.user), request.as_admin, request.topic, answer,
               [=, this, bind_uri = request.bind_uri](TopicId id) {
                 data_plane_.leave(id, bind_uri, [answer](const Result<std::uint64_t>& handed) {
                   if (!handed) return answer(error_reply("leave", handed.error()));
                   answer(protocol::OkReply{"leave", {}, handed.value()});
                 });
               });
}

void CommandHandler::endpoint_closed(const EndpointRecord& record) {
  if (const auto removed = catalogue_.remove_endpoint(record.id); !removed) {
    sink_.error("a closed endpoint stays in the catalogue: " + removed.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

void CommandHandler::endpoint_changed(const EndpointRecord& record) {
  if (const auto kept = catalogue_.put_endpoint(record); !kept) {
    sink_.error("an endpoint's new port is not in the catalogue: " + kept.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

}  // namespace lightq::broker
