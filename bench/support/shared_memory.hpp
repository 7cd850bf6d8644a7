/// Memory and events that a process shares with its forked children. Layer: bench support.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "support/posix.hpp"

namespace lightq::bench {

/// A zeroed array of `T` that children forked later share. `T` must be trivially destructible. Throws
/// std::bad_alloc if there is no memory.
template <typename T>
class SharedArray {
 public:
  explicit SharedArray(std::size_t count) : count_(count) {
    void* memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = new (memory) T[count]{};
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { ::munmap(data_, bytes()); }

  [[nodiscard]] T& operator[](std::size_t index) { return data_[index]; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  [[nodiscard]] std::size_t bytes() const { return sizeof(T) * count_; }
  std::size_t count_;
  T* data_ = nullptr;
};

/// A flag that one process raises once, and others wait for. Forked children inherit it. Throws
/// std::bad_alloc if there is no descriptor.
class SharedEvent {
 public:
  SharedEvent() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_.get() < 0) throw std::bad_alloc();
  }
  void raise() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }
  /// Returns true once the flag is raised; false if `deadline` passes first.
  [[nodiscard]] bool wait_until(Clock::time_point deadline) const {
    pollfd wanted{event_.get(), POLLIN, 0};
    return ::poll(&wanted, 1, milliseconds_until(deadline)) == 1;
  }

 private:
  Descriptor event_;
};

}  // namespace lightq::bench
