/// A frame that is too long for the common input buffer, as far as it has come. Layer: endpoint.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "broker/endpoint/memory_reserve.hpp"

namespace lightq::broker {

/// Its memory grows with what has really come, whatever length was announced, and is kept for the next one:
/// to make it anew for each would cost more than the frame. One thread.
class LargeFrame {
 public:
  /// `bytes`: its whole length; `begun`, fewer, have come. False: there is no memory for it.
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
  /// Where its next bytes belong; empty: none is under way. Throws std::bad_alloc.
  std::span<std::byte> space() {
    const FallibleAllocations fallible;
    if (received_ == memory_.size() && received_ < bytes_)
      memory_.resize(std::min(bytes_, received_ + std::max(step_bytes, received_)));
    return std::span(memory_).first(std::min(bytes_, memory_.size())).subspan(received_);
  }
  /// So many have come. The whole frame, valid until the next call, if that was its end; else empty.
  std::span<std::byte> take(std::size_t bytes) {
    received_ += bytes;
    if (received_ < bytes_) return {};
    received_ = 0;
    return std::span(memory_).first(std::exchange(bytes_, 0));
  }
  /// Nothing more of it is wanted.
  void drop() { bytes_ = received_ = 0; }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.size(); }
  /// Unless one is under way.
  void release_memory() {
    if (!is_under_way()) memory_ = std::vector<std::byte>();
  }

 private:
  static constexpr std::size_t step_bytes = 256 * limits::KiB;
  std::vector<std::byte> memory_;
  std::size_t received_ = 0;
  std::size_t bytes_ = 0;  // its length; 0: none is under way
};

}  // namespace lightq::broker
