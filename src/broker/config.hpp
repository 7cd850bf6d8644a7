/// The broker's configuration: one table of settings for the file, the environment and the command line.
/// Layer: broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>

#include "base/log_sink.hpp"
#include "control/templates/topic_templates.hpp"

namespace lightq::broker {

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// The values of all settings. The rows of `settings()` describe each field's meaning and range.
struct Config {
  std::filesystem::path data_dir;
  std::string control_uri = "tcp://127.0.0.1:5000";
  std::optional<std::string> http_uri;  ///< empty: off; not set: see http_uri_of
  std::vector<std::string> http_hosts;  ///< further names under which clients may address it
  std::uint64_t http_connections_max = limits::http_connections_max;
  std::uint64_t metrics_topics_max = limits::metrics_topics_default;
  std::string bind_host = "127.0.0.1";
  std::string advertise_host;      ///< empty: bind_host
  std::optional<PortRange> ports;  ///< not set: any free port
  LogLevel log_level = LogLevel::info;
  std::filesystem::path log_file;  ///< empty: standard error only
  std::uint64_t log_file_bytes = 10 * limits::MiB;
  std::filesystem::path audit_log;  ///< empty: none
  std::uint64_t audit_log_bytes = 10 * limits::MiB;
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::uint64_t disk_bytes_max = 0;             ///< for all topics' files; 0: no limit but the disk
  std::optional<std::uint64_t> min_free_bytes;  ///< not set: the larger of 1 GiB and 2 % of the disk
  std::chrono::milliseconds flush_interval{100};
  std::chrono::milliseconds endpoint_idle{30'000};
  std::chrono::milliseconds port_rest{600'000};
  std::chrono::milliseconds session_heartbeat{10'000};  ///< 0: a silent client is never considered gone
  std::chrono::milliseconds ticket_lifetime{limits::ticket_ms_default};  ///< for plain joins
  bool open_topics = false;                   ///< plain clients need no ticket; on loopback only
  std::filesystem::path allowed_client_keys;  ///< empty: the control socket accepts every key
  bool encrypt = false;                       ///< encrypts everything except sessions over Unix sockets
  bool insecure = false;                      ///< permits access from other machines without encryption
  bool core_dumps = false;                    ///< permits core dumps, which contain secrets
  std::filesystem::path tls_certificate;      ///< empty: DATA_DIR/tls.crt, made by the broker
  std::filesystem::path tls_key;              ///< empty: DATA_DIR/tls.key
  std::filesystem::path storage_key_file;     ///< both empty: no encryption at rest
  std::string storage_key_command;
  std::chrono::milliseconds stop_deadline{5'000};
  std::optional<std::uint64_t> handshakes_max;      ///< for each thread; not set: from the descriptor limit
  std::optional<std::uint64_t> accepts_per_second;  ///< for each thread; not set: depends on `encrypt`
  std::chrono::milliseconds handshake_time{limits::handshake_ms_default};     ///< time to authenticate
  std::uint64_t requests_per_second = limits::requests_per_second_default;    ///< for each source
  std::uint64_t connections_per_user = limits::connections_per_user_default;  ///< to data endpoints
  std::uint64_t topics_max = limits::topics_max;
  std::uint64_t endpoints_max = 0;  ///< for all topics; 0: half of the descriptors
  std::uint64_t endpoints_per_topic_max = limits::endpoints_per_topic_max;
  std::uint64_t connections_per_endpoint_max = limits::connections_per_endpoint_max;
  std::uint64_t groups_per_topic_max = limits::groups_per_topic_max;
  std::uint64_t session_channels_max = limits::session_channels_max;
  std::uint64_t session_reads_max = limits::session_reads_max;
  std::uint64_t read_bytes_max = limits::read_bytes_max;
  std::uint64_t shared_bytes_total = limits::shared_bytes_total_default;  ///< shared with sessions' clients
  std::uint64_t in_flight_messages_max = limits::in_flight_messages_max;
  std::uint64_t outstanding_ranges_max = limits::outstanding_ranges_max;
  std::uint64_t group_state_bytes_max = limits::group_state_bytes_default;
  std::uint64_t redelivery_ms_max = limits::redelivery_ms_max_default;  ///< for a reject or an extend
  std::uint64_t processing_timeout_ms =
      limits::processing_timeout_ms_default;  ///< of consumers with leases; 0: no limit
  std::uint64_t producers_max = limits::producers_max;
  std::uint64_t client_keys_per_topic_max = limits::client_keys_per_topic_max;
  std::uint64_t users_max = limits::users_max;
  std::uint64_t rights_per_user_max = limits::rights_per_user_max;
  std::uint64_t credentials_remembered_max = limits::credentials_remembered_max;
  std::uint64_t request_bytes_max = limits::request_bytes_max;
  std::uint64_t requests_waiting_max = limits::requests_waiting_max;
  std::uint64_t control_connections_max = limits::control_connections_max;
  std::uint64_t answers_unread_bytes_max = limits::answers_unread_bytes_max;
  std::uint64_t answers_unread_bytes_total = limits::answers_unread_bytes_total_default;
  std::uint64_t unfinished_bytes_total = limits::unfinished_bytes_total_default;
  std::uint64_t ring_bytes_max = limits::ring_bytes_max;                        ///< for each topic
  std::uint64_t decrypted_bytes_total = limits::decrypted_bytes_total_default;  ///< for encrypted topics
  std::uint64_t memory_bytes_max = 0;  ///< for all topics' rings; 0: no limit
  std::uint64_t reactors = 0;          ///< 0: from the number of cores
  std::filesystem::path ipc_dir;       ///< empty: DATA_DIR/ipc
  std::filesystem::path admin_password_file;
  Secret admin_password;                       ///< empty: the one in DATA_DIR/admin.json
  std::vector<TopicTemplate> topic_templates;  ///< only in the file; not a row of settings()
};

/// The type of a setting's value. A configuration file must use the matching TOML type.
enum class SettingType {
  text,
  number,
  bytes,  ///< a number, or a text such as "16MiB"
  boolean,
};

/// One setting.
struct Setting {
  const char* name;  ///< key in the file; with dashes instead of underscores, the flag
  SettingType type;
  const char* value;  ///< the value's name in the help; empty: the flag alone means true
  const char* help;   ///< one line, with default and range
  /// Parses the value. The error states the valid values.
  Result<void> (*set)(Config& config, const std::string& text);
};

/// Returns all settings, in the order of the help.
std::span<const Setting> settings();
/// Returns the environment variable of a setting: LIGHTQ_ and its name in capitals.
std::string environment_name(const Setting& setting);

/// Returns the address of HTTP as tcp://HOST:PORT; nothing if it is off. If the setting is not given, it is
/// tcp://127.0.0.1:5001, or a free port if the control socket takes a free port too.
std::optional<std::string> http_uri_of(const Config& config);

/// Checks that clients can be given an address to connect to. A bind host that stands for every address
/// (0.0.0.0, ::) needs an advertise host that is a specific address. Error: invalid_argument.
Result<void> check_hosts(const Config& config);

/// Checks that certificate and key are given together, and with `encrypt`. Error: invalid_argument.
Result<void> check_tls(const Config& config);

/// Checks that at most one source of storage keys is given. Error: invalid_argument.
Result<void> check_storage_keys(const Config& config);

/// Returns the value of an environment variable.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// Reads the environment of this process. Overwrites and removes LIGHTQ_ADMIN_PASSWORD after reading it, so
/// that it does not stay in /proc. Not thread-safe, because the environment is not.
std::optional<std::string> process_environment(const std::string& name);
/// Returns the environment of this process for a start. Takes LIGHTQ_ADMIN_PASSWORD out of it at once, as
/// process_environment does, and returns the password once. A program calls this before it waits for
/// anything, such as a settings file that is a pipe, because `/proc/PID/environ` shows the password until
/// then.
Environment start_environment();

/// Reads the settings. The environment overrides the file, and `overrides` overrides both (setting name →
/// text, as from flags; with dashes or underscores). The file is `file` if given, otherwise the one that
/// LIGHTQ_CONFIG names, if set. An empty variable counts as not set.
///
/// Errors: invalid_argument for an unknown setting, a value of the wrong type or out of range, hosts that
/// check_hosts refuses, or a file that is not TOML. The message names file, line and column, or the variable
/// or flag. Also the errors of read_public_file and read_private_line.
Result<Config> load_config(const std::optional<std::filesystem::path>& file, const Environment& environment,
                           const std::map<std::string, std::string>& overrides, const PipeWait& wait = {});

/// Reads the settings as load_config does, but not the administrator's password, which only a start needs.
Result<Config> load_settings(const std::optional<std::filesystem::path>& file, const Environment& environment,
                             const std::map<std::string, std::string>& overrides, const PipeWait& wait = {});

/// Returns /var/lib/lightq for root, otherwise $XDG_STATE_HOME/lightq, otherwise ~/.local/state/lightq.
/// Error: invalid_argument if there is no home directory either.
Result<std::filesystem::path> default_data_dir(bool is_root, const Environment& environment);

/// Applies the settings of a TOML text. `name` is the file's name in errors (settings/config_file.cpp).
Result<void> apply_toml(Config& config, std::string_view text, const std::string& name);

}  // namespace lightq::broker
