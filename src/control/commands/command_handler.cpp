/// Executes control requests: asks for permission, calls the operation and sends the reply. Layer: control.
#include "control/commands/command_handler.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <lightq/base/secret.hpp>
#include <lightq/version.hpp>

#include "control/commands/exchange.hpp"

namespace lightq::broker {

namespace {

Permissions::Need need_of(const protocol::Join& request) {
  const EndpointRole role = role_of(request.type);
  if (role == EndpointRole::produce) return {protocol::Right::produce, GroupScope::of_plain(role)};
  // A session names its consumer group later.
  const bool by_session = request.delivery == protocol::Delivery::session;
  return {protocol::Right::consume, by_session ? GroupScope::some_group() : GroupScope::of_plain(role)};
}

}  // namespace

void CommandHandler::handle(protocol::Request request, const Answer& answer) {
  if (stopping_) {
    return answer(error_reply(command_of(request), {ErrorCode::shutting_down, "the broker is stopping"}));
  }
  std::visit(
      [&](auto& one) {
        if constexpr (requires { schedules_.execute(std::move(one), answer); }) {
          schedules_.execute(std::move(one), answer);
        } else {
          execute(std::move(one), answer);
        }
      },
      request);
}

void CommandHandler::execute(protocol::CreateTopic request, const Answer& answer) {
  const Exchange exchange{"create_topic", answer};
  const auto topic =
      std::make_shared<NewTopic>(request.topic, request.settings, std::move(request.user), request.given);
  permissions_.permit_manager(
      request.topic, std::move(request.admin), answer, exchange.permitted([=, this](const Asker& asker) {
        operations_.topics().create(
            asker, std::move(*topic), [exchange](const Result<protocol::CreatedTopic>& created) {
              if (!created) return exchange.fail(created.error());
              protocol::OkReply reply{std::string(exchange.cmd), "topic created successfully", {}};
              reply.created = *created;
              exchange.answer(std::move(reply));
            });
      }));
}

void CommandHandler::execute(protocol::DeleteTopic request, const Answer& answer) {
  const Exchange exchange{"delete_topic", answer};
  permissions_.permit_manager(request.topic, std::move(request.admin), answer,
                              exchange.permitted([=, this, topic = request.topic](const Asker&) {
                                operations_.topics().remove(topic, exchange.ok("topic deleted successfully"));
                              }));
}

void CommandHandler::execute(protocol::SetTopic request, const Answer& answer) {
  const Exchange exchange{"set_topic", answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage({}), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, change = request.change](const Asker&) {
        operations_.topics().change(topic, change, exchange.ok());
      }));
}

void CommandHandler::execute(protocol::ListTopics request, const Answer& answer) {
  const Exchange exchange{"list_topics", answer};
  permissions_.permit_user(
      std::move(request.admin), answer,
      exchange.permitted([=, this, groups = request.groups, after = request.after](const Asker& asker) {
        TopicList list =
            groups ? operations_.topics().list_with_groups(asker, after) : operations_.topics().list(asker);
        answer.worked(list.work_bytes);
        answer(protocol::ListReply{std::move(list.topics), std::move(list.continue_after)});
      }));
}

void CommandHandler::execute(protocol::Join request, const Answer& answer) {
  const Exchange exchange{"join", answer};
  const JoinWish wish{request.type, request.transport, request.connection_type, request.delivery};
  permissions_.permit_topic(
      request.topic, need_of(request), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, key = request.client_key](const Asker& asker) {
        operations_.endpoints().join(asker, topic, wish, key, exchange.reply<Joined>([topic](Joined joined) {
          return protocol::JoinReply{topic.text(), std::move(joined.bind_uri), std::move(joined.ticket),
                                     std::move(joined.server_key), std::move(joined.tls)};
        }));
      }));
}

/// Any right on the topic permits the request. The data plane checks the endpoint's owner.
void CommandHandler::execute(protocol::Leave request, const Answer& answer) {
  const Exchange exchange{"leave", answer};
  permissions_.permit_topic(
      request.topic, {}, std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, bind_uri = request.bind_uri](const Asker& asker) {
        operations_.endpoints().leave(asker, topic, bind_uri,
                                      exchange.reply<std::uint64_t>([](std::uint64_t messages) {
                                        return protocol::OkReply{"leave", {}, messages};
                                      }));
      }));
}

