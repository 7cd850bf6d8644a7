/// Converts control replies to and from JSON. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <lightq/impl/protocol/json_reply_fields.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_delayed.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_schedules.hpp>
#include <lightq/protocol/json_trace.hpp>
#include <lightq/protocol/stats_fields.hpp>

namespace lightq::inline v1::protocol {

namespace detail {

inline OrderedJson reply_head(std::string_view cmd, std::string_view status) {
  OrderedJson head = OrderedJson::object();
  if (!cmd.empty()) head["cmd"] = cmd;
  head["status"] = status;
  return head;
}

struct ReplyWriter {
  OrderedJson operator()(const ErrorReply& reply) const {
    OrderedJson to = reply_head(reply.cmd, "error");
    to["code"] = to_word(reply.code);
    to["description"] = reply.description;
    return to;
  }
  OrderedJson operator()(const OkReply& reply) const { return written(reply.cmd, reply); }
  OrderedJson operator()(const VersionReply& reply) const { return written("version", reply); }
  OrderedJson operator()(const JoinReply& reply) const { return written("join", reply); }
  OrderedJson operator()(const ListReply& reply) const { return written("list_topics", reply); }
  OrderedJson operator()(const UserListReply& reply) const { return written("list_users", reply); }
  OrderedJson operator()(const ReloadReply& reply) const { return written("reload", reply); }
  OrderedJson operator()(const StatsAllReply& reply) const { return written("stats_all", reply); }
  OrderedJson operator()(const DeadPage& reply) const { return written("list_dead", reply); }
  OrderedJson operator()(const MessageTrace& reply) const { return written("trace", reply); }
  OrderedJson operator()(const DelayedPage& reply) const { return written("list_delayed", reply); }
  OrderedJson operator()(const SchedulePage& reply) const { return written("list_schedules", reply); }
  template <typename AnyStats>
  OrderedJson operator()(const AnyStats& reply) const {
    return written("stats", reply);
  }

 private:
  template <typename OneReply>
  static OrderedJson written(std::string_view cmd, const OneReply& reply) {
    OrderedJson to = reply_head(cmd, "ok");
    visit_fields(reply, FieldWriter{to});
    return to;
  }
};

inline Reply read_error_reply(FieldReader& fields, const Json& object) {
  ErrorReply reply;
  reply.cmd = fields.text("cmd", 0, reply_text_bytes_max, true);
  const auto code = object.find("code");
  if (code != object.end() && code->is_string()) {
    reply.code = error_code_of(code->get_ref<const std::string&>()).value_or(ErrorCode::internal);
  }
  reply.description = fields.text("description", 0, reply_text_bytes_max, true);
  return reply;
}

template <typename AnyStats>
Reply read_stats_reply(const FieldLoader& load) {
  AnyStats stats;
  visit_fields(stats, load);
  return stats;
}

/// Reads the reply to each kind of request. A reply without fields of its own becomes an OkReply.
struct ReplyReader {
  const Json& object;
  FieldReader& fields;

