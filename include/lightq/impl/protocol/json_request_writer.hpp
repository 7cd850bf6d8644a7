/// Writes control requests as JSON. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_delayed.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_schedules.hpp>
#include <lightq/protocol/json_settings.hpp>

namespace lightq::inline v1::protocol::detail {

inline void write_credentials(OrderedJson& to, const Credentials& from, bool as_admin) {
  if (from.user_id.empty() && from.password.empty()) return;
  to[as_admin ? "admin_user_id" : "user_id"] = from.user_id;
  to[as_admin ? "admin_password" : "password"] = from.password.expose();
}

/// Adds a request's fields to the document that already holds its `cmd`.
struct RequestWriter {
  OrderedJson& to;

  void operator()(const CreateTopic& request) const {
    write_credentials(to, request.admin, true);
    to["topic"] = request.topic.text();
    if (request.given)
      write_given_settings(to, request.settings, *request.given);
    else
      write_settings(to, request.settings);
    write_credentials(to, request.user, false);
  }
  void operator()(const DeleteTopic& request) const {
    write_credentials(to, request.admin, true);
    to["topic"] = request.topic.text();
  }
  void operator()(const SetTopic& request) const {
    to["topic"] = request.topic.text();
    write_topic_change(to, request.change);
    write_credentials(to, request.user, request.as_admin);
  }
  /// Writes a request of an administrator.
  template <typename Plain>
    requires(std::is_same_v<Plain, ListTopics> || std::is_same_v<Plain, ListUsers> ||
             std::is_same_v<Plain, Reload>)
  void operator()(const Plain& request) const {
    if constexpr (std::is_same_v<Plain, ListTopics>) {
      if (request.groups) to["groups"] = true;
      if (request.after) to["after"] = request.after->text();
    }
    write_credentials(to, request.admin, true);
  }
  void operator()(const Join& request) const {
    to["connection_type"] = to_word(request.connection_type);
    to["type"] = to_word(request.type);
    if (request.transport != Transport::tcp) to["transport"] = to_word(request.transport);
    if (request.delivery != Delivery::plain) to["delivery"] = to_word(request.delivery);
    to["topic"] = request.topic.text();
    if (request.client_key) to["client_key"] = to_z85(*request.client_key);
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Leave& request) const {
    to["topic"] = request.topic.text();
    to["bind_uri"] = request.bind_uri;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Stats& request) const {
    if (request.topic) to["topic"] = request.topic->text();
    if (request.members_max != 0) to["members_max"] = request.members_max;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const StatsAll& request) const {
    if (request.after) to["after"] = request.after->text();
    if (request.topics_max != limits::stats_page_topics_default) to["topics_max"] = request.topics_max;
    write_credentials(to, request.admin, true);
  }
  void operator()(const DeleteGroup& request) const {
    to["topic"] = request.topic.text();
    to["group"] = request.group;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Pause& request) const { write_of_group(request); }
  void operator()(const Resume& request) const { write_of_group(request); }
  void operator()(const Purge& request) const {
    write_of_group(request);
    if (request.delayed) to["delayed"] = true;
  }
  void operator()(const SetGroup& request) const {
    to["topic"] = request.topic.text();
    to["group"] = request.group;
    write_group_change(to, request.change);
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const SeekGroup& request) const {
    to["topic"] = request.topic.text();
    to["group"] = request.group;
    write_group_place(to, request.to);
    if (request.preview) to["preview"] = true;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Trace& request) const {
    to["topic"] = request.topic.text();
    to["offset"] = request.offset;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const ListDead& request) const {
    write_of_group(request);
    write_dead_filter(to, request.filter);
    if (request.after_offset) to["after_offset"] = *request.after_offset;
    if (request.limit != DeadPage::messages_default) to["limit"] = request.limit;
  }
  void operator()(const RetryDead& request) const { write_of_dead(request); }
  void operator()(const PurgeDead& request) const { write_of_dead(request); }
  void operator()(const ListDelayed& request) const {
    write_of_topic(request);
    write_delayed_filter(to, request.filter);
    if (request.after) write_delayed_place(to, *request.after, "after_due_us", "after_number");
    if (request.limit != DelayedPage::messages_default) to["limit"] = request.limit;
    if (request.payload_bytes != 0) to["payload_bytes"] = request.payload_bytes;
  }
  void operator()(const CancelDelayed& request) const { write_of_delayed(request); }
  void operator()(const HurryDelayed& request) const { write_of_delayed(request); }
  void operator()(const RescheduleDelayed& request) const {
    write_of_delayed(request);
    write_new_due(to, request.due);
  }
  void operator()(const SetSchedule& request) const {
    write_of_schedule(request);
    write_schedule(to, request.settings);
  }
  void operator()(const ListSchedules& request) const {
    if (request.topic) to["topic"] = request.topic->text();
    if (!request.name.empty()) to["name"] = request.name;
    if (!request.after.empty()) to["after"] = request.after;
    if (request.limit != SchedulePage::schedules_default) to["limit"] = request.limit;
    if (request.times != 1) to["times"] = request.times;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const PauseSchedule& request) const { write_of_schedule(request); }
  void operator()(const ResumeSchedule& request) const { write_of_schedule(request); }
  void operator()(const RemoveSchedule& request) const { write_of_schedule(request); }
  void operator()(const CreateUser& request) const {
    write_credentials(to, request.admin, true);
    to["user_id"] = request.user.user_id;
    if (!request.user.password.empty()) to["password"] = request.user.password.expose();
    if (request.is_admin) to["admin"] = true;
    if (request.uid) to["uid"] = *request.uid;
    if (!request.rights.empty()) to["rights"] = list_of_rights(request.rights);
  }
  void operator()(const DeleteUser& request) const {
    write_credentials(to, request.admin, true);
    to["user_id"] = request.user_id;
  }
  void operator()(const SetPassword& request) const {
    write_credentials(to, request.asker, request.as_admin);
    if (!request.user_id.empty()) to["user_id"] = request.user_id;
    if (request.topic) to["topic"] = request.topic->text();
    to["new_password"] = request.new_password.expose();
  }
  void operator()(const GrantRights& request) const { write_change_of_rights(request); }
  void operator()(const RevokeRights& request) const { write_change_of_rights(request); }
  void operator()(const Ping&) const {}
  void operator()(const Version&) const {}

 private:
  template <typename Asked>
  void write_of_schedule(const Asked& request) const {
    to["topic"] = request.topic.text();
    to["name"] = request.name;
    write_credentials(to, request.user, request.as_admin);
  }
  template <typename Asked>
  void write_of_dead(const Asked& request) const {
    write_of_group(request);
    write_dead_filter(to, request.filter);
    if (request.preview) to["preview"] = true;
  }
  template <typename Asked>
  void write_of_topic(const Asked& request) const {
    to["topic"] = request.topic.text();
    write_credentials(to, request.user, request.as_admin);
  }
  template <typename Asked>
  void write_of_delayed(const Asked& request) const {
    write_of_topic(request);
    write_delayed_filter(to, request.filter);
    if (request.preview) to["preview"] = true;
  }
  template <typename Asked>
  void write_change_of_rights(const Asked& request) const {
    write_credentials(to, request.admin, true);
    to["user_id"] = request.user_id;
    write_right(to, request.right);
  }
  template <typename Asked>
  void write_of_group(const Asked& request) const {
    to["topic"] = request.topic.text();
    if (!request.group.empty()) to["group"] = request.group;
    write_credentials(to, request.user, request.as_admin);
  }
};

}  // namespace lightq::inline v1::protocol::detail
