/// The messages that expire in one hour that is still ahead. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Keeps messages with the step of the hour in which each expires, as encoded runs in blocks of a few
/// kilobytes. A message takes about 5 bytes, and a run of messages with equal steps no more than one message.
/// Removing the oldest messages frees whole blocks. A plain value for one thread.
class FarTimes {
 public:
  /// Messages that expire in the same step.
  struct Run {
    OffsetRange range;
    std::uint32_t step = 0;
  };

  /// Adds messages. Needs least memory if offsets ascend.
  void add(const Run& run);
  /// Removes the oldest block, and adds its runs to `runs`. Requires: !empty().
  void take_block(std::vector<Run>& runs);
  /// Frees the oldest blocks, as long as all their messages are below `first`.
  void forget_before(Offset first);
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::vector<std::byte> codes;  // of all runs but `last`
    Run last;
    Offset coded_to{};  // the end of the run before `last`
    Offset end{};       // one past the highest offset
  };
  static constexpr std::size_t block_bytes_max = 4096;
  static constexpr std::size_t entry_bytes = sizeof(Block);

  std::deque<Block> blocks_;
  std::size_t bytes_ = 0;
};

}  // namespace lightq::broker
