/// Stores delayed messages, and changes them by commands. Layer: delayed.
#include "delayed/schedule.hpp"

#include <utility>

namespace lightq::broker {

log::AppendResult Schedule::append(std::span<std::byte> batch, Timestamp now) {
  const ScheduledMessages::Stored stored = messages_.append(batch, now);
  if (stored.result.outcome == log::AppendOutcome::appended) moves_.note(stored.first);
  return stored.result;
}

/// Writes a record of a command. In memory there is none.
Result<void> Schedule::write(const std::vector<std::byte>& record, Timestamp now) {
  if (messages_.log() == nullptr) return {};
  const auto written = append_records(*messages_.log(), {&record, 1}, now);
  return written ? Result<void>() : Result<void>(written.error());
}

Result<void> Schedule::cancel(std::span<const std::uint64_t> numbers, Timestamp now) {
  if (numbers.empty()) return {};
  if (auto written = write(encode_cancel(numbers), now); !written) return written;
  for (const std::uint64_t number : numbers) messages_.forget(number);
  const log::BatchLog* const log = messages_.log();
  cancelled_.add(numbers, log == nullptr ? 0 : log->next_offset().value - 1);
  cancelled_so_far_ += numbers.size();
  return {};
}

Result<void> Schedule::set_due(std::span<const std::uint64_t> numbers, Timestamp due, Timestamp now) {
  if (numbers.empty()) return {};
  if (auto written = write(encode_due(due.us, numbers), now); !written) return written;
  for (const std::uint64_t number : numbers) {
    messages_.set_due(number, due.us);
    moves_.note({due.us, number});
  }
  return {};
}

Result<std::uint64_t> Schedule::give_up_first(Timestamp now) {
  const std::uint64_t number = moves_.first_number();
  if (const auto written = write(encode_cancel({&number, 1}), now); !written) return written.error();
  messages_.forget(number);
  return number;
}

DelayedStats Schedule::stats() const {
  DelayedStats stats;
  stats.messages = waiting().size();
  stats.bytes = charged_bytes();
  if (const DuePosition* const first = waiting().first()) stats.next_due = Timestamp{first->due_us};
  stats.moved = moves_.moved_so_far();
  stats.cancelled = cancelled_so_far_;
  stats.corrupt = messages_.corrupt();
  stats.late_us_max = moves_.late_us_max();
  return stats;
}

}  // namespace lightq::broker
