/// The file system interface of the durable logs, so that tests can use a file system that fails. Layer: log.
/// The real one is in posix_storage.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// A read-only mapping of a file's bytes; it shows later writes, too. Unmapped when destroyed.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  virtual ~Mapping() = default;
  [[nodiscard]] virtual const std::byte* data() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Asks the system to make the pages of [begin, end) present. Without that, a reader waits at the first
  /// access to each few of them. Only a hint. Thread: any.
  virtual void populate(std::size_t /*begin*/, std::size_t /*end*/) const {}
};

/// A read-write mapping of a file's bytes. Every other mapping and reader of the file sees a store
/// immediately. It survives the process, and after File::sync a power cut. The system may write any page to
/// disk at any time, also in the middle of a store. Unmapped when destroyed.
class WritableMapping {
 public:
  WritableMapping() = default;
  WritableMapping(const WritableMapping&) = delete;
  WritableMapping& operator=(const WritableMapping&) = delete;
  virtual ~WritableMapping() = default;
  [[nodiscard]] virtual std::byte* data() = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Asks the system to prepare all pages for the first store, which would otherwise wait at each. Thread:
  /// any.
  virtual void prefault() {}
};

/// An open file; closed when destroyed. Thread: `sync` may run on one thread while another writes. Errors,
/// for all calls: io_error, or no_space if the disk is full, with errno in `system_error`.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// Writes with one pwrite. Returns the number of bytes written, which may be fewer than given. Retries if
  /// interrupted.
  virtual Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) = 0;
  /// Writes all of `bytes` and syncs the disk sectors that contain them. Other data written to the file may
  /// stay unsynced.
  virtual Result<void> write_synced(ByteView bytes, std::uint64_t position);
  /// Reads with one pread. Returns the number of bytes read; 0 at the end of the file. Retries if
  /// interrupted.
  virtual Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) = 0;
  /// Makes the file `bytes` long and reserves disk space for all of it: later writes inside it need no more
  /// space.
  virtual Result<void> allocate(std::uint64_t bytes) = 0;
  /// Makes written data survive a power cut (fdatasync).
  virtual Result<void> sync() = 0;
  /// Closes the descriptor, for logs with many files open for a long time. Later calls, except `sync`, each
  /// open the file at `path`, where it must be. `sync` still reports disk errors. Returns false if the file
  /// has to keep its descriptor, at least for now. The reason may be that it is in use or open only for
  /// reading, or that the system cannot do this.
  virtual bool release_descriptor(const std::string& /*path*/) { return true; }
  virtual Result<std::uint64_t> size_bytes() = 0;
  /// Tells other processes that the file's bytes are being read, as long as it is open here. Errors: in_use
  /// if another process has declared that it overwrites them.
  virtual Result<void> lock_shared() { return {}; }
  /// Declares that the bytes will be overwritten. Returns false if another process reads them.
  virtual bool lock_exclusive() { return true; }
  /// Ends the effect of lock_shared or lock_exclusive.
  virtual void unlock() {}
  /// Maps the first `bytes` of the file. Requires: the file is at least that long.
  virtual Result<std::unique_ptr<Mapping>> map(std::size_t bytes) = 0;
  /// Maps the first `bytes` of the file for reading and writing. Requires: the file is open for writing, and
  /// these bytes are allocated. Lifetime: the mapping may outlive the File.
  virtual Result<std::unique_ptr<WritableMapping>> map_writable(std::size_t bytes) = 0;
};

/// An open directory. Opening it before the sync leaves only disk errors that can make the sync fail.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  virtual ~Directory() = default;

  /// Makes names created, renamed or unlinked in it survive a power cut.
  virtual Result<void> sync() = 0;
};

enum class OpenMode {
  read_only,
  read_write,  ///< the file must exist
  create,      ///< creates the file, or empties an existing one; fails for a symbolic link
};

/// A file system. Paths are absolute or relative to the process's directory. Thread: any.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  /// Creates a directory and its missing parents; does nothing if it exists. The names of the parents then
  /// survive a power cut, the directory's own name only once its parent is synced.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Renames atomically; replaces `to` if it exists.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> unlink(const std::string& path) = 0;
  /// Gives the file at `from` the additional name `to`. Requires: `to` does not exist. Errors: io_error with
  /// EXDEV, EPERM or EMLINK if the file system cannot do this.
  virtual Result<void> link(const std::string& from, const std::string& to);
  /// Returns how many names the file at `path` has. A file system without links returns 1.
  virtual Result<std::uint64_t> link_count(const std::string& /*path*/) { return std::uint64_t{1}; }
  virtual Result<void> remove_directory(const std::string& path) = 0;
  /// Makes names created, renamed or unlinked in this directory survive a power cut.
  virtual Result<void> sync_directory(const std::string& path) = 0;
  /// Opens a directory to be synced later. An error here is not a failed sync: no data can be lost. The
  /// default implementation opens nothing, and its sync calls sync_directory.
  virtual Result<std::unique_ptr<Directory>> open_directory(const std::string& path);
  /// Returns the names in a directory, unsorted. Errors: io_error, for which is_missing is true if the
  /// directory does not exist; list_if_there is for callers that need no distinction.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// Returns the bytes that an ordinary user may still write to the disk of this directory, or of its nearest
  /// existing parent.
  virtual Result<std::uint64_t> free_bytes(const std::string& path) = 0;
  /// Returns a random number, for epochs and incarnations.
  virtual std::uint64_t random() = 0;
  /// Returns the id of the machine's boot. Data that is only in memory is lost when it changes. 0: not known.
  virtual std::uint64_t boot_id() { return 0; }
};

/// Returns true if `error` says that the file or directory does not exist.
[[nodiscard]] bool is_missing(const Error& error);

/// Returns true if the failed call says nothing about the stored bytes, so the same call may succeed later.
/// The process lacks descriptors or memory, the file may not be opened now, or the disk did not answer, is
/// full or is not there (no_space). False if the file does not exist or cannot be mapped as requested, and
/// for errors that are not the system's.
[[nodiscard]] bool is_unavailable(const Error& error);

/// Returns true if is_unavailable does, and the disk is not the cause. Tools that read all they can from a
/// broken disk stop at these errors.
[[nodiscard]] bool is_shortage(const Error& error);

/// Returns false only if it is certain that the file does not exist.
[[nodiscard]] bool may_exist(const std::string& path, Storage& storage);

/// Returns the names in a directory, unsorted; none if it does not exist. Errors: io_error.
Result<std::vector<std::string>> list_if_there(const std::string& path, Storage& storage);

/// Returns the parent directory of `path`.
[[nodiscard]] std::string parent_of(const std::string& path);

/// Removes a directory with all files and directories in it, to clean up unfinished work. Ignores errors.
void remove_files(const std::string& directory, Storage& storage);

/// Writes all of `bytes`, with as many calls as the system needs.
Result<void> write_all(File& file, ByteView bytes, std::uint64_t position);

/// Reads until `to` is full or the file ends. Returns the number of bytes read.
Result<std::size_t> read_all(File& file, std::span<std::byte> to, std::uint64_t position);

}  // namespace lightq::log