void CommandHandler::execute(protocol::Stats request, const Answer& answer) {
  const Exchange exchange{"stats", answer};
  if (!request.topic) {
    return permissions_.permit_admin(
        std::move(request.user), answer, exchange.permitted([=, this](const Asker&) {
          operations_.stats().broker(exchange.reply<protocol::BrokerStats>(std::identity()));
        }));
  }
  permissions_.permit_topic(
      *request.topic, {}, std::move(request.user), request.as_admin, answer,
      exchange.permitted(
          [=, this, topic = *request.topic, members_max = request.members_max](const Asker& asker) {
            operations_.stats().topic(asker, topic, members_max,
                                      exchange.reply<protocol::TopicStats>(std::identity()));
          }));
}

void CommandHandler::execute(protocol::StatsAll request, const Answer& answer) {
  const Exchange exchange{"stats_all", answer};
  const TopicsWanted wanted{.after = request.after,
                            .topics_max = static_cast<std::size_t>(request.topics_max),
                            .entries_max = limits::stats_page_entries_max};
  permissions_.permit_user(
      std::move(request.admin), answer, exchange.permitted([=, this](const Asker& asker) {
        operations_.stats().topics(asker, wanted, exchange.reply<StatsPage>([answer](StatsPage page) {
          answer.worked(page.work_bytes);
          return protocol::StatsAllReply{std::move(page.topics), std::move(page.continue_after)};
        }));
      }));
}

void CommandHandler::execute(protocol::DeleteGroup request, const Answer& answer) {
  const Exchange exchange{"delete_group", answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group](const Asker&) {
        operations_.groups().remove(topic, group, exchange.ok());
      }));
}

template <typename Asked>
void CommandHandler::set_paused(std::string_view cmd, Asked request, bool paused, const Answer& answer) {
  const Exchange exchange{cmd, answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group](const Asker&) {
        if (group.empty()) return operations_.topics().set_paused(topic, paused, exchange.ok());
        operations_.groups().set_paused(topic, group, paused, exchange.ok());
      }));
}

void CommandHandler::execute(protocol::Pause request, const Answer& answer) {
  set_paused("pause", std::move(request), true, answer);
}

void CommandHandler::execute(protocol::Resume request, const Answer& answer) {
  set_paused("resume", std::move(request), false, answer);
}

void CommandHandler::execute(protocol::Purge request, const Answer& answer) {
  const Exchange exchange{"purge", answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group,
                          delayed = request.delayed](const Asker&) {
        const auto purged = exchange.reply<std::uint64_t>(
            [](std::uint64_t messages) { return protocol::OkReply{"purge", {}, {}, messages}; });
        if (!group.empty()) return operations_.groups().purge(topic, group, purged);
        if (!delayed) return operations_.topics().purge(topic, purged);
        operations_.delayed().act(topic, {.what = DelayedWish::What::cancel},
                                  [=, this](const Result<protocol::DelayedCount>& cancelled) {
                                    if (!cancelled) return exchange.fail(cancelled.error());
                                    operations_.topics().purge(topic, [purged, also = cancelled->messages](
                                                                          Result<std::uint64_t> messages) {
                                      messages ? purged(*messages + also) : purged(std::move(messages));
                                    });
                                  });
      }));
}

void CommandHandler::execute(protocol::SetGroup request, const Answer& answer) {
  const Exchange exchange{"set_group", answer};
  permissions_.permit_topic(request.topic, Permissions::to_manage(request.group), std::move(request.user),
                            request.as_admin, answer,
                            exchange.permitted([=, this, topic = request.topic, group = request.group,
                                                change = request.change](const Asker& asker) {
                              operations_.groups().change(asker, topic, group, change, exchange.ok());
                            }));
}

void CommandHandler::execute(protocol::SeekGroup request, const Answer& answer) {
  const Exchange exchange{"seek_group", answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group, to = request.to,
                          preview = request.preview](const Asker&) {
        operations_.groups().seek(topic, group, to, preview,
                                  exchange.reply<protocol::GroupMove>([](const protocol::GroupMove& move) {
                                    protocol::OkReply reply{"seek_group", {}, {}};
                                    reply.moved = move;
                                    return reply;
                                  }));
      }));
}

