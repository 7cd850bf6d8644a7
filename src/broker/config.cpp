/// The table of settings. Layer: broker.
#include "broker/config.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <lightq/protocol/session_link.hpp>

#include "broker/number_text.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t day_ms = 24 * 60 * 60 * 1000;

Error must_be(const std::string& what) {
  return {ErrorCode::invalid_argument, "must be " + what};
}

Result<std::uint64_t> number_in(const std::string& text, std::uint64_t min, std::uint64_t max) {
  const auto number = parse_number(text);
  if (number && *number >= min && *number <= max) return *number;
  return must_be("a whole number from " + std::to_string(min) + " to " + std::to_string(max));
}

Result<std::uint64_t> bytes_in(const std::string& text, std::uint64_t min, std::uint64_t max) {
  const auto number = parse_bytes(text);
  if (number && *number >= min && *number <= max) return *number;
  return must_be("a number of bytes (such as 1048576 or 1MiB) from " + std::to_string(min) + " to " +
                 std::to_string(max));
}

template <typename To, typename From>
Result<void> assign(To& to, const Result<From>& from) {
  if (!from) return from.error();
  to = To(from.value());
  return {};
}

template <std::chrono::milliseconds Config::* member>
Result<void> set_ms(Config& config, const std::string& text) {
  return assign(config.*member, number_in(text, 0, day_ms));
}

Result<void> set_session_heartbeat(Config& config, const std::string& text) {
  const auto number = number_in(text, 0, session::heartbeat_ms_greatest);
  if (!number || (*number != 0 && *number < session::heartbeat_ms_least))
    return must_be("0, or " + std::to_string(session::heartbeat_ms_least) + " to " +
                   std::to_string(session::heartbeat_ms_greatest));
  config.session_heartbeat = std::chrono::milliseconds(*number);
  return {};
}

Result<void> set_ticket_ms(Config& config, const std::string& text) {
  return assign(config.ticket_lifetime, number_in(text, limits::ticket_ms_min, limits::ticket_ms_max));
}

template <bool Config::* member>
Result<void> set_boolean(Config& config, const std::string& text) {
  if (text != "true" && text != "false") return must_be("true or false");
  config.*member = text == "true";
  return {};
}

template <std::filesystem::path Config::* member>
Result<void> set_path(Config& config, const std::string& text) {
  if (text.empty() || text.find('\0') != std::string::npos) return must_be("a path");
  config.*member = text;
  return {};
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  // A % precedes the name of an interface.
  return inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) == 1;
}

/// Returns true if the host stands for every address of the machine: 0.0.0.0, :: and their other spellings.
bool is_wildcard(const std::string& host) {
  in_addr four{};
  if (inet_aton(host.c_str(), &four) == 1) return four.s_addr == INADDR_ANY;
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six);
}

/// Sets a host. Removes the brackets that an IPv6 address may have.
template <std::string Config::* member>
Result<void> set_host(Config& config, const std::string& text) {
  using namespace std::string_view_literals;
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string host = bracketed ? text.substr(1, text.size() - 2) : text;
  if (host == "*" && !bracketed) host = "0.0.0.0";
  const bool has_colon = host.find(':') != std::string::npos;
  if (host.empty() || host.size() > 255 || host.find_first_of(" \t\r\n/@[]\0"sv) != std::string::npos ||
      ((has_colon || bracketed) && !is_ipv6(host))) {
    return must_be("a host name or an address, without a port");
  }
  config.*member = std::move(host);
  return {};
}

Result<void> set_storage_key_command(Config& config, const std::string& text) {
  if (text.empty() || text.find('\0') != std::string::npos) return must_be("a command");
  config.storage_key_command = text;
  return {};
}

Result<void> set_control_uri(Config& config, const std::string& text) {
  // A URI with a password is refused, too.
  const bool tcp = text.starts_with("tcp://") && text.find('@') == std::string::npos;
  if (!tcp && !text.starts_with("ipc://")) {
    return must_be("tcp://HOST:PORT or ipc://PATH");
  }
  config.control_uri = text;
  return {};
}

