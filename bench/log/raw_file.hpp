/// A file and a mapping of it through bare system calls, as references for a log. Layer: bench support.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/posix.hpp"

namespace lightq::bench {

inline constexpr std::size_t page_bytes = 4096;

/// Throws `what` with the text of errno, unless `good`.
inline void require(bool good, const std::string& what) {
  if (!good) Result<void>(system_error(what)).value_or_throw();
}

/// A shared mapping of the start of a file. The destructor unmaps it.
class RawMapping {
 public:
  RawMapping(int fd, std::size_t bytes, int protection) : bytes_(bytes) {
    at_ = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
    require(at_ != MAP_FAILED, "cannot map a file");
  }
  RawMapping(const RawMapping&) = delete;
  RawMapping& operator=(const RawMapping&) = delete;
  ~RawMapping() { ::munmap(at_, bytes_); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(at_); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Faults all pages in; for writing if `advice` is MADV_POPULATE_WRITE.
  void advise(int advice) const { require(::madvise(at_, bytes_, advice) == 0, "cannot prefault"); }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A file with all its blocks allocated. The destructor closes and removes it.
class RawFile {
 public:
  RawFile(std::string path, std::size_t bytes) : path_(std::move(path)), bytes_(bytes) {
    fd_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    require(fd_.get() >= 0, "cannot make " + path_);
    require(::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0, "cannot reserve " + path_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() { ::unlink(path_.c_str()); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }

  void write_at(std::span<const std::byte> bytes, std::size_t position) const {
    const ssize_t written = ::pwrite(fd(), bytes.data(), bytes.size(), static_cast<off_t>(position));
    require(written == static_cast<ssize_t>(bytes.size()), "cannot write " + path_);
  }
  /// Puts the file into the state of a recycled segment: every block written, the data on disk, the pages in
  /// memory.
  void write_all_of_it(std::span<const std::byte> chunk) const {
    for (std::size_t at = 0; at + chunk.size() <= bytes_; at += chunk.size()) write_at(chunk, at);
    sync();
  }
  void sync() const { require(::fdatasync(fd()) == 0, "cannot sync " + path_); }
  /// Drops the file's pages from memory. Affects only synced pages.
  void drop_from_memory() const { ::posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED); }

 private:
  std::string path_;
  std::size_t bytes_;
  Descriptor fd_;
};

}  // namespace lightq::bench
