/// The commands delete_group, pause, resume and purge, for groups and for topics. Layer: control.
#include <optional>
#include <string_view>
#include <utility>

#include "control/commands/command_handler.hpp"

namespace lightq::broker {

void CommandHandler::execute(protocol::DeleteGroup request, const Answer& answer) {
  permit_topic("delete_group", std::move(request.user), request.as_admin, to_manage(request.group),
               request.topic, answer, [=, this, group = request.group](TopicId id, const TicketHolder&) {
                 data_plane_.delete_group(id, group, [answer](const Result<void>& deleted) {
                   if (!deleted) return answer(error_reply("delete_group", deleted.error()));
                   answer(protocol::OkReply{"delete_group", {}, {}});
                 });
               });
}

/// Returns an error for a topic that keeps no messages: it cannot be paused or purged.
std::optional<Error> CommandHandler::nothing_kept(TopicId topic) const {
  const auto& definition = catalogue_.state().find(topic)->definition;
  if (definition.settings.broker_type != protocol::BrokerType::direct) return std::nullopt;
  return Error{ErrorCode::not_supported,
               "topic " + definition.name.text() + " is of type direct, which keeps no messages"};
}

template <typename Asked>
void CommandHandler::set_paused(std::string_view cmd, Asked request, bool paused, const Answer& answer) {
  permit_topic(cmd, std::move(request.user), request.as_admin, to_manage(request.group), request.topic,
               answer, [=, this, group = request.group](TopicId id, const TicketHolder&) {
                 if (const auto refused = nothing_kept(id)) return answer(error_reply(cmd, *refused));
                 if (group.empty()) return set_topic_paused(cmd, id, paused, answer);
                 data_plane_.set_paused(id, group, paused, [cmd, answer](const Result<void>& set) {
                   if (!set) return answer(error_reply(cmd, set.error()));
                   answer(protocol::OkReply{std::string(cmd), {}, {}});
                 });
               });
}

/// Pauses or resumes a topic. The catalogue records it first, so that it survives a restart.
void CommandHandler::set_topic_paused(std::string_view cmd, TopicId topic, bool paused,
                                      const Answer& answer) {
  if (const auto kept = catalogue_.set_paused(topic, paused); !kept) {
    return answer(error_reply(cmd, kept.error()));
  }
  commits_.commit([=, this](const Result<void>& committed) {
    if (!committed) return answer(error_reply(cmd, committed.error()));
    data_plane_.set_paused(topic, {}, paused, [cmd, answer](const Result<void>& set) {
      if (!set) return answer(error_reply(cmd, set.error()));
      answer(protocol::OkReply{std::string(cmd), {}, {}});
    });
  });
}

void CommandHandler::execute(protocol::Pause request, const Answer& answer) {
  set_paused("pause", std::move(request), true, answer);
}

void CommandHandler::execute(protocol::Resume request, const Answer& answer) {
  set_paused("resume", std::move(request), false, answer);
}

void CommandHandler::execute(protocol::Purge request, const Answer& answer) {
  permit_topic("purge", std::move(request.user), request.as_admin, to_manage(request.group), request.topic,
               answer, [=, this, group = request.group](TopicId id, const TicketHolder&) {
                 if (const auto refused = nothing_kept(id)) return answer(error_reply("purge", *refused));
                 data_plane_.purge(id, group, [answer](const Result<std::uint64_t>& purged) {
                   if (!purged) return answer(error_reply("purge", purged.error()));
                   answer(protocol::OkReply{"purge", {}, {}, purged.value()});
                 });
               });
}

}  // namespace lightq::broker
