/// Receives a frame that is too long for the shared input buffer into memory of its own. Layer: net.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

/// Holds the bytes of one large frame that have arrived so far. The memory grows with the bytes that arrived,
/// not with the announced length. It is kept for the next large frame, because allocating it again would cost
/// more than the frame. Thread: one.
class LargeFrame {
 public:
  /// Begins a frame of `bytes` bytes and copies `begun`, its first bytes. Requires: `begun` is shorter than
  /// the frame. Returns false if there is no memory for it.
  [[nodiscard]] bool begin(std::size_t bytes, ByteView begun) {
    const FallibleAllocations fallible;
    try {
      if (memory_.size() < begun.size()) memory_.resize(std::min(bytes, begun.size() + step_bytes));
    } catch (const std::bad_alloc&) {
      return false;
    }
    std::copy(begun.begin(), begun.end(), memory_.begin());
    bytes_ = bytes;
    received_ = begun.size();
    return true;
  }
  [[nodiscard]] bool is_under_way() const { return bytes_ != 0; }
  /// Returns the space for the frame's next bytes, or an empty span if no frame is under way. Throws
  /// std::bad_alloc.
  std::span<std::byte> space() {
    const FallibleAllocations fallible;
    if (received_ == memory_.size() && received_ < bytes_)
      memory_.resize(std::min(bytes_, received_ + std::max(step_bytes, received_)));
    return std::span(memory_).first(std::min(bytes_, memory_.size())).subspan(received_);
  }
  /// Called when `bytes` more bytes were written into `space()`. Returns the whole frame, valid until the
  /// next call, if it is complete; otherwise an empty span.
  std::span<std::byte> take(std::size_t bytes) {
    received_ += bytes;
    if (received_ < bytes_) return {};
    received_ = 0;
    return std::span(memory_).first(std::exchange(bytes_, 0));
  }
  /// Discards the frame that is under way. Keeps the memory.
  void drop() { bytes_ = received_ = 0; }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.size(); }
  /// Frees the memory, unless a frame is under way.
  void release_memory() {
    if (!is_under_way()) memory_ = std::vector<std::byte>();
  }

 private:
  static constexpr std::size_t step_bytes = 256 * limits::KiB;
  std::vector<std::byte> memory_;
  std::size_t received_ = 0;
  std::size_t bytes_ = 0;  // the whole frame's length; 0: no frame is under way
};

}  // namespace lightq::broker
