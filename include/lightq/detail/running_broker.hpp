/// Finds out whether the broker of a data directory runs, and connects to its control socket there. Layer:
/// client.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/private_file.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/protocol/json_functions.hpp>

namespace lightq::inline v1::detail {

/// Returns the device number of the file system that holds the file, as /proc writes it, or an empty text if
/// it is not known. It may differ from stat's `st_dev` (btrfs).
LIGHTQ_INLINE std::string mounted_device([[maybe_unused]] const std::filesystem::path& file);

/// Returns the names that /proc/locks may have for the file: MAJOR:MINOR:INODE.
LIGHTQ_INLINE std::vector<std::string> lock_names(const std::filesystem::path& file);

/// Returns true if a line of /proc/locks is of an exclusive flock of one of the files.
LIGHTQ_INLINE bool is_exclusive_lock(const std::string& line, const std::vector<std::string>& names);

/// Returns true if a process holds the lock of the data directory, as a broker does while it lives. Reads
/// /proc/locks instead of trying the lock, which could keep a broker from starting. Does not see locks of
/// processes in other pid namespaces.
LIGHTQ_INLINE bool is_locked(const std::filesystem::path& directory);

/// A broker's Unix control socket in its data directory. Only the broker's user and root can make a file
/// there, so only the broker can listen at it, now and after every restart.
class OwnerSocket {
 public:
  OwnerSocket(const std::filesystem::path& directory, const std::string& name);

  /// Returns a path that fits into a socket's address. Lifetime: until this object and its copies are
  /// destroyed.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string uri() const { return "ipc://" + path_; }
  /// Returns true if a process listens at the socket and this process may connect.
  [[nodiscard]] bool answers() const;

 private:
  std::string path_;
  std::shared_ptr<const ScopedDescriptor> directory_;  // held open if the path leads through it
};

/// Returns true if the broker that wrote `file` into the directory still runs. A broker that is killed leaves
/// the file.
LIGHTQ_INLINE bool is_running(const std::filesystem::path& directory, const protocol::BrokerFile& file);

}  // namespace lightq::inline v1::detail

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/running_broker.hpp>  // IWYU pragma: export
#endif
