/// The fields of control replies in JSON. docs/protocol.md specifies each. Layer: protocol.
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

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_delayed.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_schedules.hpp>
#include <lightq/protocol/json_trace.hpp>
#include <lightq/protocol/stats_fields.hpp>

namespace lightq::inline v1::protocol::detail {

/// The longest reply that a client reads: enough for a list of limits::topics_max topics.
inline constexpr std::size_t reply_bytes_max = 64 * limits::MiB;
inline constexpr std::size_t reply_text_bytes_max = 64 * limits::KiB;

// One table of fields per struct, used for writing and for reading: visit("field", member). Those of
// statistics are in stats_fields.hpp.

/// Visits `broker_type` first, then only the settings that apply to it: those that create_topic would accept.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, TopicSettings>
void visit_fields(S& settings, Visit&& visit) {
  visit("broker_type", settings.broker_type);
  if (has_ring(settings.broker_type)) visit("ring_bytes", settings.ring_bytes);
  if (has_log(settings.broker_type)) {
    visit("overflow", settings.overflow);
    visit("message_ttl_ms", settings.message_ttl_ms);
  }
  if (has_files(settings.broker_type)) {
    visit("capacity_bytes", settings.capacity_bytes);
    visit("segment_bytes", settings.segment_bytes);
    visit("retention_bytes", settings.retention_bytes);
    visit("retention_ms", settings.retention_ms);
    visit("retention_messages", settings.retention_messages);
    visit("retention_over_pending", settings.retention_over_pending);
    visit("encrypt_at_rest", settings.encrypt_at_rest);
  }
  visit("open", settings.open);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, CreatedTopic>
void visit_fields(S& created, Visit&& visit) {
  visit("settings", created.settings);
  constexpr bool reads = !std::is_const_v<S>;
  if (reads || !created.topic_template.empty()) visit("template", created.topic_template);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, Ticket>
void visit_fields(S& ticket, Visit&& visit) {
  visit("id", ticket.id);
  visit("secret", ticket.secret);
  visit("expires_ms", ticket.expires_ms);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, Tls>
void visit_fields(S& tls, Visit&& visit) {
  visit("certificate_sha256", tls.certificate_sha256);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, GroupListing>
void visit_fields(S& listing, Visit&& visit) {
  visit("group", listing.group);
  visit("settings", listing.settings);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, TopicListing>
void visit_fields(S& listing, Visit&& visit) {
  visit("topic", listing.topic);
  visit("broker_type", listing.settings.broker_type);
  visit("open", listing.open);
  visit("open_by_broker", listing.open_by_broker);
  visit("settings", listing.settings);
  if (!std::is_const_v<S> || !listing.groups.empty()) visit("groups", listing.groups);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, TopicRight>
void visit_fields(S& right, Visit&& visit) {
  visit("topic", right.topic);
  visit("rights", right.rights);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, UserListing>
void visit_fields(S& listing, Visit&& visit) {
  visit("user_id", listing.user_id);
  visit("admin", listing.admin);
  visit("uid", listing.uid);
  visit("rights", listing.rights);
}

/// Leaves out members that the group does not remember.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DeadMessage>
void visit_fields(S& message, Visit&& visit) {
  visit("offset", message.offset);
  visit("state", message.state);
  visit("cause", message.cause);
  visit("attempts", message.attempts);
  constexpr bool reads = !std::is_const_v<S>;
  if (reads || message.first_failure_ms != 0) visit("first_failure_ms", message.first_failure_ms);
  if (reads || message.last_failure_ms != 0) visit("last_failure_ms", message.last_failure_ms);
  if (reads || !message.reason.empty()) visit.free_text("reason", message.reason);
  if (!reads && message.source_topic.empty()) return;
  visit("source_topic", message.source_topic);
  visit("source_group", message.source_group);
  visit("source_offset", message.source_offset);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, ReturnedLetters>
void visit_fields(S& letters, Visit&& visit) {
  visit("given_back", letters.given_back);
  visit("published", letters.published);
  visit("group_gone", letters.group_gone);
  visit("topic_gone", letters.topic_gone);
  visit("not_allowed", letters.not_allowed);
  visit("failed", letters.failed);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, GroupMove>
void visit_fields(S& move, Visit&& visit) {
  visit("former_offset", move.former_offset);
  visit("offset", move.offset);
  visit("former_pending", move.former_pending);
  visit("pending", move.pending);
}

/// Leaves out texts that the message does not have.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DelayedMessage>
void visit_fields(S& message, Visit&& visit) {
  visit("number", message.number);
  visit("due_us", message.due);
  visit("state", message.state);
  visit("bytes", message.bytes);
  constexpr bool reads = !std::is_const_v<S>;
  if (reads || !message.id.empty()) visit.free_text("id", message.id);
  if (reads || !message.key.empty()) visit.free_text("key", message.key);
  visit.payload(message.payload);
  if (reads || message.payload) visit("payload_bytes", message.payload_bytes);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, UntouchedDelayed>
void visit_fields(S& message, Visit&& visit) {
  visit("number", message.number);
  visit("why", message.why);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DelayedCount>
void visit_fields(S& count, Visit&& visit) {
  visit("messages", count.messages);
  visit("too_late", count.too_late);
  visit("unknown", count.unknown);
  if (!std::is_const_v<S> || !count.untouched.empty()) visit("untouched", count.untouched);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, ScheduleHeader>
void visit_fields(S& header, Visit&& visit) {
  visit("name", header.name);
  visit("value", header.value);
}

/// Leaves out what a schedule does not have.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, ScheduleListing>
void visit_fields(S& listing, Visit&& visit) {
  constexpr bool reads = !std::is_const_v<S>;
  auto& settings = listing.settings;
  visit("topic", listing.topic);
  visit("name", listing.name);
  visit("cron", settings.cron);
  visit("zone", settings.zone);
  visit("missed", settings.missed);
  if (reads || !settings.key.empty()) visit.free_text("key", settings.key);
  if (reads || !settings.headers.empty()) visit("headers", settings.headers);
  visit("payload_bytes", listing.payload_bytes);
  if (reads || !settings.payload.empty()) visit.payload(settings.payload);
  visit("paused", listing.paused);
  visit("next_ms", listing.next_ms);
  visit("fired", listing.fired);
  if (reads || listing.last_ms != 0) visit("last_ms", listing.last_ms);
  if (reads || !listing.waiting_by.empty()) visit("waiting_by", listing.waiting_by);
}

// Replies, without `cmd` and `status`. They leave out empty fields.

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, OkReply>
void visit_fields(S& reply, Visit&& visit) {
  if (!reply.description.empty()) visit("description", reply.description);
  if (reply.messages_handed) visit("messages_handed", *reply.messages_handed);
  if (reply.messages) visit("messages", *reply.messages);
  if (reply.unreadable != 0) visit("unreadable", reply.unreadable);
  if (reply.returned) visit_fields(*reply.returned, visit);
  if (reply.delayed) visit_fields(*reply.delayed, visit);
  if (reply.moved) visit_fields(*reply.moved, visit);
  if (reply.created) visit_fields(*reply.created, visit);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, VersionReply>
void visit_fields(S& reply, Visit&& visit) {
  visit("version", reply.version);
  visit("protocol", static_cast<std::uint64_t>(reply.protocol));
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, JoinReply>
void visit_fields(S& reply, Visit&& visit) {
  constexpr bool reads = !std::is_const_v<S>;
  visit("topic", reply.topic);
  visit("bind_uri", reply.bind_uri);
  visit("ticket", reply.ticket);
  if (reads || !reply.server_key.empty()) visit("server_key", reply.server_key);
  visit("tls", reply.tls);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, ListReply>
void visit_fields(S& reply, Visit&& visit) {
  visit("topics", reply.topics);
  if (!std::is_const_v<S> || !reply.continue_after.empty()) visit("continue_after", reply.continue_after);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, UserListReply>
void visit_fields(S& reply, Visit&& visit) {
  visit("users", reply.users);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, ReloadReply>
void visit_fields(S& reply, Visit&& visit) {
  visit("changed", reply.changed);
  visit("needs_restart", reply.needs_restart);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, StatsAllReply>
void visit_fields(S& reply, Visit&& visit) {
  visit("topics", reply.topics);
  if (!std::is_const_v<S> || !reply.continue_after.empty()) visit("continue_after", reply.continue_after);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DeadPage>
void visit_fields(S& page, Visit&& visit) {
  constexpr bool reads = !std::is_const_v<S>;
  visit("messages", page.messages);
  visit("continue_after", page.continue_after);
  if (reads || page.unreadable != 0) visit("unreadable", page.unreadable);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DelayedPage>
void visit_fields(S& page, Visit&& visit) {
  visit("messages", page.messages);
  constexpr bool reads = !std::is_const_v<S>;
  if (!reads && !page.continue_after) return;
  const DelayedPlace place = page.continue_after.value_or(DelayedPlace());
  visit("continue_after_due_us", place.due);
  visit("continue_after_number", place.number);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, SchedulePage>
void visit_fields(S& page, Visit&& visit) {
  visit("schedules", page.schedules);
  if (!std::is_const_v<S> || !page.continue_after.empty()) visit("continue_after", page.continue_after);
}

/// Writes the fields of a struct into `to`.
struct FieldWriter {
  OrderedJson& to;

  void operator()(const char* name, const std::string& value) const { to[name] = value; }
  void free_text(const char* name, const std::string& value) const { to[name] = value; }
  void payload(const std::optional<std::string>& value) const {
    if (value) write_payload(to, *value);
  }
  void payload(const std::string& value) const { write_payload(to, value); }
  void operator()(const char* name, const Secret& value) const { to[name] = value.expose(); }
  void operator()(const char* name, std::uint64_t value) const { to[name] = value; }
  void operator()(const char* name, std::uint32_t value) const { to[name] = value; }
  void operator()(const char* name, bool value) const { to[name] = value; }
  void operator()(const char* name, const std::vector<std::uint32_t>& numbers) const { to[name] = numbers; }
  void operator()(const char* name, const std::vector<std::uint64_t>& numbers) const { to[name] = numbers; }
  void operator()(const char* name, const std::vector<std::string>& texts) const { to[name] = texts; }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum value) const {
    to[name] = to_word(value);
  }
  void operator()(const char* name, const GroupSettings& settings) const { put(name, settings); }
  void operator()(const char* name, const DeadMessage& death) const { put(name, death); }
  void operator()(const char* name, Timestamp time) const { to[name] = time.us; }
  void operator()(const char* name, const Rights& rights) const { to[name] = right_words_of(rights); }
  void operator()(const char* name, const TopicSettings& settings) const { put(name, settings); }
  void operator()(const char* name, const DelayedStats& stats) const { put(name, stats); }
  void operator()(const char* name, const Ticket& ticket) const { put(name, ticket); }
  void operator()(const char* name, const Tls& tls) const { put(name, tls); }
  void operator()(const char* name, const std::map<std::string, std::uint64_t>& counts) const {
    to[name] = counts;
  }
  template <typename Value>
  void operator()(const char* name, const std::optional<Value>& value) const {
    if (value) (*this)(name, *value);
  }
  template <typename Item>
  void operator()(const char* name, const std::vector<Item>& items) const {
    OrderedJson list = OrderedJson::array();
    for (const Item& item : items) {
      OrderedJson entry = OrderedJson::object();
      visit_fields(item, FieldWriter{entry});
      list.push_back(std::move(entry));
    }
    to[name] = std::move(list);
  }

 private:
  template <typename Object>
  void put(const char* name, const Object& object) const {
    OrderedJson fields = OrderedJson::object();
    visit_fields(object, FieldWriter{fields});
    to[name] = std::move(fields);
  }
};

/// Reads the fields of a struct. A missing field keeps its default, so that a newer client understands an
/// older broker.
struct FieldLoader {
  const Json& object;
  FieldReader& fields;

  void operator()(const char* name, std::string& value) const {
    value = fields.text(name, 0, reply_text_bytes_max, true);
  }
  /// Reads a text that the broker has from a producer or consumer, with any bytes.
  void free_text(const char* name, std::string& value) const {
    value = fields.free_text(name, reply_text_bytes_max);
  }
  void payload(std::optional<std::string>& value) const {
    if (fields.has("payload") || fields.has("payload_base64")) value = read_payload(fields);
  }
  void operator()(const char* name, Secret& value) const {
    value = fields.text(name, 0, reply_text_bytes_max, true);
  }
  void operator()(const char* name, std::uint64_t& value) const {
    value = fields.number(name, 0, ~std::uint64_t{0}, value);
  }
  void operator()(const char* name, std::uint32_t& value) const {
    value = static_cast<std::uint32_t>(fields.number(name, 0, UINT32_MAX, value));
  }
  void operator()(const char* name, bool& value) const { value = fields.boolean(name, value); }
  void operator()(const char* name, std::vector<std::uint32_t>& numbers) const {
    for (const auto number : fields.numbers(name, reply_text_bytes_max, 0, UINT32_MAX))
      numbers.push_back(static_cast<std::uint32_t>(number));
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum& value) const {
    value = fields.word<Enum>(name, words_text<Enum>(), value);
  }
  void operator()(const char* name, GroupSettings& settings) const { load(name, settings); }
  void operator()(const char* name, DeadMessage& death) const { load(name, death); }
  void operator()(const char* name, Timestamp& time) const {
    if (fields.has(name)) time = read_time_us(fields, name);
  }
  void operator()(const char* name, DelayedStats& stats) const { load(name, stats); }
  void operator()(const char* name, Rights& rights) const { rights = read_right_words(fields, name); }
  void operator()(const char* name, TopicSettings& settings) const { load(name, settings); }
  void operator()(const char* name, Ticket& ticket) const { load(name, ticket); }
  void operator()(const char* name, Tls& tls) const { load(name, tls); }
  template <typename Value>
  void operator()(const char* name, std::optional<Value>& value) const {
    if (fields.has(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::map<std::string, std::uint64_t>& counts) const {
    const auto found = object.find(name);
    if (found == object.end() || fields.error()) return;
    if (!found->is_object()) return fields.fail(name, "must be an object");
    FieldReader nested(*found, std::string(name) + ".");
    for (const auto& [key, value] : found->items())
      counts[key] = nested.number(key.c_str(), 0, ~std::uint64_t{0}, 0);
    if (nested.error()) fields.fail(name, nested.error()->message);
  }
  template <typename Item>
  void operator()(const char* name, std::vector<Item>& items) const {
    const auto found = object.find(name);
    if (found == object.end() || fields.error()) return;
    if (!found->is_array()) return fields.fail(name, "must be a list");
    for (const Json& entry : *found) {
      if (!entry.is_object()) return fields.fail(name, "must be a list of objects");
      FieldReader entry_fields(entry, std::string(name) + ".");
      visit_fields(items.emplace_back(), FieldLoader{entry, entry_fields});
      if (entry_fields.error()) return fields.fail(name, entry_fields.error()->message);
    }
  }

 private:
  template <typename Object>
  void load(const char* name, Object& into) const {
    const auto found = object.find(name);
    if (found == object.end() || fields.error()) return;
    if (!found->is_object()) return fields.fail(name, "must be an object");
    FieldReader nested(*found, std::string(name) + ".");
    visit_fields(into, FieldLoader{*found, nested});
    if (nested.error()) fields.fail(name, nested.error()->message);
  }
};

}  // namespace lightq::inline v1::protocol::detail
