/// The trace of a message as JSON members. docs/protocol.md, "trace". Layer: protocol.
#pragma once

#include <cstdint>
#include <type_traits>

#include <lightq/protocol/message_trace.hpp>

namespace lightq::inline v1::protocol::detail {

template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, TracedHeader>
void visit_fields(S& header, Visit&& visit) {
  visit.free_text("name", header.name);
  visit.free_text("value", header.value);
}

/// Leaves out members that say nothing in the state.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, GroupTrace>
void visit_fields(S& trace, Visit&& visit) {
  constexpr bool reads = !std::is_const_v<S>;
  const bool waits = trace.state == MessageState::ready || trace.state == MessageState::retrying;
  const bool in_flight = trace.state == MessageState::in_flight;
  visit("group", trace.group);
  visit("state", trace.state);
  if (reads || waits || in_flight) visit("deliveries", trace.deliveries);
  if (reads || trace.due_ms != 0) visit("due_ms", trace.due_ms);
  visit("consumer", trace.consumer);
  if (reads || !trace.user_id.empty()) visit("user_id", trace.user_id);
  if (reads || in_flight) visit("started", trace.started);
  if (reads || trace.moved_by != MovedBy::none) visit("moved_by", trace.moved_by);
  visit("death", trace.death);
  if (reads || !trace.letter_topic.empty()) visit("letter_topic", trace.letter_topic);
  visit("letter_offset", trace.letter_offset);
}

/// Leaves out what is not known of a message that cannot be read.
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, MessageTrace>
void visit_fields(S& trace, Visit&& visit) {
  constexpr bool reads = !std::is_const_v<S>;
  visit("topic", trace.topic);
  visit("offset", trace.offset);
  visit("state", trace.state);
  if (reads || trace.stored_us != 0) {
    visit("stored_us", trace.stored_us);
    if (reads || trace.time_us != 0) visit("time_us", trace.time_us);
    visit("size", trace.size);
    if (reads || !trace.key.empty()) visit.free_text("key", trace.key);
    if (reads || !trace.headers.empty()) visit("headers", trace.headers);
    visit("durable", trace.durable);
    visit("expired", trace.expired);
  }
  visit("groups", trace.groups);
  if (reads || trace.groups_left_out != 0) visit("groups_left_out", trace.groups_left_out);
}

}  // namespace lightq::inline v1::protocol::detail
