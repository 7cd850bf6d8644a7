/// Derives the settings of the broker's parts, with defaults that depend on the machine. Layer: broker.
#include "broker/parts_settings.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace lightq::broker {

namespace {

constexpr std::uint64_t free_floor_bytes = limits::GiB;
constexpr std::uint64_t free_floor_share = 50;  // or 2 % of the disk
constexpr unsigned cores_with_one_reactor = 4;

std::uint64_t default_free_floor(const std::filesystem::path& directory) {
  std::error_code failed;
  const auto space = std::filesystem::space(directory, failed);
  return failed ? free_floor_bytes : std::max(free_floor_bytes, space.capacity / free_floor_share);
}

std::size_t reactors_of(const Config& config) {
  if (config.reactors != 0) return static_cast<std::size_t>(config.reactors);
  const unsigned cores = std::thread::hardware_concurrency();
  return cores <= cores_with_one_reactor ? 1 : cores / 2;
}

}  // namespace

/// Unauthenticated peers may use half of the descriptors, in equal parts for the threads that accept them:
/// the reactors and the control thread.
UnauthenticatedLimits unauthenticated_limits_of(const Config& config) {
  const auto usual =
      config.encrypt ? limits::accepts_per_second_encrypted : limits::accepts_per_second_default;
  const std::uint64_t waiting =
      std::clamp<std::uint64_t>(part_of_descriptors(2 * (reactors_of(config) + 1)),
                                limits::handshakes_max_min, limits::handshakes_max_default);
  return {static_cast<std::size_t>(config.handshakes_max.value_or(waiting)),
          config.accepts_per_second.value_or(usual), config.handshake_time};
}

ControlLimits control_limits_of(const Config& config) {
  return {.request_bytes_max = config.request_bytes_max,
          .requests_waiting_max = config.requests_waiting_max,
          .connections_max = config.control_connections_max,
          .answers_unread_bytes_max = config.answers_unread_bytes_max,
          .answers_unread_bytes_total = config.answers_unread_bytes_total};
}

CreationLimits creation_limits_of(const Config& config) {
  return {.topics_max = config.topics_max,
          .users_max = config.users_max,
          .rights_per_user_max = config.rights_per_user_max,
          .ring_bytes_max = config.ring_bytes_max,
          .memory_bytes_max = config.memory_bytes_max};
}

/// By default endpoints use half of the descriptors, and one user may use seven eighths of that half. With
/// the connections that this function permits, one user gets less than eight tenths of all descriptors.
std::size_t connections_per_user_of(const Config& config) {
  constexpr std::size_t users_that_fill_all = 3;
  return std::min<std::size_t>(config.connections_per_user, part_of_descriptors(users_that_fill_all));
}

/// Returns the prefix of socket names in a directory that brokers may share. It is the same at every start
/// with one data directory, and differs between data directories.
std::string prefix_of(const std::filesystem::path& directory) {
  struct stat found{};
  if (::stat(directory.c_str(), &found) != 0) return {};
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%jx-%jx-", static_cast<std::uintmax_t>(found.st_dev),
                static_cast<std::uintmax_t>(found.st_ino));
  return name.data();
}

Result<void> keep_paths(Config& config) {
  constexpr std::string_view ipc_prefix = "ipc://";
  std::error_code fault;
  if (!config.ipc_dir.empty()) config.ipc_dir = std::filesystem::absolute(config.ipc_dir, fault);
  if (fault) return Error{ErrorCode::io_error, "ipc_dir: cannot find its absolute path", fault.value()};
  const bool is_path = config.control_uri.starts_with(ipc_prefix) && config.control_uri != ipc_prefix;
  if (!is_path) return {};
  const auto path = std::filesystem::absolute(config.control_uri.substr(ipc_prefix.size()), fault);
  if (fault)
    return Error{ErrorCode::io_error, "control: cannot find the absolute path of " + config.control_uri,
                 fault.value()};
  config.control_uri = std::string(ipc_prefix) + path.string();
  return {};
}

HttpSettings http_settings_of(const Config& config, const std::string& uri) {
  HttpSettings settings;
  settings.connections_max = config.http_connections_max;
  settings.requests_per_second = config.requests_per_second;
  settings.names = config.http_hosts;
  for (const std::string& host : {config.advertise_host, config.bind_host}) {
    if (!host.empty()) settings.names.push_back(host);
  }
  constexpr std::size_t scheme_length = 6;  // tcp://
  settings.names.push_back(uri.substr(scheme_length, uri.rfind(':') - scheme_length));
  std::array<char, 256> own{};
  if (gethostname(own.data(), own.size() - 1) == 0) settings.names.emplace_back(own.data());
  return settings;
}

ReactorPool::Settings reactor_settings_of(const Config& config, const DataDirectory& directory) {
  ReactorPool::Settings settings;
  settings.reactors = reactors_of(config);
  if (config.ports) settings.ports = PortBook::Range{config.ports->first, config.ports->last};
  settings.port_rest = config.port_rest;
  settings.session_heartbeat = config.session_heartbeat;
  settings.session_channels_max = static_cast<std::uint32_t>(config.session_channels_max);
  settings.session_reads = {.waiting_max = config.session_reads_max, .bytes_max = config.read_bytes_max};
  settings.shared_bytes_total = config.shared_bytes_total;
  settings.endpoints_max = config.endpoints_max;
  if (!http_uri_of(config)) settings.reactor.history_topics_max = 0;  // only HTTP shows it
  auto& endpoints = settings.reactor.endpoints;
  endpoints.advertise_host = config.advertise_host.empty() ? config.bind_host : config.advertise_host;
  endpoints.ipc_directory = config.ipc_dir.empty() ? directory.ipc() : config.ipc_dir;
  if (!config.ipc_dir.empty()) endpoints.ipc_prefix = prefix_of(directory.path());
  endpoints.message_bytes_max = config.message_bytes_max;
  endpoints.idle_time_max = config.endpoint_idle;
  endpoints.connections_max = config.connections_per_endpoint_max;
  endpoints.endpoints_max = config.endpoints_per_topic_max;
  endpoints.unfinished_bytes_total =
      std::max(config.unfinished_bytes_total / settings.reactors, 4 * config.message_bytes_max);
  endpoints.groups = {.groups_max = config.groups_per_topic_max,
                      .in_flight_messages_max = config.in_flight_messages_max,
                      .outstanding_ranges_max = config.outstanding_ranges_max,
                      .state_bytes_max = config.group_state_bytes_max,
                      .redelivery_ms_max = config.redelivery_ms_max,
                      .processing_timeout_ms = static_cast<std::uint32_t>(config.processing_timeout_ms)};
  endpoints.unauthenticated = unauthenticated_limits_of(config);
  endpoints.ticket_lifetime = config.ticket_lifetime;
  endpoints.open_topics = config.open_topics;
  auto& storage = settings.reactor.storage;
  storage.topics_directory = directory.topics();
  storage.message_bytes_max = config.message_bytes_max;
  storage.disk_free_floor_bytes = config.min_free_bytes.value_or(default_free_floor(directory.path()));
  storage.flush_interval_ms = config.flush_interval.count();
  storage.producers_max = config.producers_max;
  return settings;
}

}  // namespace lightq::broker
