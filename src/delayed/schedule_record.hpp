/// The broker's records in a schedule. docs/log_format.md, "Schedule", gives the bytes. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/bytes.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// These messages leave in this order, with sequence numbers that ascend by one from `first_sequence` on. In
/// the topic's log they are at `log_offset` or behind it.
struct PlanRecord {
  std::uint64_t first_sequence = 0;
  std::uint64_t log_offset = 0;
  std::vector<std::uint64_t> numbers;
  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

/// Messages with these sequence numbers are durable in the topic's log. A message that was planned again has
/// only its last number.
struct DoneRecord {
  std::vector<NumberRange> sequences;
  friend bool operator==(const DoneRecord&, const DoneRecord&) = default;
};

/// These messages do not wait any more.
struct CancelRecord {
  std::vector<std::uint64_t> numbers;
  friend bool operator==(const CancelRecord&, const CancelRecord&) = default;
};

/// These messages are due at another time.
struct DueRecord {
  std::int64_t due_us = 0;
  std::vector<std::uint64_t> numbers;
  friend bool operator==(const DueRecord&, const DueRecord&) = default;
};

/// A waiting message that was stored before, so that its former place can be dropped. `message` refers to
/// the record's bytes.
struct CopyRecord {
  std::uint64_t number = 0;
  std::int64_t due_us = 0;
  std::int64_t arrived_us = 0;
  AttributeKinds kinds;
  ByteView message;
};

using ScheduleRecord = std::variant<PlanRecord, DoneRecord, CancelRecord, DueRecord, CopyRecord>;

/// The most numbers that one record names.
inline constexpr std::size_t schedule_record_numbers_max = 8192;
inline constexpr std::size_t schedule_record_ranges_max = schedule_record_numbers_max / 2;

std::vector<std::byte> encode_plan(std::uint64_t first_sequence, std::uint64_t log_offset,
                                   std::span<const std::uint64_t> numbers);
/// Requires: at most schedule_record_ranges_max ranges, none of them empty.
std::vector<std::byte> encode_done(std::span<const NumberRange> sequences);
std::vector<std::byte> encode_cancel(std::span<const std::uint64_t> numbers);
std::vector<std::byte> encode_due(std::int64_t due_us, std::span<const std::uint64_t> numbers);
std::vector<std::byte> encode_copy(const CopyRecord& copy);

/// The reason why a record cannot be decoded.
enum class RecordFault : std::uint8_t {
  newer,    ///< a kind that this version does not know: perhaps sound
  invalid,  ///< wrong in itself
};

struct DecodedRecord {
  std::optional<ScheduleRecord> record;
  RecordFault fault = RecordFault::invalid;  ///< without a record
};
/// Decodes the payload of a record of the broker. Lifetime: a copy's message refers to `payload`.
DecodedRecord decode_schedule_record(ByteView payload);

/// Appends records of the broker to a schedule's log, as one batch if one takes so many
/// (limits::batch_records_max), otherwise as several. Returns the end of the log behind them. Errors:
/// io_error, no_space; then the first batches may be in the log.
Result<Offset> append_records(log::BatchLog& log, std::span<const std::vector<std::byte>> records,
                              Timestamp now);

}  // namespace lightq::broker
