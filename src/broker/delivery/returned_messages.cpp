/// Layer: delivery.
#include "broker/delivery/returned_messages.hpp"

namespace lightq::broker {

SteadyTime ReturnedMessages::release(SteadyTime now) {
  delayed_.cut_if([&](const Delayed& delayed) { return delayed.due <= now; },
                  [&](OffsetRange range, const Delayed& delayed) { add(range, delayed.deliveries); });
  SteadyTime next = never;
  delayed_.for_each([&](OffsetRange, const Delayed& delayed) { next = std::min(next, delayed.due); });
  return next;
}

std::optional<ReturnedMessages::Slice> ReturnedMessages::next_slice(log::Log& log, std::uint64_t records_max,
                                                                    std::uint64_t message_bytes_max,
                                                                    CodecSet codecs) {
  if (records_max == 0 || message_bytes_max == 0) return std::nullopt;
  while (!ready_.empty()) {
    const auto front = ready_.front();
    walk_.move_to(front.range.begin);
    const auto slice = walk_.next_slice(log, front.range.end, records_max, message_bytes_max, codecs);
    // What was passed over is not there any more.
    ready_.cut({front.range.begin, slice ? slice->range().begin : front.range.end});
    if (slice) return Slice{*slice, front.value};
  }
  return std::nullopt;
}

std::optional<Offset> ReturnedMessages::first() const {
  if (ready_.empty() && delayed_.empty()) return std::nullopt;
  if (delayed_.empty()) return ready_.front().range.begin;
  if (ready_.empty()) return delayed_.front().range.begin;
  return std::min(ready_.front().range.begin, delayed_.front().range.begin);
}

std::uint64_t ReturnedMessages::fresh_messages_from(Offset first) const {
  std::uint64_t messages = 0;
  ready_.for_each([&](OffsetRange range, std::uint32_t deliveries) {
    if (deliveries == 0 && range.end > first) messages += distance(std::max(range.begin, first), range.end);
  });
  return messages;
}

void ReturnedMessages::append_ranges_to(std::vector<OffsetRange>& ranges) const {
  const auto append = [&](OffsetRange range, const auto&) { ranges.push_back(range); };
  ready_.for_each(append);
  delayed_.for_each(append);
}

}  // namespace lightq::broker
