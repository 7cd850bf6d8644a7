/// One table of fields for each struct of statistics: the name, the kind and the member. Every format that
/// prints statistics prints them from these tables, as json_reply.hpp does, and `add` sums by them.
/// docs/protocol.md, "stats", defines the fields. Layer: protocol.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lightq/protocol/control.hpp>

namespace lightq::inline v1::protocol {

/// The meaning of a field's value for a program that watches it.
enum class StatKind {
  counter,  ///< a number of events or bytes since the broker's start that never decreases
  gauge,    ///< a number that may also decrease, or a state; `true` is 1
  label,    ///< a name, a word or a reason
  parts,    ///< an object or a list with names or a table of its own
};

/// How `add` computes a field of the broker's statistics.
enum class StatSum {
  none,      ///< it is not a sum
  topics,    ///< the sum of the field with the same name in the statistics of all topics
  reactors,  ///< the sum of what each reactor has counted
};

/// The name and kind of a field, and whether it is a sum.
struct StatField {
  const char* name;
  StatKind kind;
  StatSum sum = StatSum::none;

  static constexpr StatField counter(const char* name) { return {name, StatKind::counter}; }
  static constexpr StatField gauge(const char* name) { return {name, StatKind::gauge}; }
  static constexpr StatField label(const char* name) { return {name, StatKind::label}; }
  static constexpr StatField parts(const char* name) { return {name, StatKind::parts}; }
  [[nodiscard]] constexpr StatField summed(StatSum over) const { return {name, kind, over}; }
  // NOLINTNEXTLINE(google-explicit-constructor): a visitor of names alone serves these tables too
  constexpr operator const char*() const { return name; }
};

// Each table calls visit(StatField, member) in the order in which JSON lists the fields.

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, MemberStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::gauge("number"), stats.number);
  visit(StatField::label("user_id"), stats.user_id);
  visit(StatField::gauge("since_ms"), stats.since_ms);
  visit(StatField::gauge("in_flight"), stats.in_flight);
  visit(StatField::gauge("credit_messages"), stats.credit_messages);
  visit(StatField::gauge("credit_bytes"), stats.credit_bytes);
  visit(StatField::gauge("heard_ms"), stats.heard_ms);
}

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
  visit(StatField::gauge("parked"), stats.parked);
  visit(StatField::gauge("dead_waiting"), stats.dead_waiting);
  visit(StatField::gauge("lag"), stats.lag);
  visit(StatField::gauge("lost"), stats.lost);
  visit(StatField::gauge("consumers"), stats.consumers);
  visit(StatField::gauge("free_consumers"), stats.free_consumers);
  visit(StatField::gauge("unacknowledged"), stats.unacknowledged);
  visit(StatField::counter("redelivered"), stats.redelivered);
  visit(StatField::counter("acknowledged"), stats.acknowledged);
  visit(StatField::counter("released"), stats.released);
  visit(StatField::counter("failed"), stats.failed);
  visit(StatField::counter("timed_out"), stats.timed_out);
  visit(StatField::counter("lost_with_session"), stats.lost_with_session);
  visit(StatField::counter("revoked"), stats.revoked);
  visit(StatField::counter("dead"), stats.dead);
  visit(StatField::counter("expired"), stats.expired);
  visit(StatField::gauge("recent_ended"), stats.recent_ended);
  visit(StatField::gauge("recent_dead"), stats.recent_dead);
  visit(StatField::gauge("oldest_ms"), stats.oldest_ms);
  visit(StatField::gauge("ack_holes"), stats.ack_holes);
  visit(StatField::gauge("next_due_ms"), stats.next_due_ms);
  visit(StatField::gauge("paused"), stats.paused);
  visit(StatField::label("paused_by"), stats.paused_by);
  visit(StatField::label("blocked_by"), stats.blocked_by);
  visit(StatField::label("dead_waiting_by"), stats.dead_waiting_by);
  visit(StatField::parts("settings"), stats.settings);
  visit(StatField::parts("members"), stats.members);
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
  visit(StatField::gauge("expired"), stats.expired);
  visit(StatField::label("blocked_by"), stats.blocked_by);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, DelayedStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::gauge("messages"), stats.messages);
  visit(StatField::gauge("bytes"), stats.bytes);
  visit(StatField::gauge("next_due_us"), stats.next_due_us);
  visit(StatField::counter("moved"), stats.moved);
  visit(StatField::counter("cancelled"), stats.cancelled);
  visit(StatField::gauge("late_us_max"), stats.late_us_max);
  visit(StatField::counter("corrupt"), stats.corrupt);
  visit(StatField::label("waiting_by"), stats.waiting_by);
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
  visit(StatField::counter("duplicates"), stats.duplicates);
  visit(StatField::counter("messages_out"), stats.messages_out);
  visit(StatField::counter("blocked_ms"), stats.blocked_ms);
  visit(StatField::gauge("oldest_ms"), stats.oldest_ms);
  visit(StatField::gauge("first_offset"), stats.first_offset);
  visit(StatField::gauge("next_offset"), stats.next_offset);
  visit(StatField::gauge("durable_offset"), stats.durable_offset);
  visit(StatField::gauge("log_bytes"), stats.log_bytes);
  visit(StatField::gauge("carried_messages"), stats.carried_messages);
  visit(StatField::gauge("carried_bytes"), stats.carried_bytes);
  visit(StatField::label("blocked_by"), stats.blocked_by);
  visit(StatField::gauge("paused"), stats.paused);
  visit(StatField::gauge("since_ms"), stats.since_ms);
  visit(StatField::gauge("open"), stats.open);
  visit(StatField::gauge("open_by_broker"), stats.open_by_broker);
  visit(StatField::parts("settings"), stats.settings);
  visit(StatField::parts("groups"), stats.groups);
  visit(StatField::parts("subscribers"), stats.subscribers);
  visit(StatField::parts("delayed"), stats.delayed);
}

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, BrokerStats>
void visit_fields(S& stats, Visit&& visit) {
  visit(StatField::label("version"), stats.version);
  visit(StatField::gauge("pid"), stats.pid);
  visit(StatField::gauge("since_ms"), stats.since_ms);
  visit(StatField::gauge("uptime_ms"), stats.uptime_ms);
  visit(StatField::gauge("topics").summed(StatSum::reactors), stats.topics);
  visit(StatField::gauge("connections").summed(StatSum::reactors), stats.connections);
  // Sums over the topics that exist: a deleted topic is no longer in them.
  visit(StatField::gauge("messages_received").summed(StatSum::topics), stats.messages_received);
  visit(StatField::gauge("messages_sent").summed(StatSum::topics), stats.messages_sent);
  visit(StatField::gauge("deliveries").summed(StatSum::topics), stats.deliveries);
  visit(StatField::gauge("total_bytes_written").summed(StatSum::topics), stats.total_bytes_written);
  visit(StatField::gauge("total_bytes_read").summed(StatSum::topics), stats.total_bytes_read);
  visit(StatField::gauge("log_bytes").summed(StatSum::topics), stats.log_bytes);
  visit(StatField::counter("auth_failures"), stats.auth_failures);
  visit(StatField::counter("throttled_requests"), stats.throttled_requests);
  // A reactor's own counts: they include the refusals that its topics have counted.
  visit(StatField::counter("refused_connections").summed(StatSum::reactors), stats.refused_connections);
  visit(StatField::counter("evicted_connections").summed(StatSum::reactors), stats.evicted_connections);
  visit(StatField::parts("limits_reached"), stats.limits_reached);
  visit(StatField::label("data_dir"), stats.data_dir);
  visit(StatField::gauge("encrypted"), stats.encrypted);
  visit(StatField::gauge("insecure"), stats.insecure);
}

