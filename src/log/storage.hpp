/// Everything the durable logs ask of a file system, so that tests can put a failing one underneath. Layer:
/// log. The real one: posix_storage.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// A read-only view of a file's bytes that shows what is written later. Unmapped when destroyed.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  virtual ~Mapping() = default;
  [[nodiscard]] virtual const std::byte* data() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Has the system make the pages of [begin, end) ready to be read, which else waits at the first look at
  /// each few of them. Only a hint. Any thread.
  virtual void populate(std::size_t /*begin*/, std::size_t /*end*/) const {}
};

/// A file's bytes, to be read and written in place. What is stored is seen at once by every other view and
/// reader of the file, and survives the process; a power cut only after File::sync. The system may write any
/// page back at any time, also in the middle of a store. Unmapped when destroyed.
class WritableMapping {
 public:
  WritableMapping() = default;
  WritableMapping(const WritableMapping&) = delete;
  WritableMapping& operator=(const WritableMapping&) = delete;
  virtual ~WritableMapping() = default;
  [[nodiscard]] virtual std::byte* data() = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Has the system make its pages ready for the first store, which else waits for each. Any thread.
  virtual void prefault() {}
};

/// An open file; closed when destroyed. Errors of all calls: io_error, or no_space where the disk is full,
/// with errno in `system_error`. `sync` may run on one thread while another writes.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// One pwrite: how many bytes went out, which may be fewer than given. Interruptions are retried inside.
  virtual Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) = 0;
  /// Writes all of `bytes`, and syncs the sectors that they lie in alone: what else was written to the file
  /// may stay unsynced.
  virtual Result<void> write_synced(ByteView bytes, std::uint64_t position);
  /// One pread: how many bytes came; 0 at the end of the file. Interruptions are retried inside.
  virtual Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) = 0;
  /// Makes the file `bytes` long and reserves disk for all of it: later writes within need no more space.
  virtual Result<void> allocate(std::uint64_t bytes) = 0;
  /// fdatasync.
  virtual Result<void> sync() = 0;
  /// Does without a descriptor from now on, where many files are open for long: further calls, but for
  /// `sync`, open the file, which must lie at `path` then, each for itself. `sync` tells of what goes wrong
  /// with the disk all the same. False if the file has to keep its descriptor, for now at least: it is being
  /// used, is open for reading only, or the system cannot.
  virtual bool rest(const std::string& /*path*/) { return true; }
  virtual Result<std::uint64_t> size_bytes() = 0;
  /// Says to other processes, as long as the file is open here, that its bytes are being read: in_use if one
  /// of them has said that it writes them anew.
  virtual Result<void> lock_shared() { return {}; }
  /// Says that the bytes are to be written anew; false if somebody reads them.
  virtual bool lock_exclusive() { return true; }
  /// Takes back either.
  virtual void unlock() {}
  /// The first `bytes` of the file, which the file must have.
  virtual Result<std::unique_ptr<Mapping>> map(std::size_t bytes) = 0;
  /// As map, to be written too; the file must be open for writing and its first `bytes` allocated. May
  /// outlive the File.
  virtual Result<std::unique_ptr<WritableMapping>> map_writable(std::size_t bytes) = 0;
};

/// A directory that is held open, so that nothing but the disk can keep its sync from being done.
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
  create,      ///< makes the file, or empties the one that is there
};

/// A file system. Any thread. Paths are absolute or relative to the process's directory.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  /// Makes a directory and those above it; nothing happens to one that exists. The names of those above
  /// survive a power cut then, its own when the directory that it lies in was synced.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Atomic; replaces `to`.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> unlink(const std::string& path) = 0;
  /// Gives the file at `from` another name, `to`, which nothing may have yet; io_error with EXDEV, EPERM or
  /// EMLINK where the file system cannot.
  virtual Result<void> link(const std::string& from, const std::string& to);
  /// How many names the file at `path` has. A file system without links answers 1.
  virtual Result<std::uint64_t> link_count(const std::string& /*path*/) { return std::uint64_t{1}; }
  virtual Result<void> remove_directory(const std::string& path) = 0;
  /// Makes names created, renamed or unlinked in this directory survive a power cut.
  virtual Result<void> sync_directory(const std::string& path) = 0;
  /// Opens a directory to be synced later. An error here is no failed sync: nothing can have been lost. By
  /// default it opens nothing, and its sync is sync_directory.
  virtual Result<std::unique_ptr<Directory>> open_directory(const std::string& path);
  /// The names in a directory, unsorted; none if there is no such directory.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// What an ordinary user may still write on the disk of this directory (or of the nearest one above it).
  virtual Result<std::uint64_t> free_bytes(const std::string& path) = 0;
  /// For epochs and incarnations.
  virtual std::uint64_t random() = 0;
  /// Of the machine since it was started: what is only in its memory is lost when this changes. 0: not known.
  virtual std::uint64_t boot_id() { return 0; }
};

/// True if `error` says that there is no such file.
[[nodiscard]] bool is_missing(const Error& error);

/// True if the failed call says nothing about the stored bytes: the process lacks descriptors or memory, it
/// may not open the file just now, the disk did not answer, has no space
/// or is not there (no_space). The same call may succeed later. False where
/// there is no such file or the file cannot be mapped as asked, and for errors that are not the system's.
[[nodiscard]] bool is_unavailable(const Error& error);

/// As is_unavailable, but the disk is not to blame: tools that read what a broken disk still gives stop here,
/// too.
[[nodiscard]] bool is_shortage(const Error& error);

/// False only if it is known that there is no such file.
[[nodiscard]] bool may_exist(const std::string& path, Storage& storage);

/// The directory that `path` lies in.
[[nodiscard]] std::string parent_of(const std::string& path);

/// Writes all of `bytes`, however the system cuts it.
Result<void> write_all(File& file, ByteView bytes, std::uint64_t position);

/// Reads until `to` is full or the file ends; how many bytes came.
Result<std::size_t> read_all(File& file, std::span<std::byte> to, std::uint64_t position);

}  // namespace lightq::log
