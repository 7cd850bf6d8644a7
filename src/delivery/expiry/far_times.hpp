/// The messages that expire in one hour that is still ahead. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

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
  /// Frees the oldest blocks, as long as all their messages are below `first`. Keeps messages in `carried`;
  /// null: none.
  void forget_before(Offset first, const log::OffsetSet* carried = nullptr);
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return codes_bytes_ + allocated(blocks_.capacity() * sizeof(Block));
  }

 private:
  struct Block {
    std::vector<std::byte> codes;  // of all runs but `last`
    Run last;
    Offset coded_to{};  // the end of the run before `last`
    Offset begin{};     // the lowest offset
    Offset end{};       // one past the highest offset
  };
  static constexpr std::size_t block_bytes_max = 4096;

  /// Returns how much the allocator takes for so many bytes.
  static constexpr std::size_t allocated(std::size_t bytes) {
    return bytes == 0 ? 0 : std::max<std::size_t>(32, (bytes + 8 + 15) / 16 * 16);
  }
  void add_code(Block& block, const std::byte* begin, const std::byte* end);
  void begin_block(const Run& run);
  static void decode(const Block& block, std::vector<Run>& runs);
  void remove_blocks(std::size_t count);
  void add_carried(const Run& run, const log::OffsetSet& carried);

  std::vector<Block> blocks_;    // the oldest first
  std::size_t codes_bytes_ = 0;  // of all blocks' codes
};

}  // namespace lightq::broker
