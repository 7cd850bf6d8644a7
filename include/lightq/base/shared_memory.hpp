/// Memory that one process creates and other processes map through its descriptor. Layer: base.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// Owns a mapping and, until close_descriptor, its descriptor. The memory is sealed, so that no other process
/// can change its size. So no access within the mapping can raise SIGBUS. Move-only. One thread.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    if (this != &other) {
      release();
      bytes_ = std::exchange(other.bytes_, {});
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~SharedMemory() { release(); }

  /// Creates `bytes` of zeros. A page takes memory from the first access on. Errors: limit_reached
  /// (descriptors), io_error.
  static Result<SharedMemory> make(std::size_t bytes) {
    SharedMemory made;
    made.descriptor_ = ::memfd_create("lightq", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made.descriptor_ < 0) return failure("cannot create shared memory");
    if (::ftruncate(made.descriptor_, static_cast<off_t>(bytes)) != 0 ||
        ::fcntl(made.descriptor_, F_ADD_SEALS, seals) != 0)
      return failure("cannot create shared memory");
    if (Result<void> mapped = made.map(bytes); !mapped) return mapped.error();
    return made;
  }
  /// Maps memory that another process created. Takes ownership of the descriptor, also after an error.
  /// Errors: invalid_request (the memory has another size, or its size could change), io_error.
  static Result<SharedMemory> adopt(int descriptor, std::size_t bytes) {
    SharedMemory made;
    made.descriptor_ = descriptor;
    struct stat about{};
    const int has = ::fcntl(descriptor, F_GET_SEALS);
    if (has < 0 || (has & seals) != seals || ::fstat(descriptor, &about) != 0 ||
        static_cast<std::size_t>(about.st_size) != bytes)
      return Error{ErrorCode::invalid_request,
                   "the descriptor of the shared memory is not a sealed memory file of " +
                       std::to_string(bytes) + " bytes"};
    if (Result<void> mapped = made.map(bytes); !mapped) return mapped.error();
    return made;
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Returns the descriptor, or -1 after close_descriptor.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Returns the memory of the pages that lie wholly in `part` to the system. They read as zeros from then
  /// on, also in other processes. Requires: `part` is a part of `bytes()`.
  void empty(std::span<std::byte> part) {
    constexpr std::size_t page_bytes = 4096;
    const auto from = static_cast<std::size_t>(part.data() - bytes_.data());
    const std::size_t begin = (from + page_bytes - 1) / page_bytes * page_bytes;
    const std::size_t end = (from + part.size()) / page_bytes * page_bytes;
    if (begin < end) (void)::madvise(bytes_.data() + begin, end - begin, MADV_REMOVE);
  }
  /// Closes the descriptor. The mapping stays.
  void close_descriptor() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  static constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

  static Error failure(const char* what) {
    const int number = errno;
    const bool full = number == EMFILE || number == ENFILE;
    return {full ? ErrorCode::limit_reached : ErrorCode::io_error, what, number};
  }
  Result<void> map(std::size_t bytes) {
    void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (start == MAP_FAILED) return failure("cannot map shared memory");
    bytes_ = {static_cast<std::byte*>(start), bytes};
    return {};
  }
  void release() {
    close_descriptor();
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }

  std::span<std::byte> bytes_;
  int descriptor_ = -1;
};

}  // namespace lightq::inline v1
