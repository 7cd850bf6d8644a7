/// One table of fields for each struct of statistics: the name, the kind and the member. Every format that
/// prints statistics prints them from these tables, as json_reply.hpp does. docs/protocol.md, "stats",
/// defines the fields. Layer: protocol.
#pragma once

#include <type_traits>

#include <lightq/protocol/control.hpp>

namespace lightq::inline v1::protocol {

/// The meaning of a field's value for a program that watches it.
enum class StatKind {
  counter,  ///< a number of events or bytes since the broker's start that never decreases
  gauge,    ///< a number that may also decrease, or a state; `true` is 1
  label,    ///< a name, a word or a reason
  parts,    ///< an object or a list with names or a table of its own
};

/// The name and kind of a field.
struct StatField {
  const char* name;
  StatKind kind;

  static constexpr StatField counter(const char* name) { return {name, StatKind::counter}; }
  static constexpr StatField gauge(const char* name) { return {name, StatKind::gauge}; }
  static constexpr StatField label(const char* name) { return {name, StatKind::label}; }
  static constexpr StatField parts(const char* name) { return {name, StatKind::parts}; }
  // NOLINTNEXTLINE(google-explicit-constructor): a visitor of names alone serves these tables too
  constexpr operator const char*() const { return name; }
};

// Each table calls visit(StatField, member) in the order in which JSON lists the fields.

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, GroupStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::label("group"), stats.group);
  visit(StatField::label("mode"), stats.mode);
  visit(StatField::gauge("next_offset"), stats.next_offset);
  visit(StatField::gauge("committed_offset"), stats.committed_offset);
  visit(StatField::gauge("pending"), stats.pending);
  visit(StatField::gauge("ready"), stats.ready);
  visit(StatField::gauge("in_flight"), stats.in_flight);
  visit(StatField::gauge("retrying"), stats.retrying);
  visit(StatField::gauge("lag"), stats.lag);
  visit(StatField::gauge("lost"), stats.lost);
  visit(StatField::gauge("consumers"), stats.consumers);
  visit(StatField::gauge("unacknowledged"), stats.unacknowledged);
  visit(StatField::counter("redelivered"), stats.redelivered);
  visit(StatField::gauge("oldest_ms"), stats.oldest_ms);
  visit(StatField::gauge("paused"), stats.paused);
  visit(StatField::label("blocked_by"), stats.blocked_by);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, SubscriberStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::label("bind_uri"), stats.bind_uri);
  visit(StatField::gauge("connected"), stats.connected);
  visit(StatField::gauge("next_offset"), stats.next_offset);
  visit(StatField::gauge("lag"), stats.lag);
  visit(StatField::gauge("delivered"), stats.delivered);
  visit(StatField::gauge("lost"), stats.lost);
  visit(StatField::label("blocked_by"), stats.blocked_by);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, TopicStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::label("topic"), stats.topic);
  visit(StatField::label("topic_type"), stats.topic_type);
  visit(StatField::counter("messages_received"), stats.messages_received);
  visit(StatField::gauge("messages_sent"), stats.messages_sent);
  visit(StatField::gauge("publishers_count"), stats.publishers_count);
  visit(StatField::gauge("subscribers_count"), stats.subscribers_count);
  visit(StatField::gauge("queue_size"), stats.queue_size);
  visit(StatField::counter("total_bytes_written"), stats.total_bytes_written);
  visit(StatField::counter("total_bytes_read"), stats.total_bytes_read);
  visit(StatField::gauge("deliveries"), stats.deliveries);
  visit(StatField::counter("dropped"), stats.dropped);
  visit(StatField::counter("rejected"), stats.rejected);
  visit(StatField::counter("refused"), stats.refused);
  visit(StatField::counter("unclaimed_dropped"), stats.unclaimed_dropped);
  visit(StatField::counter("corrupt"), stats.corrupt);
  visit(StatField::counter("refused_connections"), stats.refused_connections);
  visit(StatField::gauge("first_offset"), stats.first_offset);
  visit(StatField::gauge("next_offset"), stats.next_offset);
  visit(StatField::gauge("durable_offset"), stats.durable_offset);
  visit(StatField::gauge("log_bytes"), stats.log_bytes);
  visit(StatField::label("blocked_by"), stats.blocked_by);
  visit(StatField::gauge("paused"), stats.paused);
  visit(StatField::gauge("since_ms"), stats.since_ms);
  visit(StatField::gauge("open"), stats.open);
  visit(StatField::gauge("open_by_broker"), stats.open_by_broker);
  visit(StatField::parts("settings"), stats.settings);
  visit(StatField::parts("groups"), stats.groups);
  visit(StatField::parts("subscribers"), stats.subscribers);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, BrokerStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::label("version"), stats.version);
  visit(StatField::gauge("pid"), stats.pid);
  visit(StatField::gauge("since_ms"), stats.since_ms);
  visit(StatField::gauge("uptime_ms"), stats.uptime_ms);
  visit(StatField::gauge("topics"), stats.topics);
  visit(StatField::gauge("connections"), stats.connections);
  // Sums over the topics that exist: a deleted topic is no longer in them.
  visit(StatField::gauge("messages_received"), stats.messages_received);
  visit(StatField::gauge("messages_sent"), stats.messages_sent);
  visit(StatField::gauge("deliveries"), stats.deliveries);
  visit(StatField::gauge("total_bytes_written"), stats.total_bytes_written);
  visit(StatField::gauge("total_bytes_read"), stats.total_bytes_read);
  visit(StatField::gauge("log_bytes"), stats.log_bytes);
  visit(StatField::counter("auth_failures"), stats.auth_failures);
  visit(StatField::counter("throttled_requests"), stats.throttled_requests);
  visit(StatField::counter("refused_connections"), stats.refused_connections);
  visit(StatField::counter("evicted_connections"), stats.evicted_connections);
  visit(StatField::parts("limits_reached"), stats.limits_reached);
  visit(StatField::label("data_dir"), stats.data_dir);
  visit(StatField::gauge("encrypted"), stats.encrypted);
  visit(StatField::gauge("insecure"), stats.insecure);
}

}  // namespace lightq::inline v1::protocol
