/// Encodes and decodes the unfinished messages of a cursor. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/unfinished_code.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "log/offsets/run_code.hpp"
#include "log/saved_state/saved_dead_code.hpp"
#include "log/saved_state/set_code.hpp"

namespace lightq::log {

namespace {

bool take_delivery_bits(ByteView& bytes, const SetBounds& bounds, std::vector<OffsetSet>& bits,
                        std::size_t& memory_left) {
  const auto count = take_varint(bytes);
  if (!count || *count > Unfinished::delivery_bits_max) return false;
  for (std::uint64_t i = 0; i < *count; ++i) {
    // A vector may have room for twice its elements.
    if (!take_memory(2 * sizeof(OffsetSet), memory_left)) return false;
    auto bit = take_part(bytes, bounds, memory_left);
    if (!bit) return false;
    bits.push_back(std::move(*bit));
  }
  return bits.empty() || !bits.back().empty();
}

}  // namespace

std::size_t unfinished_code_bytes_max(const Unfinished& unfinished) {
  std::size_t bytes = 3 * varint_bytes_max + set_code_bytes_max(unfinished.messages);
  for (const OffsetSet& bit : unfinished.delivery_bits) bytes += set_code_bytes_max(bit);
  for (const auto& [due, part] : unfinished.delayed) bytes += varint_bytes_max + set_code_bytes_max(part);
  return bytes + saved_dead_code_bytes_max(unfinished.dead);
}

void append_unfinished(const Unfinished& unfinished, Offset offset, DeadParts dead_parts,
                       std::vector<std::byte>& to) {
  assert(unfinished.delivery_bits.size() <= Unfinished::delivery_bits_max);
  assert(unfinished.delayed.size() <= Unfinished::delayed_max);
  assert(dead_parts != DeadParts::none || unfinished.dead.empty());
  append_varint(distance(offset, std::max(offset, unfinished.next)), to);
  append_set(unfinished.messages, offset, to);
  append_varint(unfinished.delivery_bits.size(), to);
  for (const OffsetSet& bit : unfinished.delivery_bits) append_part(bit, unfinished.messages, offset, to);
  append_timed_parts(unfinished.delayed, unfinished.messages, offset, to);
  if (dead_parts != DeadParts::none)
    append_saved_dead(unfinished.dead, unfinished.messages, offset, dead_parts, to);
}

std::optional<Unfinished> take_unfinished(ByteView& bytes, Offset offset, DeadParts dead_parts,
                                          std::size_t& memory_left) {
  Unfinished unfinished;
  const auto delivered = take_varint(bytes);
  if (!delivered || *delivered > ~offset.value) return std::nullopt;
  unfinished.next = offset + *delivered;
  auto messages = take_set(bytes, offset, unfinished.next, memory_left);
  if (!messages) return std::nullopt;
  unfinished.messages = std::move(*messages);
  const SetBounds bounds{offset, unfinished.next, unfinished.messages};
  if (!take_delivery_bits(bytes, bounds, unfinished.delivery_bits, memory_left)) return std::nullopt;
  auto delayed = take_timed_parts(bytes, bounds, Unfinished::delayed_max, memory_left);
  if (!delayed) return std::nullopt;
  unfinished.delayed = std::move(*delayed);
  if (dead_parts == DeadParts::none) return unfinished;
  auto dead = take_saved_dead(bytes, bounds, unfinished.delayed, dead_parts, memory_left);
  if (!dead) return std::nullopt;
  unfinished.dead = std::move(*dead);
  return unfinished;
}

}  // namespace lightq::log
