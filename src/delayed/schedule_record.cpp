/// Encodes and decodes the broker's records in a schedule. Layer: delayed.
#include "delayed/schedule_record.hpp"

#include <algorithm>
#include <cassert>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

// The kinds of records, in the first byte.
constexpr std::uint8_t kind_plan = 1;
constexpr std::uint8_t kind_done = 2;
constexpr std::uint8_t kind_cancel = 3;
constexpr std::uint8_t kind_due = 4;
constexpr std::uint8_t kind_copy = 5;

template <typename T>
void put(std::vector<std::byte>& to, T value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  store_little_endian(to.data() + at, value);
}

void put_numbers(std::vector<std::byte>& to, std::span<const std::uint64_t> numbers) {
  assert(!numbers.empty() && numbers.size() <= schedule_record_numbers_max);
  to.reserve(to.size() + numbers.size() * sizeof(std::uint64_t));
  for (const std::uint64_t number : numbers) put(to, number);
}

std::vector<std::byte> begin_record(std::uint8_t kind) {
  return {std::byte{kind}};
}

/// Reads fixed fields one after the other. `is_sound` becomes false at the first one that is not there.
struct FieldReader {
  ByteView left;
  bool is_sound = true;

  template <typename T>
  T take() {
    if (left.size() < sizeof(T)) {
      is_sound = false;
      return {};
    }
    const T value = load_little_endian<T>(left.data());
    left = left.subspan(sizeof(T));
    return value;
  }
  std::vector<std::uint64_t> take_numbers() {
    const std::size_t count = left.size() / sizeof(std::uint64_t);
    if (count == 0 || count > schedule_record_numbers_max || left.size() % sizeof(std::uint64_t) != 0) {
      is_sound = false;
      return {};
    }
    std::vector<std::uint64_t> numbers(count);
    for (std::uint64_t& number : numbers) number = take<std::uint64_t>();
    return numbers;
  }
};

std::optional<CopyRecord> decode_copy(FieldReader& fields) {
  CopyRecord copy;
  copy.number = fields.take<std::uint64_t>();
  copy.due_us = fields.take<std::int64_t>();
  copy.arrived_us = fields.take<std::int64_t>();
  copy.kinds = AttributeKinds(fields.take<std::uint16_t>());
  if (!fields.is_sound || !AttributeKinds(AttributeKinds::all).has_all_of(copy.kinds)) return std::nullopt;
  copy.message = fields.left;
  if (copy.kinds.any() && !AttributesView::measure(copy.kinds, copy.message)) return std::nullopt;
  return copy;
}

std::optional<ScheduleRecord> decode_fields(std::uint8_t kind, FieldReader fields) {
  std::optional<ScheduleRecord> record;
  switch (kind) {
    case kind_plan: {
      const auto first = fields.take<std::uint64_t>();
      const auto log_offset = fields.take<std::uint64_t>();
      PlanRecord plan{first, log_offset, fields.take_numbers()};
      if (plan.numbers.size() <= UINT64_MAX - first) record = std::move(plan);
      break;
    }
    case kind_done: {
      const auto numbers = fields.take_numbers();
      DoneRecord done;
      for (std::size_t at = 0; at + 1 < numbers.size(); at += 2) {
        fields.is_sound = fields.is_sound && numbers[at] < numbers[at + 1];
        done.sequences.push_back({numbers[at], numbers[at + 1]});
      }
      if (numbers.size() % 2 == 0) record = std::move(done);
      break;
    }
    case kind_cancel: record = CancelRecord{fields.take_numbers()}; break;
    case kind_due: {
      const auto due = fields.take<std::int64_t>();
      record = DueRecord{due, fields.take_numbers()};
      break;
    }
    default: record = decode_copy(fields); break;
  }
  if (!fields.is_sound) record.reset();
  return record;
}

}  // namespace

std::vector<std::byte> encode_plan(std::uint64_t first_sequence, std::uint64_t log_offset,
                                   std::span<const std::uint64_t> numbers) {
  auto record = begin_record(kind_plan);
  put(record, first_sequence);
  put(record, log_offset);
  put_numbers(record, numbers);
  return record;
}

std::vector<std::byte> encode_done(std::span<const NumberRange> sequences) {
  assert(!sequences.empty() && sequences.size() <= schedule_record_ranges_max);
  auto record = begin_record(kind_done);
  for (const NumberRange& range : sequences) {
    put(record, range.begin);
    put(record, range.end);
  }
  return record;
}

std::vector<std::byte> encode_cancel(std::span<const std::uint64_t> numbers) {
  auto record = begin_record(kind_cancel);
  put_numbers(record, numbers);
  return record;
}

std::vector<std::byte> encode_due(std::int64_t due_us, std::span<const std::uint64_t> numbers) {
  auto record = begin_record(kind_due);
  put(record, due_us);
  put_numbers(record, numbers);
  return record;
}

std::vector<std::byte> encode_copy(const CopyRecord& copy) {
  auto record = begin_record(kind_copy);
  put(record, copy.number);
  put(record, copy.due_us);
  put(record, copy.arrived_us);
  put(record, copy.kinds.bits());
  record.insert(record.end(), copy.message.begin(), copy.message.end());
  return record;
}

DecodedRecord decode_schedule_record(ByteView payload) {
  if (payload.empty()) return {};
  const auto kind = static_cast<std::uint8_t>(payload[0]);
  if (kind == 0) return {};
  if (kind > kind_copy) return {std::nullopt, RecordFault::newer};
  return {decode_fields(kind, {payload.subspan(1)}), RecordFault::invalid};
}

Result<Offset> append_records(log::BatchLog& log, std::span<const std::vector<std::byte>> records,
                              Timestamp now) {
  while (!records.empty()) {
    const auto some = records.first(std::min(records.size(), limits::batch_records_max));
    records = records.subspan(some.size());
    BatchBuilder batch;
    for (const auto& record : some) batch.add(record);
    const auto appended = log.append(batch.finish(), now);
    switch (appended.outcome) {
      case log::AppendOutcome::appended: break;
      case log::AppendOutcome::failed: return log.last_error();
      case log::AppendOutcome::full:
      case log::AppendOutcome::no_space:
      case log::AppendOutcome::too_large:
        return Error{ErrorCode::no_space, "the schedule has no space: " + log.last_error().message};
    }
  }
  return log.next_offset();
}

}  // namespace lightq::broker
