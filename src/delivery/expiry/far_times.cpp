/// The messages that expire in one hour that is still ahead. Layer: delivery.
#include "delivery/expiry/far_times.hpp"

#include <algorithm>
#include <array>

#include "log/offsets/run_code.hpp"

namespace lightq::broker {

namespace {

/// Encodes a difference of offsets: bit 0 is its sign.
std::uint64_t signed_code(Offset from, Offset to) {
  return from <= to ? distance(from, to) << 1 : (distance(to, from) << 1 | 1);
}

Offset moved_by(Offset from, std::uint64_t code) {
  const std::uint64_t step = code >> 1;
  return (code & 1) != 0 ? Offset{from.value - step} : from + step;
}

}  // namespace

void FarTimes::add(const Run& run) {
  if (run.range.begin >= run.range.end) return;
  if (!blocks_.empty()) {
    Block& block = blocks_.back();
    block.begin = std::min(block.begin, run.range.begin);
    block.end = std::max(block.end, run.range.end);
    if (block.last.step == run.step && block.last.range.end == run.range.begin) {
      block.last.range.end = run.range.end;
      return;
    }
    if (block.codes.size() < block_bytes_max) {
      std::array<std::byte, 3 * log::varint_bytes_max> code{};
      std::byte* end = log::store_varint(code.data(), signed_code(block.coded_to, block.last.range.begin));
      end = log::store_varint(end, distance(block.last.range.begin, block.last.range.end));
      end = log::store_varint(end, block.last.step);
      add_code(block, code.data(), end);
      block.coded_to = block.last.range.end;
      block.last = run;
      return;
    }
  }
  begin_block(run);
}

void FarTimes::add_code(Block& block, const std::byte* begin, const std::byte* end) {
  codes_bytes_ -= allocated(block.codes.capacity());
  block.codes.insert(block.codes.end(), begin, end);
  codes_bytes_ += allocated(block.codes.capacity());
}

void FarTimes::begin_block(const Run& run) {
  if (!blocks_.empty()) {  // no code will be added to it any more
    std::vector<std::byte>& codes = blocks_.back().codes;
    codes_bytes_ -= allocated(codes.capacity());
    codes.shrink_to_fit();
    codes_bytes_ += allocated(codes.capacity());
  }
  blocks_.push_back({{}, run, {}, run.range.begin, run.range.end});
}

void FarTimes::decode(const Block& block, std::vector<Run>& runs) {
  Offset coded_to{};
  for (const std::byte* at = block.codes.data(); at != block.codes.data() + block.codes.size();) {
    const Offset begin = moved_by(coded_to, log::load_varint(at));
    coded_to = begin + log::load_varint(at);
    const auto step = static_cast<std::uint32_t>(log::load_varint(at));
    runs.push_back({{begin, coded_to}, step});
  }
  runs.push_back(block.last);
}

/// Removes the oldest blocks.
void FarTimes::remove_blocks(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) codes_bytes_ -= allocated(blocks_[at].codes.capacity());
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count));
  blocks_.shrink_to_fit();
}

void FarTimes::take_block(std::vector<Run>& runs) {
  decode(blocks_.front(), runs);
  remove_blocks(1);
}

void FarTimes::forget_before(Offset first, const log::OffsetSet* carried) {
  std::vector<Run> runs;
  std::size_t count = 0;
  for (; count < blocks_.size() && blocks_[count].end <= first; ++count) {
    const OffsetRange range{blocks_[count].begin, blocks_[count].end};
    if (carried != nullptr && carried->count_in(range) != 0) decode(blocks_[count], runs);
  }
  if (count == 0) return;
  remove_blocks(count);
  for (const Run& run : runs) add_carried(run, *carried);
}

/// Adds the messages of `run` that are in `carried`.
void FarTimes::add_carried(const Run& run, const log::OffsetSet& carried) {
  for (auto part = carried.first_behind(run.range.begin); part && part->begin < run.range.end;
       part = carried.first_behind(part->end)) {
    add({{std::max(part->begin, run.range.begin), std::min(part->end, run.range.end)}, run.step});
  }
}

}  // namespace lightq::broker
