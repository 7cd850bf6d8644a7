/// Finds the broker of this machine and the credentials for it: in the environment, then in the broker's own
/// files. Layer: client.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/running_broker.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/json_functions.hpp>

namespace lightq::inline v1 {

/// The control URI of a broker without configuration.
inline constexpr std::string_view default_control_uri = "tcp://127.0.0.1:5000";
/// The administrator's name in a broker without configuration.
inline constexpr std::string_view default_admin_user_id = "lightq_admin";

/// Returns an environment variable's value; empty if the variable is not set.
LIGHTQ_INLINE std::string environment_value(const char* name);

/// Returns the directories in which a broker of this machine may keep its data, in the order to search. If
/// `chosen` is not empty, returns only that. Otherwise, if LIGHTQ_DATA_DIR is set, returns only that.
/// Otherwise returns the user's state directory ($XDG_STATE_HOME/lightq or ~/.local/state/lightq), then
/// /var/lib/lightq; for root in reverse order.
LIGHTQ_INLINE std::vector<std::filesystem::path> data_directories(const std::string& chosen = {});

namespace detail {

inline constexpr std::size_t small_file_bytes_max = 64 * 1024;

/// Returns a small regular file's content, or nothing if it cannot be read. Error: invalid_argument (the file
/// belongs to a user whom this process does not trust, see foreign_file_fault).
LIGHTQ_INLINE Result<std::optional<std::string>> read_small_file(const std::filesystem::path& path);

using FoundBroker = Result<std::optional<protocol::BrokerFile>>;

LIGHTQ_INLINE FoundBroker read_broker_file(const std::filesystem::path& path);

/// Reads broker.json, which a broker writes when it starts and removes when it stops.
LIGHTQ_INLINE FoundBroker read_running_broker(const std::filesystem::path& directory);

/// Reads server_key.json: the address and key of the directory's last broker, if it encrypted. The file stays
/// when the broker stops.
LIGHTQ_INLINE FoundBroker read_encrypting_broker(const std::filesystem::path& directory);

/// Returns true if a client's `uri` is certainly the address `bound` of a broker on this machine. Decides
/// whether a password may be sent there, so it returns false in doubt.
LIGHTQ_INLINE bool is_local_broker(std::string_view uri, std::string_view bound);

/// Returns true if a client's `uri` may be the address `bound` of a broker on this machine. Decides whether
/// the client demands that broker's key there, so it returns true in doubt. Looks up host names, which may
/// block.
LIGHTQ_INLINE bool may_be_local_broker(std::string_view uri, std::string_view bound);

}  // namespace detail

/// The control URI to try when none is given.
struct ControlPlace {
  std::string uri;
  /// True if the URI is LIGHTQ_BROKER's or that of a running broker. If false, a broker that starts later may
  /// announce another URI.
  bool certain = false;
  bool named = false;  ///< true if LIGHTQ_BROKER names it
};

/// Returns the control URI to use when none is given: LIGHTQ_BROKER, else that of the first data directory
/// with a running broker's broker.json (both are certain), else that of the first server_key.json, else
/// default_control_uri. Error: invalid_argument (such a file belongs to another user).
LIGHTQ_INLINE Result<ControlPlace> discover_control_place(const std::string& data_dir = {});

/// Returns the URI that discover_control_place finds.
LIGHTQ_INLINE Result<std::string> discover_control_uri(const std::string& data_dir = {});

namespace detail {

/// Fills in credentials that are empty in `options` from the environment.
LIGHTQ_INLINE void take_environment(ClientOptions& options);

}  // namespace detail

/// Fills in credentials that are empty in `options`, as ClientOptions::discover_credentials describes. If it
/// took the password from an admin.json, returns the control socket of that data directory: all requests must
/// go through that socket. Otherwise returns nothing, and requests go to `uri`.
///
/// Uses an admin.json only for the running broker that the broker.json in the same directory names. The
/// control socket must be in that directory too, where no other process can listen. Does not use admin.json
/// if a user and no administrator was given: explicit credentials are the only ones tried. Keeps an
/// administrator's name without a password, so that a later call can find the password.
///
/// Error: invalid_argument (other users may read that admin.json, or one of the files belongs to another
/// user).
LIGHTQ_INLINE Result<std::optional<detail::OwnerSocket>> discover_credentials(std::string_view uri,
                                                                              ClientOptions& options);

/// Fills in the broker's key if it is empty in `options`, as ClientOptions::server_key describes. Takes it
/// from a broker.json or server_key.json only if that file names the broker at `uri`. Error: invalid_argument
/// (such a file belongs to another user).
LIGHTQ_INLINE Result<void> discover_server_key(std::string_view uri, ClientOptions& options);

/// Returns true if LIGHTQ_INSECURE permits sending secrets to other machines unencrypted: `true`, or a number
/// other than 0.
LIGHTQ_INLINE bool discover_insecure();

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/discovery.hpp>  // IWYU pragma: export
#endif
