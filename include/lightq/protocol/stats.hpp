/// The statistics of topics and of the broker, as the control protocol has them. docs/protocol.md, "stats",
/// defines each field. Layer: protocol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <lightq/protocol/delayed_control.hpp>
#include <lightq/protocol/group_control.hpp>
#include <lightq/protocol/topic_settings.hpp>

namespace lightq::inline v1::protocol {

/// Statistics of one plain subscriber (one `sub` join).
struct SubscriberStats {
  std::string bind_uri;
  bool connected = false;
  std::uint64_t next_offset = 0;
  std::uint64_t lag = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;     ///< messages that the log dropped before they could be sent
  std::uint64_t expired = 0;  ///< messages that were not sent because their time to live was over
  std::string blocked_by;     ///< why the subscriber waits, as in GroupStats
};

/// Statistics of a topic. docs/protocol.md, "stats", defines each field. Counting starts at the broker's
/// start (`since_ms`).
struct TopicStats {
  std::string topic;
  BrokerType topic_type = BrokerType::queue;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t publishers_count = 0;
  std::uint64_t subscribers_count = 0;
  std::uint64_t queue_size = 0;
  std::uint64_t total_bytes_written = 0;
  std::uint64_t total_bytes_read = 0;
  // Fields added after the 2015 protocol.
  std::uint64_t deliveries = 0;           ///< all copies to all consumers, redeliveries included
  std::uint64_t dropped = 0;              ///< by `drop_oldest`, or by `direct` without a ready consumer
  std::uint64_t rejected = 0;             ///< by `reject`
  std::uint64_t refused = 0;              ///< too large, or with several parts
  std::uint64_t unclaimed_dropped = 0;    ///< overwritten while no group existed
  std::uint64_t corrupt = 0;              ///< lost to damage on the disk
  std::uint64_t refused_connections = 0;  ///< plain clients without a ticket that admits them
  std::uint64_t duplicates = 0;           ///< messages that a producer sent again although they were stored
  std::uint64_t messages_out = 0;         ///< as `deliveries`, but never decreases
  std::uint64_t blocked_ms = 0;           ///< time in which a producer waited for space
  std::uint64_t oldest_ms = 0;            ///< age of the oldest stored message; 0: there is none
  std::uint64_t first_offset = 0;
  std::uint64_t next_offset = 0;
  std::uint64_t durable_offset = 0;
  std::uint64_t log_bytes = 0;         ///< stored now, in memory or as whole files on disk
  std::uint64_t carried_messages = 0;  ///< copies of waiting messages, for when the log drops them
  std::uint64_t carried_bytes = 0;     ///< the bytes of these copies
  std::string blocked_by;  ///< why producers wait: empty, `group:NAME`, `disk`, `delayed`, `nobody connected`
  bool paused = false;
  std::uint64_t since_ms = 0;   ///< milliseconds since 1970 when counting began
  bool open = false;            ///< accepts plain clients without a ticket, by its settings or the broker's
  bool open_by_broker = false;  ///< `open`, because the broker is configured to open every topic
  TopicSettings settings;
  std::vector<GroupStats> groups;
  std::vector<SubscriberStats> subscribers;
  std::optional<DelayedStats> delayed = {};  ///< of its schedule; nothing: it has never had a delayed message
};

/// A page of the statistics of all topics.
struct StatsAllReply {
  std::vector<TopicStats> topics;  ///< ordered by name
  std::string continue_after;      ///< the value of `after` for the next page; empty: this was the last page
};

/// The statistics of a broker.
struct BrokerStats {
  std::string version;
  std::uint64_t pid = 0;
  std::uint64_t since_ms = 0;
  std::uint64_t uptime_ms = 0;
  std::uint64_t topics = 0;
  std::uint64_t connections = 0;  ///< producers and consumers that completed the handshake
  std::uint64_t messages_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t total_bytes_written = 0;
  std::uint64_t total_bytes_read = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t refused_connections = 0;  ///< to data endpoints, without a ticket that admits them
  std::uint64_t evicted_connections = 0;  ///< unauthenticated connections closed to make room for others
  std::uint64_t auth_failures = 0;
  std::uint64_t throttled_requests = 0;                 ///< refused because their source sent too many
  std::map<std::string, std::uint64_t> limits_reached;  ///< refusals of each limit, by its name
  std::string data_dir;
  bool encrypted = false;  ///< refuses unencrypted connections
  bool insecure = false;   ///< reachable from other machines without encryption
};

}  // namespace lightq::inline v1::protocol
