/// The data directory, which one running broker owns. Layer: broker.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

#include "access/curve_key_file.hpp"
#include "broker/held_directory.hpp"
#include "log/storage/directory_lock.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

/// Owns the directory from `open` to destruction. One thread.
class DataDirectory {
 public:
  /// Creates the directory and its subdirectories if they are missing, and locks it. The lock ends with the
  /// process, however it ends. Errors: in_use (names the process that has the lock), io_error, no_space;
  /// invalid_argument if the directory or a subdirectory belongs to another user, or if others may write
  /// there or read a subdirectory's contents.
  static Result<std::unique_ptr<DataDirectory>> open(const std::filesystem::path& path);
  /// Returns the CURVE key of a directory that another process may have locked. Creates both if they are
  /// missing. Errors: those of open_curve_key; in_use if there is no key and a broker without encryption has
  /// the directory.
  /// `renews`: makes a new key, and keeps the one that was there as the former key. A running broker uses it
  /// after a reload.
  static Result<std::unique_ptr<CurveKeyPair>> curve_key(const std::filesystem::path& path, bool renews);
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;
  /// Removes broker.json and the control socket's file, and releases the lock.
  ~DataDirectory();

  /// Absolute.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns the directory itself, even if its path leads elsewhere by now.
  [[nodiscard]] const HeldDirectory& held() const { return *held_; }
  [[nodiscard]] std::filesystem::path topics() const { return path_ / "topics"; }
  [[nodiscard]] std::filesystem::path pool() const { return path_ / "pool"; }
  [[nodiscard]] std::filesystem::path catalogue() const { return path_ / "catalogue"; }
  [[nodiscard]] std::filesystem::path ipc() const { return path_ / "ipc"; }
  [[nodiscard]] std::filesystem::path admin_file() const { return path_ / "admin.json"; }
  [[nodiscard]] std::filesystem::path ticket_key_file() const { return path_ / "ticket.key"; }
  [[nodiscard]] std::filesystem::path tls_certificate_file() const { return path_ / "tls.crt"; }
  [[nodiscard]] std::filesystem::path tls_key_file() const { return path_ / "tls.key"; }

  [[nodiscard]] CurveKeyFiles curve_key_files() const { return curve_key_files(path_); }

  /// Listens on a Unix socket in the directory. Only the broker's user and root may connect to it, and no
  /// other process can put a socket in its place. Returns nothing if `control_uri` is this socket. Errors:
  /// those of listen_unix (the file system may not support sockets).
  Result<std::optional<ListeningSocket>> listen_for_owner(const std::string& control_uri);

  /// Writes broker.json atomically, by which programs on this machine find the broker. Also writes
  /// server_key.json, which stays after the broker stops; without a key, removes it. `server_key`: as text;
  /// empty: there is none. `http_uri`: empty: there is no HTTP.
  Result<void> publish(const std::string& control_uri, const std::string& server_key = {},
                       const std::string& http_uri = {});

 private:
  static CurveKeyFiles curve_key_files(const std::filesystem::path& path) {
    return {path / "curve.key", path / "curve_former.key"};
  }
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

/// Checks that the directory of Unix sockets that a setting names is safe. A process that can remove a
/// socket's file can put a socket in its place and receive passwords and tickets. A missing directory is
/// safe. Errors: invalid_argument if it belongs to another user, or if others may write there and it is not
/// sticky, as /tmp is.
Result<void> check_socket_directory(std::string_view setting, const std::filesystem::path& path);

}  // namespace lightq::broker
