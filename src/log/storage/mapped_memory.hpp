/// Memory from mmap: anonymous pages of a ring, or the view of a file, read-only or writable. No other file
/// of the log calls mmap. Layer: log.
#pragma once

#include <cstddef>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Owns one mapping. Move-only. Thread: one at a time, unless a function says otherwise.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  /// Reserves `bytes` of address space. A page takes memory only when it is first written. Errors: io_error.
  static Result<MappedMemory> anonymous(std::size_t bytes);
  /// Maps the first `bytes` of the file behind `fd`, which may be closed afterwards. Access to a page beyond
  /// the file's end, or to one that the disk cannot read, raises SIGBUS. Callers therefore map only bytes
  /// that fallocate has reserved. Errors: io_error.
  static Result<MappedMemory> file_read_only(int fd, std::size_t bytes);

  /// Maps as file_read_only does, but without access, so the mapping takes address space and no memory. It
  /// keeps the file open without a descriptor, so that `sync` still works. Requires: `fd` is open for reading
  /// and writing.
  static Result<MappedMemory> file_kept_open(int fd, std::size_t bytes);

  /// Maps as file_read_only does, but writable: stores go to the file. Requires: `fd` is open for reading and
  /// writing.
  static Result<MappedMemory> file_writable(int fd, std::size_t bytes);

  [[nodiscard]] bool valid() const { return start_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

  /// Makes all pages of a writable mapping present and writable, as far as the system can.
  void prefault();

  /// Loads the pages of [begin, end) for reading, as far as they are in the mapping and the system can. On a
  /// kernel without MADV_POPULATE_READ it does nothing, and each page loads at its first access. Thread: any.
  void populate(std::size_t begin, std::size_t end) const;

  /// Syncs these bytes of the file, however they were written. It has the effect of fdatasync on the
  /// descriptor that was mapped, and reports the same errors since that one was opened. Errors: io_error.
  /// Thread: any.
  Result<void> sync() const;

  /// Returns the pages of anonymous memory to the system. Their content becomes zero.
  void give_back();

 private:
  static Result<MappedMemory> file(int fd, std::size_t bytes, int protection);
  MappedMemory(std::byte* start, std::size_t bytes) : start_(start), bytes_(bytes) {}
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Unmaps the code of the program and its libraries, so that code that only the start used takes no memory.
/// The pages stay in the system's cache of files; a page that is used again is mapped again, by a fault that
/// needs no disk while it is in the cache. Leaves out a library whose code was relocated. Thread: any.
void give_back_code();

}  // namespace lightq::log
