/// The directory that belongs to one running broker. Layer: broker.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

#include "broker/control/curve_key_file.hpp"
#include "broker/endpoint/socket.hpp"
#include "broker/held_directory.hpp"
#include "log/directory_lock.hpp"

namespace lightq::broker {

/// Owns the directory from `open` to destruction. One thread.
class DataDirectory {
 public:
  /// Makes the directory and its rooms where they are missing, and locks it. The lock ends with the process,
  /// however it ends. Errors: in_use (naming the process that has it), io_error, no_space; invalid_argument:
  /// it, or a room, belongs to another user, or others may write there (or read what is in a room).
  static Result<std::unique_ptr<DataDirectory>> open(const std::filesystem::path& path);
  /// The CURVE key of a directory that somebody else may own; both are made if they are missing. Errors: as
  /// of open_curve_key; in_use: there is no key, and the broker that has the directory needs none.
  static Result<std::unique_ptr<CurveKeyPair>> curve_key(const std::filesystem::path& path);
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;
  /// Removes broker.json and the control socket's file, and lets go of the lock.
  ~DataDirectory();

  /// Absolute.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The directory itself, whatever its path leads to by now.
  [[nodiscard]] const HeldDirectory& held() const { return *held_; }
  [[nodiscard]] std::filesystem::path topics() const { return path_ / "topics"; }
  [[nodiscard]] std::filesystem::path pool() const { return path_ / "pool"; }
  [[nodiscard]] std::filesystem::path catalogue() const { return path_ / "catalogue"; }
  [[nodiscard]] std::filesystem::path ipc() const { return path_ / "ipc"; }
  [[nodiscard]] std::filesystem::path admin_file() const { return path_ / "admin.json"; }
  [[nodiscard]] std::filesystem::path ticket_key_file() const { return path_ / "ticket.key"; }
  [[nodiscard]] std::filesystem::path tls_certificate_file() const { return path_ / "tls.crt"; }
  [[nodiscard]] std::filesystem::path tls_key_file() const { return path_ / "tls.key"; }

  [[nodiscard]] std::filesystem::path curve_key_file() const { return path_ / "curve.key"; }

  /// Listens on a Unix socket in the directory, which nobody but the broker's user and root may connect to:
  /// no other process can put a socket of its own in its place. Nothing: `control_uri` is this very socket.
  /// Errors: those of listen_unix (the file system may have no sockets).
  Result<std::optional<ListeningSocket>> listen_for_owner(const std::string& control_uri);

  /// Writes broker.json, at once or not at all, for programs on this machine to find the broker; and
  /// server_key.json, which stays: with no key it is removed. `server_key`: as text; empty: there is none.
  Result<void> publish(const std::string& control_uri, const std::string& server_key = {});

 private:
  [[nodiscard]] Result<void> keep_server_key(const std::string& control_uri,
                                             const std::string& server_key) const;
  DataDirectory(std::filesystem::path path, log::DirectoryLock lock,
                std::unique_ptr<const HeldDirectory> held)
      : path_(std::move(path)), lock_(std::move(lock)), held_(std::move(held)) {}

  const std::filesystem::path path_;
  const log::DirectoryLock lock_;
  const std::unique_ptr<const HeldDirectory> held_;  // never null
  bool published_ = false;
  bool has_control_socket_ = false;
};

/// Whether the directory of Unix sockets that a setting names is safe: whoever may take a socket's file away
/// can put his own in its place, and is shown passwords and tickets. One that is not there yet is. Errors:
/// invalid_argument: it belongs to another user, or others may write there, and it is not sticky as /tmp is.
Result<void> check_socket_directory(std::string_view setting, const std::filesystem::path& path);

}  // namespace lightq::broker