Result<void> set_http(Config& config, const std::string& text) {
  if (!text.starts_with("tcp://") && text != "off") return must_be("tcp://HOST:PORT or off");
  // A URI with a password is refused, too.
  if (text.find('@') != std::string::npos) return must_be("tcp://HOST:PORT or off");
  config.http_uri = text == "off" ? std::string() : text;
  return {};
}

Result<void> set_http_hosts(Config& config, const std::string& text) {
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    hosts.push_back(text.substr(at, end - at));
    if (hosts.back().empty() || hosts.back().find_first_of(" :/*") != std::string::npos)
      return must_be("names of hosts, without ports and with commas between them");
    at = end + 1;
  }
  config.http_hosts = std::move(hosts);
  return {};
}

Result<void> set_ports(Config& config, const std::string& text) {
  if (text == "any") {
    config.ports.reset();
    return {};
  }
  const auto dash = text.find('-');
  const auto first = parse_number(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_number(std::string_view(text).substr(dash + 1));
  if (!first || !last || *first < 1 || *first > *last || *last > 65535) {
    return must_be("\"any\", or FIRST-LAST with 1 <= FIRST <= LAST <= 65535");
  }
  config.ports = PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
  return {};
}

Result<void> set_log_level(Config& config, const std::string& text) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 5> words = {{{"debug", LogLevel::debug},
                                                                           {"info", LogLevel::info},
                                                                           {"warning", LogLevel::warn},
                                                                           {"warn", LogLevel::warn},
                                                                           {"error", LogLevel::error}}};
  for (const auto& [word, level] : words) {
    if (text != word) continue;
    config.log_level = level;
    return {};
  }
  return must_be("debug, info, warning or error");
}

Result<void> set_message_bytes_max(Config& config, const std::string& text) {
  return assign(config.message_bytes_max, bytes_in(text, 1, limits::message_bytes_max_max));
}
/// Reads a limit that is 0, for none, or at least `least`: with less, nothing would ever have room.
Result<std::uint64_t> bytes_or_none(const std::string& text, std::uint64_t least) {
  const auto number = parse_bytes(text);
  if (number && (*number == 0 || *number >= least)) return *number;
  return must_be("0, for no limit, or a number of bytes (such as 1048576 or 1MiB) from " +
                 std::to_string(least) + " on");
}
Result<void> set_disk_bytes_max(Config& config, const std::string& text) {
  return assign(config.disk_bytes_max, bytes_or_none(text, limits::segment_bytes_min));
}
Result<void> set_min_free_bytes(Config& config, const std::string& text) {
  return assign(config.min_free_bytes, bytes_in(text, 0, any_number));
}
Result<void> set_log_file_bytes(Config& config, const std::string& text) {
  return assign(config.log_file_bytes, bytes_in(text, 64 * limits::KiB, limits::GiB));
}
Result<void> set_audit_log_bytes(Config& config, const std::string& text) {
  return assign(config.audit_log_bytes, bytes_in(text, 64 * limits::KiB, limits::GiB));
}
Result<void> set_handshakes_max(Config& config, const std::string& text) {
  return assign(config.handshakes_max,
                number_in(text, limits::handshakes_max_min, limits::handshakes_max_max));
}
Result<void> set_accepts_per_second(Config& config, const std::string& text) {
  return assign(config.accepts_per_second, number_in(text, 1, limits::accepts_per_second_max));
}
Result<void> set_handshake_ms(Config& config, const std::string& text) {
  return assign(config.handshake_time, number_in(text, limits::handshake_ms_min, limits::handshake_ms_max));
}
Result<void> set_requests_per_second(Config& config, const std::string& text) {
  return assign(config.requests_per_second, number_in(text, 1, limits::requests_per_second_max));
}
Result<void> set_connections_per_user(Config& config, const std::string& text) {
  return assign(config.connections_per_user, number_in(text, 1, limits::connections_per_user_max));
}
/// Sets a limit that may be lower than its default, `most`.
template <std::uint64_t Config::* member, std::uint64_t most, std::uint64_t least = 1>
Result<void> set_limit(Config& config, const std::string& text) {
  return assign(config.*member, number_in(text, least, most));
}
template <std::uint64_t Config::* member, std::uint64_t most, std::uint64_t least = 1>
Result<void> set_byte_limit(Config& config, const std::string& text) {
  return assign(config.*member, bytes_in(text, least, most));
}
Result<void> set_memory_bytes_max(Config& config, const std::string& text) {
  return assign(config.memory_bytes_max, bytes_or_none(text, limits::ring_bytes_min));
}
Result<void> set_reactors(Config& config, const std::string& text) {
  return assign(config.reactors, number_in(text, 0, 64));
}

