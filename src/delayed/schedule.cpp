/// Stores delayed messages, and changes them by commands. Layer: delayed.
#include "delayed/schedule.hpp"

#include <utility>

namespace lightq::broker {

namespace {

/// Calls `act(first, count)` for each part of `numbers` in which each is one above the one before.
template <typename Act>
void for_each_range(std::span<const std::uint64_t> numbers, const Act& act) {
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    act(numbers[begin], static_cast<std::uint32_t>(end - begin));
    begin = end;
  }
}

}  // namespace

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
  for_each_range(numbers,
                 [&](std::uint64_t number, std::uint32_t count) { messages_.forget(number, count); });
  const log::BatchLog* const log = messages_.log();
  cancelled_.add(numbers, log == nullptr ? 0 : log->next_offset().value - 1);
  cancelled_so_far_ += numbers.size();
  return {};
}

Result<void> Schedule::set_due(std::span<const std::uint64_t> numbers, Timestamp due, Timestamp now) {
  if (numbers.empty()) return {};
  if (auto written = write(encode_due(due.us, numbers), now); !written) return written;
  for_each_range(numbers, [&](std::uint64_t number, std::uint32_t count) {
    messages_.set_due(number, count, due.us);
    moves_.note({due.us, number});
  });
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
