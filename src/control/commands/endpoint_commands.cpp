/// The commands join and leave, and the data plane's events about endpoints. Layer: control.
#include <optional>
#include <utility>

#include "control/commands/command_handler.hpp"

namespace lightq::broker {

namespace {

/// Returns the reason why a topic with these settings cannot be joined this way; nothing if it can.
std::optional<Error> objection(const JoinWish& wish, bool open) {
  if (wish.delivery == protocol::Delivery::session) return std::nullopt;
  if (wish.connection_type == protocol::ConnectionType::zmq) return std::nullopt;
  if (wish.type != protocol::JoinType::pull) {
    return Error{ErrorCode::invalid_request, "type: must be pull if connection_type is socket"};
  }
  // A raw consumer cannot show a ticket, so its topic must be one that requires none.
  if (!open) {
    return Error{ErrorCode::not_supported,
                 "connection_type: socket needs a topic that was created with open, and this one was not"};
  }
  return std::nullopt;
}

}  // namespace

void CommandHandler::execute(protocol::Join request, const Answer& answer) {
  const auto topic = request.topic;
  const JoinWish asked{request.type, request.transport, request.connection_type, request.delivery};
  const EndpointRole role = role_of(request.type);
  const bool consumes = role != EndpointRole::produce;
  // A session names its consumer group later.
  const bool by_session = consumes && request.delivery == protocol::Delivery::session;
  const Need need{consumes ? protocol::Right::consume : protocol::Right::produce,
                  by_session ? GroupScope::some_group() : GroupScope::of_plain(role)};
  permit_topic(
      "join", std::move(request.user), request.as_admin, need, topic, answer,
      [=, this, client_key = request.client_key](TopicId id, const TicketHolder& holder) {
        JoinWish wish = asked;
        wish.holder = holder;
        const TopicEntry* const entry = catalogue_.state().find(id);
        const bool open = entry->definition.settings.open || settings_.open_topics;
        if (const auto refused = objection(wish, open)) {
          return answer(error_reply("join", *refused));
        }
        const bool by_key = wants_client_key(wish, open);
        if (by_key) {
          const auto bad_key = objection_to(client_key, {id, role_of(wish.type)}, holder);
          if (bad_key) return answer(error_reply("join", *bad_key));
        }
        data_plane_.join(id, wish, [=, this](const Result<JoinedEndpoint>& joined) {
          if (!joined) return answer(error_reply("join", joined.error()));
          if (wish.delivery == protocol::Delivery::session)  // its endpoint is shared and not recorded
            return answer(join_reply(topic, joined.value()));
          const auto key =
              by_key ? std::optional(record_of(*client_key, joined.value(), holder)) : std::nullopt;
          keep_joined(topic, joined.value(), key, answer);
        });
      });
}

/// Makes the record of a new endpoint durable before the client receives its address.
void CommandHandler::keep_joined(const TopicName& topic, const JoinedEndpoint& joined,
                                 const std::optional<ClientKeyRecord>& key, const Answer& answer) {
  const auto& record = joined.record;
  Result<void> kept;
  std::vector<ClientKeyRecord> gone;
  if (key) {
    auto put = catalogue_.put_client_key(*key);
    if (put) {
      gone = std::move(put).value();
    } else {
      kept = put.error();
      if (put.error().code == ErrorCode::limit_reached)
        count(settings_.limits_reached, Limit::client_keys_per_topic_max);
    }
  }
  if (kept && joined.is_new) kept = catalogue_.put_endpoint(record);
  const auto give_up = [=, this](const Error& error) {
    if (!joined.is_new) return answer(error_reply("join", error));
    data_plane_.leave(record.topic, joined.bind_uri, {.manages = true, .produces = true},
                      [answer, error](const Result<std::uint64_t>&) { answer(error_reply("join", error)); });
  };
  if (!kept) return give_up(kept.error());
  commits_.commit([=, this](const Result<void>& committed) {
    if (!committed) return give_up(committed.error());
    for (const ClientKeyRecord& each : gone) settings_.client_keys->remove(each.key, each.grant);
    // The topic may have been deleted meanwhile.
    if (key && catalogue_.state().find(record.topic) != nullptr) settings_.client_keys->put(*key);
    answer(join_reply(topic, joined));
  });
}

Leaver CommandHandler::leaver_of(const TicketHolder& holder, const TopicName& topic) const {
  const UserRecord* const user = catalogue_.state().user_of_id(holder.user);
  // The administrator, a client of an open topic, or the topic's own user.
  if (user == nullptr) return {.user = holder.user, .manages = true, .produces = true};
  return {.user = user->id,
          .manages = user->may(protocol::Right::manage, topic.text()),
          .produces = user->may(protocol::Right::produce, topic.text())};
}

/// Closes an endpoint. Any right on the topic permits the request; the data plane checks the endpoint's
/// owner.
void CommandHandler::execute(protocol::Leave request, const Answer& answer) {
  const auto topic = request.topic;
  permit_topic("leave", std::move(request.user), request.as_admin, {}, topic, answer,
               [=, this, bind_uri = request.bind_uri](TopicId id, const TicketHolder& holder) {
                 data_plane_.leave(id, bind_uri, leaver_of(holder, topic),
                                   [this, answer](const Result<std::uint64_t>& handed) {
                                     if (!handed) return answer(error_reply("leave", handed.error()));
                                     answer_left(handed.value(), answer);
                                   });
               });
}

/// Replies to leave once the removal of the endpoint, which endpoint_closed has recorded, is durable. The
/// reply contains the number of messages sent to the endpoint, and the client may keep its socket until it
/// has received them all. If a restart reopened the endpoint, they would never arrive.
void CommandHandler::answer_left(std::uint64_t handed, const Answer& answer) {
  commits_.commit([answer, handed](const Result<void>& committed) {
    if (!committed) return answer(error_reply("leave", committed.error()));
    answer(protocol::OkReply{"leave", {}, handed});
  });
}

void CommandHandler::endpoint_closed(const EndpointRecord& record) {
  if (const auto removed = catalogue_.remove_endpoint(record.id); !removed) {
    sink_.error("cannot remove a closed endpoint from the catalogue: " + removed.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

void CommandHandler::endpoint_changed(const EndpointRecord& record) {
  if (const auto kept = catalogue_.put_endpoint(record); !kept) {
    sink_.error("cannot record an endpoint's new port in the catalogue: " + kept.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

void CommandHandler::log_found(TopicId topic, std::uint32_t log_id) {
  const TopicEntry* const entry = catalogue_.state().find(topic);
  if (entry == nullptr) return;
  const std::string where = "topic " + entry->definition.name.text() + ": ";
  if (const TopicEntry* const other = catalogue_.state().topic_of_log(log_id); other != nullptr) {
    sink_.error(where + "its files are those of topic " + other->definition.name.text() +
                ", or a copy of them");
    return;
  }
  if (const auto kept = catalogue_.set_log(topic, log_id); !kept)
    sink_.error(where + "cannot record the id of its log in the catalogue: " + kept.error().text());
  commits_.commit([](const Result<void>&) {});
}

}  // namespace lightq::broker
