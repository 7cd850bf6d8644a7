/// Counts the refusals that each limit has caused. Layer: admission. docs/protocol.md, "stats".
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace lightq::broker {

/// The limits that have a counter, with their names in limits.hpp and in the settings.
enum class Limit {
  accepts_per_second,
  answers_unread_bytes_max,
  answers_unread_bytes_total,
  client_keys_per_topic_max,
  connections_per_endpoint_max,
  connections_per_user,
  control_connections_max,
  delayed_messages_max,
  descriptors_reserved,
  disk_bytes_max,
  endpoints_max,
  endpoints_per_topic_max,
  group_members_total,
  group_ranges_total,
  group_state_bytes_max,
  groups_per_topic_max,
  handshake_ms,
  http_bodies_bytes_total,
  http_body_bytes_max,
  http_connections_max,
  http_connections_per_source_max,
  http_head_bytes_max,
  http_head_ms,
  http_responses_bytes_total,
  http_scrapes_max,
  http_streams_max,
  http_viewers_max,
  in_flight_messages_max,
  json_depth_max,
  logins_waiting_max,
  logins_waiting_per_source_max,
  logins_waiting_slowed_max,
  mailbox_entries_max,
  members_per_group_max,
  memory_bytes_max,
  message_bytes_max,
  min_free_bytes,
  outstanding_ranges_max,
  passwords_waiting_per_source_max,
  ports,
  producers_max,
  request_bytes_hard_max,
  request_bytes_max,
  requests_waiting_max,
  requests_waiting_per_source_max,
  requests_waiting_per_user_max,
  rights_per_user_max,
  ring_bytes_max,
  session_channels_max,
  session_reads_max,
  shared_bytes_total,
  topics_max,
  unfinished_bytes_total,
  users_max,
};

/// The limits' names, in the order of Limit.
inline constexpr std::string_view limit_names[] = {"accepts_per_second",
                                                   "answers_unread_bytes_max",
                                                   "answers_unread_bytes_total",
                                                   "client_keys_per_topic_max",
                                                   "connections_per_endpoint_max",
                                                   "connections_per_user",
                                                   "control_connections_max",
                                                   "delayed_messages_max",
                                                   "descriptors_reserved",
                                                   "disk_bytes_max",
                                                   "endpoints_max",
                                                   "endpoints_per_topic_max",
                                                   "group_members_total",
                                                   "group_ranges_total",
                                                   "group_state_bytes_max",
                                                   "groups_per_topic_max",
                                                   "handshake_ms",
                                                   "http_bodies_bytes_total",
                                                   "http_body_bytes_max",
                                                   "http_connections_max",
                                                   "http_connections_per_source_max",
                                                   "http_head_bytes_max",
                                                   "http_head_ms",
                                                   "http_responses_bytes_total",
                                                   "http_scrapes_max",
                                                   "http_streams_max",
                                                   "http_viewers_max",
                                                   "in_flight_messages_max",
                                                   "json_depth_max",
                                                   "logins_waiting_max",
                                                   "logins_waiting_per_source_max",
                                                   "logins_waiting_slowed_max",
                                                   "mailbox_entries_max",
                                                   "members_per_group_max",
                                                   "memory_bytes_max",
                                                   "message_bytes_max",
                                                   "min_free_bytes",
                                                   "outstanding_ranges_max",
                                                   "passwords_waiting_per_source_max",
                                                   "ports",
                                                   "producers_max",
                                                   "request_bytes_hard_max",
                                                   "request_bytes_max",
                                                   "requests_waiting_max",
                                                   "requests_waiting_per_source_max",
                                                   "requests_waiting_per_user_max",
                                                   "rights_per_user_max",
                                                   "ring_bytes_max",
                                                   "session_channels_max",
                                                   "session_reads_max",
                                                   "shared_bytes_total",
                                                   "topics_max",
                                                   "unfinished_bytes_total",
                                                   "users_max"};
static_assert(std::size(limit_names) == static_cast<std::size_t>(Limit::users_max) + 1);

/// The refusal counters of one broker. The code that refuses counts; a message that is accepted costs nothing
/// here. Thread: any.
class LimitCounts {
 public:
  /// Adds `refused` refusals to the limit's counter.
  void count(Limit limit, std::uint64_t refused = 1) {
    counts_[static_cast<std::size_t>(limit)].fetch_add(refused, std::memory_order_relaxed);
  }
  /// Returns the number of refusals that the limit has caused.
  [[nodiscard]] std::uint64_t of(Limit limit) const {
    return counts_[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed);
  }
  /// Returns the counters of all limits by name, zeros included.
  [[nodiscard]] std::map<std::string, std::uint64_t> all() const {
    std::map<std::string, std::uint64_t> all;
    for (std::size_t i = 0; i < counts_.size(); ++i) all.emplace(limit_names[i], of(static_cast<Limit>(i)));
    return all;
  }

 private:
  std::array<std::atomic<std::uint64_t>, std::size(limit_names)> counts_{};
};

/// Counts, unless `counts` is null. It is null in tests and before the broker is assembled.
inline void count(LimitCounts* counts, Limit limit, std::uint64_t refused = 1) {
  if (counts != nullptr) counts->count(limit, refused);
}

}  // namespace lightq::broker
