/// Stores delayed messages, and finds them by place. Layer: delayed.
#include "delayed/scheduled_messages.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace lightq::broker {

namespace {
constexpr DuePosition last_position{std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::uint64_t>::max()};
}  // namespace

ScheduledMessages::Stored ScheduledMessages::append(std::span<std::byte> batch, Timestamp now) {
  const BatchView view = BatchView::trusted(batch.data());
  assert(!view.is_compressed() && view.kinds().has(AttributeKinds::dues));
  if (log_ == nullptr) return append_to_memory(view, now);
  Stored stored{log_->append(batch, now), last_position};
  if (stored.result.outcome != log::AppendOutcome::appended) return stored;
  std::uint64_t number = stored.result.base.value;
  for (auto record = view.records(); !record.done(); record.next(), ++number) {
    const std::size_t bytes = without_due(view.kinds(), record.message()).size();
    const Timestamp due = waiting_until(record.attributes().due(), now);
    waiting_.add({number, due.us, number, static_cast<std::uint32_t>(bytes)});
    stored.first = std::min(stored.first, {due.us, number});
  }
  return stored;
}

ScheduledMessages::Stored ScheduledMessages::append_to_memory(const BatchView& batch, Timestamp now) {
  const std::uint64_t base = next_in_memory_;
  Stored stored{{log::AppendOutcome::appended, {base}}, last_position};
  std::optional<std::uint64_t> unindexed;  // stored, and not in the index yet
  try {
    for (auto record = batch.records(); !record.done(); record.next()) {
      const ByteView message = without_due(batch.kinds(), record.message());
      const Timestamp due = waiting_until(record.attributes().due(), now);
      const std::uint64_t place = kept_.add(without_due(batch.kinds()), now, message);
      unindexed = place;
      waiting_.add({next_in_memory_, due.us, place, static_cast<std::uint32_t>(message.size())});
      unindexed.reset();
      stored.first = std::min(stored.first, {due.us, next_in_memory_});
      ++next_in_memory_;
    }
  } catch (...) {
    if (unindexed) kept_.drop(*unindexed);
    for (std::uint64_t number = base; number < next_in_memory_; ++number) forget(number);
    next_in_memory_ = base;
    throw;
  }
  return stored;
}

void ScheduledMessages::load(const WaitingMessage& message) {
  waiting_.add(message);
  if (message.place != message.number) relocated_.insert({message.place, message.number});
}

void ScheduledMessages::forget(std::uint64_t number) {
  const WaitingMessage* const found = waiting_.find(number);
  if (found == nullptr) return;
  if (log_ == nullptr) {
    kept_.drop(found->place);
  } else if (found->place != number) {
    relocated_.erase(found->place);
  }
  waiting_.remove(number);
}

const WaitingMessage* ScheduledMessages::from_place(std::uint64_t at) {
  const bool from_lowest = at <= in_place_from_;
  const WaitingMessage* in_place = waiting_.from_number(std::max(at, in_place_from_));
  while (in_place != nullptr && in_place->place != in_place->number) {
    if (from_lowest) in_place_from_ = in_place->number + 1;
    in_place = waiting_.from_number(in_place->number + 1);
  }
  const Relocated* const copied = relocated_.at(relocated_.lower_bound(at));
  if (copied == nullptr || (in_place != nullptr && in_place->place < copied->place)) return in_place;
  return waiting_.find(copied->number);
}

void ScheduledMessages::copied(std::uint64_t number, std::uint64_t place) {
  const WaitingMessage* const message = waiting_.find(number);
  if (message->place != number) relocated_.erase(message->place);
  waiting_.set_place(number, place);
  relocated_.insert({place, number});
}

}  // namespace lightq::broker