void CommandHandler::execute(protocol::Trace request, const Answer& answer) {
  const Exchange exchange{"trace", answer};
  permissions_.permit_topic(
      request.topic, {protocol::Right::consume, GroupScope::of({})}, std::move(request.user),
      request.as_admin, answer,
      exchange.permitted(
          [=, this, topic = request.topic, offset = Offset{request.offset}](const Asker& asker) {
            operations_.traces().trace(asker, topic, offset,
                                       exchange.reply<WorkedTrace>([answer](WorkedTrace traced) {
                                         answer.worked(traced.work_bytes);
                                         return std::move(traced.trace);
                                       }));
          }));
}

void CommandHandler::execute(protocol::ListDead request, const Answer& answer) {
  const Exchange exchange{"list_dead", answer};
  const DeadListWish wish{std::move(request.filter), request.after_offset,
                          static_cast<std::size_t>(request.limit)};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group](const Asker&) {
        operations_.groups().list_dead(topic, group, wish,
                                       exchange.reply<protocol::DeadPage>(std::identity()));
      }));
}

template <typename Asked>
void CommandHandler::act_on_dead(std::string_view cmd, Asked request, DeadWish::What what,
                                 const Answer& answer) {
  const Exchange exchange{cmd, answer};
  const DeadWish wish{what, std::move(request.filter)};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage(request.group), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, group = request.group](const Asker& asker) {
        operations_.groups().act_on_dead(
            asker, topic, group, wish,
            exchange.reply<protocol::DeadCount>([cmd = exchange.cmd](const protocol::DeadCount& count) {
              return protocol::OkReply{std::string(cmd), {}, {}, count.messages, count.unreadable,
                                       count.returned};
            }));
      }));
}

void CommandHandler::execute(protocol::RetryDead request, const Answer& answer) {
  using What = DeadWish::What;
  const What what = request.preview ? What::count : What::retry;
  act_on_dead("retry_dead", std::move(request), what, answer);
}

void CommandHandler::execute(protocol::PurgeDead request, const Answer& answer) {
  using What = DeadWish::What;
  const What what = request.preview ? What::count : What::purge;
  act_on_dead("purge_dead", std::move(request), what, answer);
}

void CommandHandler::execute(protocol::ListDelayed request, const Answer& answer) {
  const Exchange exchange{"list_delayed", answer};
  const DelayedListWish wish{std::move(request.filter), request.after,
                             static_cast<std::size_t>(request.limit),
                             static_cast<std::size_t>(request.payload_bytes)};
  permissions_.permit_topic(request.topic, {protocol::Right::manage}, std::move(request.user),
                            request.as_admin, answer,
                            exchange.permitted([=, this, topic = request.topic](const Asker& asker) {
                              operations_.delayed().list(
                                  asker, topic, wish, exchange.reply<protocol::DelayedPage>(std::identity()));
                            }));
}

template <typename Asked>
void CommandHandler::act_on_delayed(std::string_view cmd, Asked request, DelayedWish::What what,
                                    const Answer& answer) {
  const Exchange exchange{cmd, answer};
  DelayedWish wish{request.preview ? DelayedWish::What::count : what, std::move(request.filter)};
  if constexpr (requires { request.due; }) wish.due = request.due;
  permissions_.permit_topic(
      request.topic, {protocol::Right::manage}, std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic](const Asker&) {
        operations_.delayed().act(
            topic, wish,
            exchange.reply<protocol::DelayedCount>([cmd = exchange.cmd](protocol::DelayedCount count) {
              protocol::OkReply reply{std::string(cmd), {}, {}, count.messages};
              reply.delayed = std::move(count);
              return reply;
            }));
      }));
}

void CommandHandler::execute(protocol::CancelDelayed request, const Answer& answer) {
  act_on_delayed("cancel_delayed", std::move(request), DelayedWish::What::cancel, answer);
}

void CommandHandler::execute(protocol::HurryDelayed request, const Answer& answer) {
  act_on_delayed("hurry_delayed", std::move(request), DelayedWish::What::hurry, answer);
}