/// Returns the number of a field by its name; 0 if the table has no number of that name.
template <typename S>
std::uint64_t number_of(const S& stats, std::string_view name) {
  std::uint64_t number = 0;
  visit_fields(stats, [&]<typename Member>(const StatField& field, const Member& member) {
    if constexpr (std::is_same_v<Member, std::uint64_t>) {
      if (name == field.name) number = member;
    }
  });
  return number;
}

/// Adds one more topic to the sums of a broker.
inline void add(BrokerStats& to, const TopicStats& topic) {
  to.topics += 1;
  to.connections += topic.publishers_count + topic.subscribers_count;
  visit_fields(to, [&]<typename Member>(const StatField& field, Member& member) {
    if constexpr (std::is_same_v<Member, std::uint64_t>) {
      if (field.sum == StatSum::topics) member += number_of(topic, field.name);
    }
  });
}

/// Adds the sums of another part of the broker. Leaves fields that are no sums unchanged.
inline void add(BrokerStats& to, const BrokerStats& part) {
  std::vector<std::uint64_t> numbers;
  visit_fields(part, [&]<typename Member>(const StatField& field, const Member& member) {
    if constexpr (std::is_same_v<Member, std::uint64_t>) {
      if (field.sum != StatSum::none) numbers.push_back(member);
    }
  });
  auto next = numbers.begin();
  visit_fields(to, [&]<typename Member>(const StatField& field, Member& member) {
    if constexpr (std::is_same_v<Member, std::uint64_t>) {
      if (field.sum != StatSum::none) member += *next++;
    }
  });
}

}  // namespace lightq::inline v1::protocol
