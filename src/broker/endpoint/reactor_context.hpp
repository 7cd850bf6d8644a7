/// What all topics of one reactor share. Layer: endpoint.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "broker/delivery/group_limits.hpp"
#include "broker/delivery/range_budget.hpp"
#include "broker/endpoint/accept_budget.hpp"
#include "broker/endpoint/access_table.hpp"
#include "broker/endpoint/buffer_budget.hpp"
#include "broker/endpoint/call_clock.hpp"
#include "broker/endpoint/disk_thread.hpp"
#include "broker/endpoint/endpoint_record.hpp"
#include "broker/endpoint/endpoint_shares.hpp"
#include "broker/endpoint/event_loop.hpp"
#include "broker/endpoint/handshake_queue.hpp"
#include "broker/endpoint/limit_counts.hpp"
#include "broker/endpoint/log_sink.hpp"
#include "broker/endpoint/port_book.hpp"
#include "broker/endpoint/stranger_limits.hpp"
#include "broker/endpoint/ticket_key.hpp"
#include "broker/endpoint/turn_queue.hpp"

namespace lightq::broker {

class ClientKeys;
class ConnectionQuota;
class CurveKeyPair;

/// How endpoints behave; the same for all topics.
struct EndpointSettings {
  std::string advertise_host;           ///< put into `bind_uri`
  std::filesystem::path ipc_directory;  ///< of ipc endpoints' socket files
  std::string ipc_prefix = {};          ///< of their names, where other brokers may have theirs
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::chrono::milliseconds idle_time_max{
      30'000};  ///< an endpoint that nobody is connected to closes after it
  std::chrono::milliseconds ticket_lifetime{limits::ticket_ms_default};  ///< of plain joins
  std::uint32_t admin_generation = 0;       ///< of the administrator's password: see TicketHolder
  bool open_topics = false;                 ///< no plain endpoint asks for a ticket
  const CurveKeyPair* curve_key = nullptr;  ///< the broker's; null: nothing is encrypted
  const ClientKeys* client_keys = nullptr;  ///< that were registered; with curve_key, and outlive the topics
  LimitCounts* limits_reached = nullptr;    ///< null: not counted. Outlives the topics
  ConnectionQuota* user_connections = nullptr;  ///< of each user; null: not counted. Outlives the topics
  EndpointShares* endpoint_shares = nullptr;    ///< of all endpoints; null: not counted. Outlives the topics
  StrangerLimits strangers;
  /// Of an endpoint, and sessions of the reactor: those that have said who they are.
  std::size_t connections_max = limits::connections_per_endpoint_max;
  std::size_t endpoints_max = limits::endpoints_per_topic_max;  ///< of a topic
  /// Of a reactor: large messages that have not wholly come, or wholly left.
  std::size_t unfinished_bytes_total = limits::unfinished_bytes_total_default;
  GroupLimits groups;  ///< of a topic
};

/// What a reactor's topics tell on their own, on the reactor's thread.
struct EndpointEvents {
  std::function<void(const EndpointRecord&)> closed;
  std::function<void(const EndpointRecord&)> changed;
};

/// Lives on the reactor; its members on the reactor's thread, but for those that say "any thread".
struct ReactorContext {
  EventLoop& loop;
  DiskThread& disk;          ///< any thread
  PortBook& ports;           ///< any thread
  LogSink& sink;             ///< any thread
  const TicketKey& tickets;  ///< any thread
  const EndpointSettings& settings;
  const WallClock& now;
  std::atomic<std::uint64_t>& next_endpoint_id;  ///< any thread
  EndpointEvents events;
  std::vector<std::byte> scratch =
      std::vector<std::byte>(256 * limits::KiB);   ///< input of whichever connection reads
  BatchBuilder batch;                              ///< being packed by whichever inlet reads
  RangeBudget ranges{settings.groups.ranges_max};  ///< of all groups of its topics
  BufferBudget buffers{settings.unfinished_bytes_total, settings.limits_reached, &sink};
  HandshakeQueue handshakes{settings.strangers.handshakes_max};
  AcceptBudget accepts{settings.strangers.accepts_per_second, settings.strangers.accepts_at_once(),
                       settings.limits_reached};
  std::uint64_t refused_connections = 0;  ///< for want of a good ticket, at all topics and ever
  AccessTable access = {};
  /// Closes one that nobody was ever connected to, for want of a place (EndpointShares).
  std::function<void(const EndpointShares::Place& lost)> make_room = {};
  TurnQueue turns{loop};
  CallClock call_clock{loop, now};  ///< of what is stored: in the order of storing, but for a clock set back
};

}  // namespace lightq::broker