void CommandHandler::execute(protocol::RescheduleDelayed request, const Answer& answer) {
  act_on_delayed("reschedule_delayed", std::move(request), DelayedWish::What::reschedule, answer);
}

void CommandHandler::execute(protocol::CreateUser request, const Answer& answer) {
  const Exchange exchange{"create_user", answer};
  const auto user =
      std::make_shared<NewUser>(NewUser{request.user.user_id, Secret(request.user.password), request.is_admin,
                                        std::move(request.rights), request.uid});
  permissions_.permit_admin(std::move(request.admin), answer,
                            exchange.permitted([=, this](const Asker& asker) {
                              operations_.users().create(asker, std::move(*user), exchange.ok());
                            }));
}

void CommandHandler::execute(protocol::DeleteUser request, const Answer& answer) {
  const Exchange exchange{"delete_user", answer};
  permissions_.permit_admin(std::move(request.admin), answer,
                            exchange.permitted([=, this, name = request.user_id](const Asker&) {
                              operations_.users().remove(name, exchange.ok());
                            }));
}

void CommandHandler::execute(protocol::SetPassword request, const Answer& answer) {
  if (request.topic) return set_topic_password(std::move(request), answer);
  const Exchange exchange{"set_password", answer};
  const auto password = std::make_shared<Secret>(request.new_password);
  permissions_.permit_admin_or(request.user_id, std::move(request.asker), answer,
                               exchange.permitted([=, this, name = request.user_id](const Asker& asker) {
                                 operations_.users().set_password(asker, name, std::move(*password),
                                                                  exchange.ok());
                               }));
}

/// Only an administrator names the topic's own user. Every other asker names itself.
void CommandHandler::set_topic_password(protocol::SetPassword request, const Answer& answer) {
  const Exchange exchange{"set_password", answer};
  const auto password = std::make_shared<const Secret>(request.new_password);
  const std::string own_user = request.as_admin ? request.user_id : std::string();
  permissions_.permit_topic(
      *request.topic, {protocol::Right::manage}, std::move(request.asker), request.as_admin, answer,
      exchange.permitted([=, this, topic = *request.topic](const Asker& asker) {
        operations_.users().set_topic_password(asker, topic, own_user, *password, exchange.ok());
      }));
}

void CommandHandler::execute(protocol::GrantRights request, const Answer& answer) {
  const Exchange exchange{"grant", answer};
  permissions_.permit_admin(
      std::move(request.admin), answer,
      exchange.permitted([=, this, name = request.user_id, right = request.right](const Asker&) {
        operations_.users().grant(name, right, exchange.ok());
      }));
}

void CommandHandler::execute(protocol::RevokeRights request, const Answer& answer) {
  const Exchange exchange{"revoke", answer};
  permissions_.permit_admin(
      std::move(request.admin), answer,
      exchange.permitted([=, this, name = request.user_id, right = request.right](const Asker&) {
        operations_.users().revoke(name, right, exchange.ok());
      }));
}

void CommandHandler::execute(protocol::ListUsers request, const Answer& answer) {
  const Exchange exchange{"list_users", answer};
  permissions_.permit_admin(std::move(request.admin), answer, exchange.permitted([=, this](const Asker&) {
    answer(protocol::UserListReply{operations_.users().list()});
  }));
}

void CommandHandler::execute(protocol::Reload request, const Answer& answer) {
  const Exchange exchange{"reload", answer};
  permissions_.permit_admin(std::move(request.admin), answer, exchange.permitted([=, this](const Asker&) {
    if (!reload_) return exchange.fail({ErrorCode::not_supported, "this broker cannot reload its settings"});
    Result<protocol::ReloadReply> reloaded = reload_();
    if (!reloaded) return exchange.fail(reloaded.error());
    answer(std::move(*reloaded));
  }));
}

void CommandHandler::execute(protocol::Ping, const Answer& answer) {
  answer(protocol::OkReply{"ping", {}, {}});
}

void CommandHandler::execute(protocol::Version, const Answer& answer) {
  answer(protocol::VersionReply{std::string(version_text), 1});
}

}  // namespace lightq::broker
