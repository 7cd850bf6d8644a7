/// Memory from mmap: a ring's anonymous pages, a file's view, read-only or writable. The only place of the
/// log that knows mmap. Layer: log.
#pragma once

#include <cstddef>
#include <span>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// Owns one mapping; move-only. One thread.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  /// `bytes` of address space; a page becomes memory when it is first written. Errors: io_error.
  static Result<MappedMemory> anonymous(std::size_t bytes);
  /// The first `bytes` of the file behind `fd`, which may be closed afterwards. Touching a page beyond the
  /// file's end, or one the disk cannot read, is SIGBUS: callers map what fallocate gave them. Errors:
  /// io_error.
  static Result<MappedMemory> file_read_only(int fd, std::size_t bytes);

  /// As file_read_only, but not to be looked at, so it is address space and no memory: as long as it is there
  /// the file is open, without a descriptor, and `sync` can be called. `fd` must be open for reading and
  /// writing.
  static Result<MappedMemory> file_kept_open(int fd, std::size_t bytes);

  /// As file_read_only, but stores go to the file. `fd` must be open for reading and writing.
  static Result<MappedMemory> file_writable(int fd, std::size_t bytes);

  [[nodiscard]] bool valid() const { return start_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

  /// Makes all pages of a writable mapping present and writable, as far as the system can.
  void prefault();

  /// Makes the pages that [begin, end) lies in present, to be read, as far as they are in the mapping and the
  /// system can: a kernel that does not know how leaves all to the first look. Any thread.
  void populate(std::size_t begin, std::size_t end) const;

  /// Syncs these bytes of the file, however they were written: just what fdatasync of the descriptor that
  /// they were mapped by would do, and say of errors since that was opened. Errors: io_error. Any thread.
  Result<void> sync() const;

  /// Gives the pages of anonymous memory back to the system; their content becomes zero.
  void give_back();

 private:
  static Result<MappedMemory> file(int fd, std::size_t bytes, int protection);
  MappedMemory(std::byte* start, std::size_t bytes) : start_(start), bytes_(bytes) {}
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lightq::log
