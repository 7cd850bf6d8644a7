/// The objects that all topics of one reactor share. Layer: topic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "access/access_table.hpp"
#include "access/ticket_key.hpp"
#include "admission/accept_budget.hpp"
#include "admission/buffer_budget.hpp"
#include "admission/endpoint_shares.hpp"
#include "admission/limit_counts.hpp"
#include "admission/range_budget.hpp"
#include "admission/unauthenticated_limits.hpp"
#include "base/log_sink.hpp"
#include "delivery/state/group_limits.hpp"
#include "metrics/latencies.hpp"
#include "net/call_clock.hpp"
#include "net/disk_thread.hpp"
#include "net/event_loop.hpp"
#include "net/handshake_queue.hpp"
#include "net/timers/wall_timers.hpp"
#include "net/turn_queue.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/port_book.hpp"

namespace lightq::broker {

class ClientKeys;
class ConnectionQuota;
class CurveKeys;

/// The settings of endpoints, the same for all topics. Lifetime: objects behind pointers outlive the topics.
struct EndpointSettings {
  std::string advertise_host;           ///< put into `bind_uri`
  std::filesystem::path ipc_directory;  ///< the directory of ipc endpoints' socket files
  std::string ipc_prefix = {};          ///< of the files' names, in a directory that other brokers may use
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::chrono::milliseconds idle_time_max{30'000};  ///< an endpoint without connections closes after it
  std::chrono::milliseconds ticket_lifetime{limits::ticket_ms_default};  ///< of plain joins' tickets
  std::uint32_t admin_generation = 0;           ///< of the administrator's password: see TicketHolder
  bool open_topics = false;                     ///< no plain endpoint asks for a ticket
  const CurveKeys* curve_key = nullptr;         ///< the broker's keys; null: nothing is encrypted
  const ClientKeys* client_keys = nullptr;      ///< the registered client keys; set together with curve_key
  LimitCounts* limits_reached = nullptr;        ///< null: refusals are not counted
  ConnectionQuota* user_connections = nullptr;  ///< the connections of each user; null: not limited
  EndpointShares* endpoint_shares = nullptr;    ///< the endpoints of all reactors; null: not limited
  UnauthenticatedLimits unauthenticated;
  /// The most authenticated connections of one endpoint, and the most authenticated sessions of a reactor.
  std::size_t connections_max = limits::connections_per_endpoint_max;
  std::size_t endpoints_max = limits::endpoints_per_topic_max;  ///< the most endpoints of one topic
  /// The most bytes, per reactor, of large messages that have not arrived or left completely.
  std::size_t unfinished_bytes_total = limits::unfinished_bytes_total_default;
  GroupLimits groups;  ///< of one topic
};

/// The callbacks by which topics report changes of their endpoints. Thread: the reactor's.
struct EndpointEvents {
  std::function<void(const EndpointRecord&)> closed;   ///< an endpoint has closed
  std::function<void(const EndpointRecord&)> changed;  ///< an endpoint has another port than before the start
};

/// The objects that all topics of a reactor share. Thread: the reactor's, except members marked "any thread".
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
      std::vector<std::byte>(256 * limits::KiB);   ///< the input buffer of the connection that reads
  BatchBuilder batch;                              ///< packs the messages of the inlet that reads
  RangeBudget ranges{settings.groups.ranges_max};  ///< the ranges of all groups of the reactor's topics
  BufferBudget buffers{settings.unfinished_bytes_total, settings.limits_reached, &sink};
  HandshakeQueue handshakes{settings.unauthenticated.handshakes_max};
  AcceptBudget accepts{settings.unauthenticated.accepts_per_second,
                       settings.unauthenticated.accepts_at_once(), settings.limits_reached};
  std::uint64_t refused_connections = 0;  ///< connections of all topics refused so far without a good ticket
  AccessTable access = {};
  /// Closes an endpoint that was never used, to make room for another (EndpointShares).
  std::function<void(const EndpointShares::Place& lost)> make_room = {};
  TurnQueue turns{loop};
  CallClock call_clock{loop, now};  ///< the times of stored messages, ascending unless the clock is set back
  WallTimers wall_timers{loop, now};  ///< work that is due at a time of the wall clock
  /// The clock by which topics measure the time between two saves, so that tests can set it.
  std::function<EventLoop::Clock::time_point()> steady_now = EventLoop::Clock::now;
  Latencies latencies = {};  ///< of all topics; any thread reads them
};

}  // namespace lightq::broker
