/// Encodes and decodes the dead messages of a cursor. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/saved_dead_code.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include <lightq/base/bytes.hpp>

#include "log/offsets/run_code.hpp"

namespace lightq::log {

namespace {

constexpr std::size_t time_bytes = 8;

void append_time(Timestamp time, std::vector<std::byte>& to) {
  std::array<std::byte, time_bytes> bytes{};
  store_little_endian(bytes.data(), time.us);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::optional<Timestamp> take_time(ByteView& bytes) {
  if (bytes.size() < time_bytes) return std::nullopt;
  const Timestamp time{load_little_endian<std::int64_t>(bytes.data())};
  bytes = bytes.subspan(time_bytes);
  return time;
}

/// Takes the messages under way, which are in the outbox.
bool take_under_way(ByteView& bytes, const SetBounds& bounds, SavedDead& saved) {
  const auto count = take_varint(bytes);
  if (!count || *count > SavedDead::under_way_max || *count > saved.outbox.size()) return false;
  OffsetSet seen;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto step = take_varint(bytes);
    if (!step || *step >= distance(bounds.offset, bounds.next)) return false;
    const Offset message = bounds.offset + *step;
    if (!saved.outbox.contains(message) || seen.contains(message)) return false;
    seen.add({message, message + 1});
    saved.under_way.push_back(message);
  }
  return true;
}

bool take_outbox(ByteView& bytes, const SetBounds& bounds, SavedDead& saved, std::size_t& memory_left) {
  auto outbox = take_part(bytes, bounds, memory_left);
  if (!outbox) return false;
  saved.outbox = std::move(*outbox);
  if (!are_parts_once({{{}, saved.parked}, {{}, saved.outbox}}, bounds.messages)) return false;
  if (!take_under_way(bytes, bounds, saved)) return false;
  const auto first_number = take_varint(bytes);
  const auto incarnation = take_varint(bytes);
  const auto target = take_varint(bytes);
  if (!first_number || !incarnation || !target) return false;
  if (*first_number == 0 || *first_number > SavedDead::first_number_max) return false;
  if ((*incarnation == 0) != (*target == 0)) return false;
  if (*incarnation == 0 && (!saved.under_way.empty() || *first_number != 1)) return false;
  saved.first_number = *first_number;
  saved.incarnation = *incarnation;
  saved.target = *target;
  return true;
}

bool take_records(ByteView& bytes, const SetBounds& bounds, SavedDead& saved, const OffsetSet& dead,
                  std::size_t& memory_left) {
  const auto count = take_varint(bytes);
  if (!count || *count > SavedDead::records_max || *count > bytes.size()) return false;
  Offset from = bounds.offset;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto gap = take_varint(bytes);
    if (!gap || from >= bounds.next || *gap >= distance(from, bounds.next)) return false;
    SavedDeath record;
    record.offset = from + *gap;
    from = record.offset + 1;
    const auto first = take_time(bytes);
    const auto last = take_time(bytes);
    const auto length = take_varint(bytes);
    if (!first || !last || !length) return false;
    if (*length > SavedDead::reason_bytes_max || *length > bytes.size()) return false;
    if (!dead.contains(record.offset)) return false;
    if (!take_memory(2 * sizeof record + *length, memory_left)) return false;
    record.first_failure = *first;
    record.last_failure = *last;
    record.reason = as_text(bytes.first(*length));
    bytes = bytes.subspan(*length);
    saved.records.push_back(std::move(record));
  }
  return true;
}

/// Returns the messages that are not in `removed`.
OffsetSet all_but(OffsetSet messages, const OffsetSet& removed) {
  removed.for_each([&](OffsetRange run) { messages.remove(run); });
  return messages;
}

}  // namespace

std::size_t saved_dead_code_bytes_max(const SavedDead& dead) {
  std::size_t bytes = 6 * varint_bytes_max + set_code_bytes_max(dead.parked) +
                      set_code_bytes_max(dead.rejected) + set_code_bytes_max(dead.expired) +
                      set_code_bytes_max(dead.outbox) + dead.under_way.size() * varint_bytes_max;
  for (const SavedDeath& record : dead.records)
    bytes += 2 * varint_bytes_max + 2 * time_bytes + record.reason.size();
  for (const auto& [time, part] : dead.first_failures) bytes += varint_bytes_max + set_code_bytes_max(part);
  return bytes;
}

void append_saved_dead(const SavedDead& dead, const OffsetSet& messages, Offset offset, DeadParts parts,
                       std::vector<std::byte>& to) {
  assert(parts == DeadParts::all || (parts == DeadParts::without_expired && dead.expired.empty()));
  assert(dead.under_way.size() <= SavedDead::under_way_max && dead.records.size() <= SavedDead::records_max);
  append_part(dead.parked, messages, offset, to);
  append_part(dead.rejected, messages, offset, to);
  if (parts == DeadParts::all) append_part(dead.expired, messages, offset, to);
  append_part(dead.outbox, messages, offset, to);
  append_varint(dead.under_way.size(), to);
  for (const Offset message : dead.under_way) append_varint(distance(offset, message), to);
  append_varint(dead.first_number, to);
  append_varint(dead.incarnation, to);
  append_varint(dead.target, to);
  append_varint(dead.records.size(), to);
  Offset from = offset;
  for (const SavedDeath& record : dead.records) {
    assert(record.reason.size() <= SavedDead::reason_bytes_max);
    append_varint(distance(from, record.offset), to);
    append_time(record.first_failure, to);
    append_time(record.last_failure, to);
    append_varint(record.reason.size(), to);
    const ByteView reason = as_byte_view(record.reason);
    to.insert(to.end(), reason.begin(), reason.end());
    from = record.offset + 1;
  }
  append_timed_parts(dead.first_failures, messages, offset, to);
}

std::optional<SavedDead> take_saved_dead(ByteView& bytes, const SetBounds& bounds, const TimedSets& delayed,
                                         DeadParts parts, std::size_t& memory_left) {
  SavedDead saved;
  auto parked = take_part(bytes, bounds, memory_left);
  if (!parked) return std::nullopt;
  auto rejected = take_part(bytes, bounds, memory_left);
  if (!rejected) return std::nullopt;
  saved.parked = std::move(*parked);
  saved.rejected = std::move(*rejected);
  if (parts == DeadParts::all) {
    auto expired = take_part(bytes, bounds, memory_left);
    if (!expired) return std::nullopt;
    saved.expired = std::move(*expired);
  }
  if (!take_outbox(bytes, bounds, saved, memory_left)) return std::nullopt;
  OffsetSet dead = saved.parked;
  saved.outbox.for_each([&](OffsetRange run) { dead.add(run); });
  if (!take_memory(dead.bytes(), memory_left)) return std::nullopt;
  if (!are_parts_once({{{}, saved.rejected}, {{}, saved.expired}}, dead)) return std::nullopt;
  if (!take_records(bytes, bounds, saved, dead, memory_left)) return std::nullopt;
  auto first_failures = take_timed_parts(bytes, bounds, SavedDead::times_max, memory_left);
  if (!first_failures) return std::nullopt;
  const OffsetSet living = all_but(bounds.messages, dead);
  if (!are_parts_once(*first_failures, living) || !are_parts_once(delayed, living)) return std::nullopt;
  saved.first_failures = std::move(*first_failures);
  return saved;
}

}  // namespace lightq::log
