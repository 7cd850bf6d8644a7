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
      bytes_ -= block.codes.capacity();
      block.codes.insert(block.codes.end(), code.data(), end);
      bytes_ += block.codes.capacity();
      block.coded_to = block.last.range.end;
      block.last = run;
      return;
    }
  }
  blocks_.push_back({{}, run, {}, run.range.end});
  bytes_ += entry_bytes;
}

void FarTimes::take_block(std::vector<Run>& runs) {
  Block& block = blocks_.front();
  Offset coded_to{};
  for (const std::byte* at = block.codes.data(); at != block.codes.data() + block.codes.size();) {
    const Offset begin = moved_by(coded_to, log::load_varint(at));
    coded_to = begin + log::load_varint(at);
    const auto step = static_cast<std::uint32_t>(log::load_varint(at));
    runs.push_back({{begin, coded_to}, step});
  }
  runs.push_back(block.last);
  bytes_ -= block.codes.capacity() + entry_bytes;
  blocks_.pop_front();
}

void FarTimes::forget_before(Offset first) {
  while (!blocks_.empty() && blocks_.front().end <= first) {
    bytes_ -= blocks_.front().codes.capacity() + entry_bytes;
    blocks_.pop_front();
  }
}

}  // namespace lightq::broker