  Reply operator()(const Version&) const {
    VersionReply reply;
    reply.version = fields.text("version", 1, reply_text_bytes_max);
    reply.protocol = static_cast<int>(fields.number("protocol", 0, 1'000'000, 1));
    return reply;
  }
  Reply operator()(const Join&) const {
    JoinReply reply;
    reply.topic = fields.text("topic", 1, reply_text_bytes_max);
    reply.bind_uri = fields.text("bind_uri", 1, reply_text_bytes_max);
    FieldLoader{object, fields}("ticket", reply.ticket);
    reply.server_key = fields.text("server_key", 0, reply_text_bytes_max, true);
    FieldLoader{object, fields}("tls", reply.tls);
    return reply;
  }
  Reply operator()(const ListTopics&) const {
    ListReply reply;
    visit_fields(reply, FieldLoader{object, fields});
    return reply;
  }
  Reply operator()(const ListUsers&) const {
    UserListReply reply;
    FieldLoader{object, fields}("users", reply.users);
    return reply;
  }
  Reply operator()(const Reload&) const {
    ReloadReply reply;
    const auto take_into = [](std::vector<std::string>& names) {
      return [&names](const std::string& name) {
        names.push_back(name);
        return name.size() <= ReloadReply::name_bytes_max;
      };
    };
    fields.texts("changed", ReloadReply::names_max, take_into(reply.changed));
    fields.texts("needs_restart", ReloadReply::names_max, take_into(reply.needs_restart));
    return reply;
  }
  Reply operator()(const Stats& asked) const {
    const FieldLoader load{object, fields};
    return asked.topic ? read_stats_reply<TopicStats>(load) : read_stats_reply<BrokerStats>(load);
  }
  Reply operator()(const StatsAll&) const {
    StatsAllReply reply;
    FieldLoader{object, fields}("topics", reply.topics);
    reply.continue_after = fields.text("continue_after", 1, limits::topic_name_bytes_max, true);
    return reply;
  }
  Reply operator()(const ListDead&) const {
    DeadPage page;
    FieldLoader{object, fields}("messages", page.messages);
    if (fields.has("continue_after"))
      page.continue_after = fields.number("continue_after", 0, ~std::uint64_t{0}, 0);
    page.unreadable = fields.number("unreadable", 0, ~std::uint64_t{0}, 0);
    return page;
  }
  Reply operator()(const Trace&) const {
    MessageTrace trace;
    visit_fields(trace, FieldLoader{object, fields});
    return trace;
  }
  Reply operator()(const ListDelayed&) const {
    DelayedPage page;
    FieldLoader{object, fields}("messages", page.messages);
    page.continue_after = read_delayed_place(fields, "continue_after_due_us", "continue_after_number");
    return page;
  }
  Reply operator()(const ListSchedules&) const {
    SchedulePage page;
    fields.objects("schedules", SchedulePage::schedules_max,
                   [&](FieldReader& listing) { page.schedules.push_back(read_listed_schedule(listing)); });
    page.continue_after = fields.text("continue_after", 1, 2 * limits::topic_name_bytes_max + 1, true);
    return page;
  }
  template <typename Asked>
  Reply operator()(const Asked&) const {
    OkReply reply;
    reply.cmd = fields.text("cmd", 0, reply_text_bytes_max, true);
    reply.description = fields.text("description", 0, reply_text_bytes_max, true);
    if (fields.has("messages_handed")) {
      reply.messages_handed = fields.number("messages_handed", 0, ~std::uint64_t{0}, 0);
    }
    if (fields.has("messages")) reply.messages = fields.number("messages", 0, ~std::uint64_t{0}, 0);
    reply.unreadable = fields.number("unreadable", 0, ~std::uint64_t{0}, 0);
    if (fields.has("given_back")) visit_fields(reply.returned.emplace(), FieldLoader{object, fields});
    if (fields.has("too_late")) visit_fields(reply.delayed.emplace(), FieldLoader{object, fields});
    if (fields.has("former_offset")) visit_fields(reply.moved.emplace(), FieldLoader{object, fields});
    if (fields.has("settings")) visit_fields(reply.created.emplace(), FieldLoader{object, fields});
    return reply;
  }
};

}  // namespace detail

LIGHTQ_INLINE std::string to_json(const Reply& reply) {
  return detail::dump(std::visit(detail::ReplyWriter{}, reply));
}

LIGHTQ_INLINE Result<Reply> parse_reply(const Request& asked, std::string_view text) {
  const auto object = detail::parse_object(text, detail::reply_bytes_max);
  if (!object) {
    Error error = object.error();
    if (error.code == ErrorCode::invalid_cmd)
      error = {ErrorCode::invalid_json, "the reply is not a JSON object"};
    return error;
  }
  detail::FieldReader fields(object.value());
  const auto status = fields.text("status", 1, detail::reply_text_bytes_max);
  if (!fields.error() && status != "ok" && status != "error") fields.fail("status", "must be ok or error");
  if (fields.error()) return *fields.error();
  Reply reply = status == "error" ? detail::read_error_reply(fields, object.value())
                                  : std::visit(detail::ReplyReader{object.value(), fields}, asked);
  if (fields.error()) return *fields.error();
  return reply;
}

}  // namespace lightq::inline v1::protocol