using enum SettingType;
constexpr Setting table[] = {
    {"data_dir", text, "DIR",
     "directory of the topics and the catalogue (/var/lib/lightq as root, else $XDG_STATE_HOME/lightq or "
     "~/.local/state/lightq)",
     set_path<&Config::data_dir>},
    {"control", text, "URI",
     "control socket: tcp://HOST:PORT, port 0 for a free one, or ipc://PATH "
     "(tcp://127.0.0.1:5000)",
     set_control_uri},
    {"http", text, "URI",
     "HTTP for metrics and health checks: tcp://HOST:PORT, or off (tcp://127.0.0.1:5001; a free port if "
     "control "
     "takes one)",
     set_http},
    {"http_hosts", text, "NAMES",
     "further host names by which HTTP clients may address the broker, with commas between them",
     set_http_hosts},
    {"http_connections_max", number, "N",
     "connections over HTTP, 4 to 1024; beyond this one that is idle is closed (1024)",
     set_limit<&Config::http_connections_max, limits::http_connections_max, 4>},
    {"metrics_topics_max", number, "N",
     "topics with metrics of their own, 0 to 100000; the others are summed (1000)",
     set_limit<&Config::metrics_topics_max, limits::topics_max, 0>},
    {"bind", text, "HOST",
     "host on which data endpoints listen; 0.0.0.0 and :: need advertise too (127.0.0.1)",
     set_host<&Config::bind_host>},
    {"advertise", text, "HOST", "host to which the broker tells clients to connect (that of bind)",
     set_host<&Config::advertise_host>},
    {"ports", text, "A-B", "ports for data endpoints, or any (any)", set_ports},
    {"log_level", text, "LEVEL", "debug, info, warning or error (info)", set_log_level},
    {"log_file", text, "FILE", "also write the log to this file, and rotate it", set_path<&Config::log_file>},
    {"log_file_bytes", bytes, "BYTES", "rotate the log file at this size, 64KiB to 1GiB; 5 are kept (10MiB)",
     set_log_file_bytes},
    {"audit_log", text, "FILE", "write a line of JSON for each control request to this file, and rotate it",
     set_path<&Config::audit_log>},
    {"audit_log_bytes", bytes, "BYTES",
     "rotate the audit log at this size, 64KiB to 1GiB; 5 are kept (10MiB)", set_audit_log_bytes},
    {"message_bytes_max", bytes, "BYTES", "largest message, up to 1GiB (16MiB)", set_message_bytes_max},
    {"min_free_bytes", bytes, "BYTES",
     "appends wait while the disk has less free space than this (the larger of 1GiB and 2 % of the disk)",
     set_min_free_bytes},
    {"disk_bytes_max", bytes, "BYTES",
     "appends wait while the files of all topics would exceed this together; 0: no limit (0)",
     set_disk_bytes_max},
    {"flush_interval_ms", number, "MS",
     "sync durable topics to disk at least this often; 0: only at a clean stop (100)",
     set_ms<&Config::flush_interval>},
    {"endpoint_idle_ms", number, "MS", "close an endpoint that has had no connection for this time (30000)",
     set_ms<&Config::endpoint_idle>},
    {"port_quarantine_ms", number, "MS",
     "quarantine a closed endpoint's port, so that no other endpoint gets it for this time (600000)",
     set_ms<&Config::port_rest>},
    {"session_heartbeat_ms", number, "MS",
     "end a session if nothing was received from its client for twice this time; 0: never (10000)",
     set_session_heartbeat},
    {"ticket_ms", number, "MS",
     "how long a ticket from a plain join is valid for connecting, 100 to a year (86400000, a day)",
     set_ticket_ms},
    {"open_topics", boolean, "",
     "plain clients of every topic need no ticket; on loopback only, for clients of 2015 (false)",
     set_boolean<&Config::open_topics>},
    {"encrypt", boolean, "",
     "encrypt the control socket and data endpoints, and refuse clients that do not (false)",
     set_boolean<&Config::encrypt>},
    {"allowed_client_keys", text, "FILE",
     "with encrypt: only clients with a public key in this file can connect to the control socket",
     set_path<&Config::allowed_client_keys>},
    {"insecure", boolean, "",
     "permit addresses other than loopback in control, bind and advertise without encrypt (false)",
     set_boolean<&Config::insecure>},
    {"core_dumps", boolean, "",
     "permit core dumps and tracing of the broker, which expose all secrets in its memory (false)",
     set_boolean<&Config::core_dumps>},
    {"tls_certificate", text, "FILE",
     "with encrypt: PEM certificate of sessions over TCP (one that the broker creates itself)",
     set_path<&Config::tls_certificate>},
    {"tls_key", text, "FILE", "PEM private key of tls_certificate; only its owner may read the file",
     set_path<&Config::tls_key>},
    {"storage_key_file", text, "FILE",
     "keys of topics with encrypt_at_rest, each a line of 64 hexadecimal digits; new files use the first; "
     "only the owner may read the file",
     set_path<&Config::storage_key_file>},
    {"storage_key_command", text, "COMMAND",
     "in place of storage_key_file: a command that /bin/sh runs at the start and that prints the keys",
     set_storage_key_command},
    {"stop_deadline_ms", number, "MS",
     "a clean stop waits at most this long until delivered messages are sent; writing and syncing all others "
     "takes additional time (5000)",
     set_ms<&Config::stop_deadline>},
    {"handshakes_max", number, "N",
     "unauthenticated connections of each thread, 16 to 65536; beyond this the oldest is evicted (4096)",
     set_handshakes_max},
    {"accepts_per_second", number, "N",
     "new connections that each thread accepts a second after a burst of 512, 1 to 1000000; others wait "
     "(4000; 1000 with encrypt)",
     set_accepts_per_second},
    {"handshake_ms", number, "MS",
     "close a connection that is still unauthenticated after this time, 100 to 60000 (5000)",
     set_handshake_ms},
    {"requests_per_second", number, "N",
     "requests a second from one source address to the control socket, 1 to 1000000 (10000)",
     set_requests_per_second},
    {"connections_per_user", number, "N", "open data connections of one user, 1 to 1000000 (4000)",
     set_connections_per_user},
    {"topics_max", number, "N", "topics of the broker, 1 to 100000 (100000)",
     set_limit<&Config::topics_max, limits::topics_max>},
    {"endpoints_max", number, "N",
     "endpoints of all topics together, 0 to 1000000; 0: half of the file descriptors (0)",
     set_limit<&Config::endpoints_max, limits::endpoints_max, 0>},
    {"endpoints_per_topic_max", number, "N", "endpoints of a topic, 1 to 4096 (4096)",
     set_limit<&Config::endpoints_per_topic_max, limits::endpoints_per_topic_max>},
    {"connections_per_endpoint_max", number, "N",
     "connections to an endpoint, and sessions of a thread, 1 to 10000; further ones are closed immediately "
     "(10000)",
     set_limit<&Config::connections_per_endpoint_max, limits::connections_per_endpoint_max>},
    {"groups_per_topic_max", number, "N", "consumer groups of a topic, 1 to 1024 (1024)",
     set_limit<&Config::groups_per_topic_max, limits::groups_per_topic_max>},
    {"session_channels_max", number, "N", "open producers and consumers of a session, 1 to 4096 (4096)",
     set_limit<&Config::session_channels_max, limits::session_channels_max>},
    {"session_reads_max", number, "N", "reads of one session that may wait for an answer, 1 to 16 (16)",
     set_limit<&Config::session_reads_max, limits::session_reads_max>},
    {"read_bytes_max", bytes, "BYTES", "size of the messages in the answer to one read, 1 to 64MiB (64MiB)",
     set_byte_limit<&Config::read_bytes_max, limits::read_bytes_max>},
    {"shared_bytes_total", bytes, "BYTES",
     "shared memory of all sessions of this machine's clients, up to 64GiB; 0: none (16MiB)",
     set_byte_limit<&Config::shared_bytes_total, limits::shared_bytes_total_max, 0>},
    {"in_flight_messages_max", number, "N",
     "messages in flight to one consumer, 1 to 2147483648 (2147483648)",
     set_limit<&Config::in_flight_messages_max, limits::in_flight_messages_max>},
    {"outstanding_ranges_max", number, "N",
     "ranges of offsets that the messages in flight to one consumer form, 2 to 16384 (16384)",
     set_limit<&Config::outstanding_ranges_max, limits::outstanding_ranges_max, 2>},
    {"group_state_bytes_max", bytes, "BYTES",
     "memory of a group for messages that wait for redelivery, 1 to 64MiB (16MiB)",
     set_byte_limit<&Config::group_state_bytes_max, limits::group_state_bytes_max>},
    {"redelivery_ms_max", number, "MS",
     "the longest delay of a redelivery that a consumer can set with a reject or an extend (43200000)",
     set_limit<&Config::redelivery_ms_max, std::numeric_limits<std::uint32_t>::max()>},
    {"processing_timeout_ms", number, "MS",
     "the time to process a message, for consumers with leases; 0: no limit (1800000)",
     set_limit<&Config::processing_timeout_ms, std::numeric_limits<std::uint32_t>::max(), 0>},
    {"producers_max", number, "N", "producers of sessions that a topic remembers, 1 to 10000 (10000)",
     set_limit<&Config::producers_max, limits::producers_max>},
    {"client_keys_per_topic_max", number, "N",
     "with encrypt: registered keys of the plain clients of a topic, 2 to 16384 (16384)",
     set_limit<&Config::client_keys_per_topic_max, limits::client_keys_per_topic_max, 2>},
    {"users_max", number, "N", "users of the broker, 1 to 10000 (10000)",
     set_limit<&Config::users_max, limits::users_max>},
    {"rights_per_user_max", number, "N", "patterns on which a user has rights, 1 to 256 (256)",
     set_limit<&Config::rights_per_user_max, limits::rights_per_user_max>},
    {"credentials_remembered_max", number, "N",
     "keyed hashes of correct passwords kept in memory, 2 to 65536; most credentials take two (65536)",
     set_limit<&Config::credentials_remembered_max, limits::credentials_remembered_max,
               limits::credentials_remembered_min>},
    {"request_bytes_max", bytes, "BYTES", "size of a request to the control socket, 4KiB to 1MiB (64KiB)",
     set_byte_limit<&Config::request_bytes_max, limits::request_bytes_hard_max, limits::request_bytes_min>},
    {"requests_waiting_max", number, "N",
     "requests that wait for their replies, 1 to 1024; at most a quarter from one source address (1024)",
     set_limit<&Config::requests_waiting_max, limits::requests_waiting_max>},
    {"control_connections_max", number, "N",
     "connections to the control socket, 1 to 10000; beyond this one of the user with most is evicted "
     "(10000)",
     set_limit<&Config::control_connections_max, limits::control_connections_max>},
    {"answers_unread_bytes_max", bytes, "BYTES",
     "unread replies of a client above which its connection is closed, 64KiB to 64MiB (64MiB)",
     set_byte_limit<&Config::answers_unread_bytes_max, limits::answers_unread_bytes_max,
                    limits::answers_unread_bytes_pause>},
    {"answers_unread_bytes_total", bytes, "BYTES",
     "unread replies of all clients, at most a quarter for one source address; from 256KiB (256MiB)",
     set_byte_limit<&Config::answers_unread_bytes_total, any_number, limits::answers_unread_bytes_total_min>},
    {"unfinished_bytes_total", bytes, "BYTES",
     "memory of partly transferred large messages, from 1MiB (1GiB)",
     set_byte_limit<&Config::unfinished_bytes_total, any_number, limits::unfinished_bytes_total_min>},
    {"ring_bytes_max", bytes, "BYTES", "largest ring_bytes of a topic, 64KiB to 1TiB (1TiB)",
     set_byte_limit<&Config::ring_bytes_max, limits::ring_bytes_max, limits::ring_bytes_min>},
    {"memory_bytes_max", bytes, "BYTES", "memory of the rings of all topics together; 0: no limit (0)",
     set_memory_bytes_max},
    {"decrypted_bytes_total", bytes, "BYTES",
     "memory of decrypted batches of all topics with encrypt_at_rest; 0: one batch of each topic (64MiB)",
     set_byte_limit<&Config::decrypted_bytes_total, any_number, 0>},
    {"reactors", number, "N", "threads that move messages, up to 64; 0: by the number of cores (0)",
     set_reactors},
    {"ipc_dir", text, "DIR", "directory of the sockets of ipc endpoints (DATA_DIR/ipc)",
     set_path<&Config::ipc_dir>},
    {"admin_password_file", text, "FILE", "file with the administrator's password in its first line",
     set_path<&Config::admin_password_file>},
};

}  // namespace

std::span<const Setting> settings() {
  return table;
}

std::optional<std::string> http_uri_of(const Config& config) {
  if (config.http_uri) return config.http_uri->empty() ? std::nullopt : config.http_uri;
  const bool any_port = config.control_uri.ends_with(":0") || config.control_uri.ends_with(":*");
  return any_port ? "tcp://127.0.0.1:0" : "tcp://127.0.0.1:5001";
}

Result<void> check_tls(const Config& config) {
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "tls_certificate and tls_key: one is missing; give both or none"};
  }
  if (config.tls_certificate.empty() || config.encrypt) return {};
  return Error{ErrorCode::invalid_argument, "tls_certificate: needs encrypt"};
}

Result<void> check_storage_keys(const Config& config) {
  if (config.storage_key_file.empty() || config.storage_key_command.empty()) return {};
  return Error{ErrorCode::invalid_argument,
               "storage_key_file and storage_key_command: give only one of them"};
}

Result<void> check_hosts(const Config& config) {
  if (!config.advertise_host.empty() && is_wildcard(config.advertise_host)) {
    return Error{ErrorCode::invalid_argument, "advertise: clients cannot connect to " +
                                                  config.advertise_host +
                                                  "; it must be a host that they can reach"};
  }
  if (config.advertise_host.empty() && is_wildcard(config.bind_host)) {
    return Error{ErrorCode::invalid_argument, "bind: " + config.bind_host +
                                                  " means every address of this machine, so clients need one "
                                                  "that they can reach: name it with --advertise HOST"};
  }
  return {};
}

}  // namespace lightq::broker
