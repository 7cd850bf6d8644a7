/// A read of messages that changes nothing. Layer: requests.
#include "requests/browse.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <lightq/base/limits.hpp>

#include "delivery/dispatch_turn.hpp"
#include "requests/request_errors.hpp"

namespace lightq::broker {

/// A turn of one read. See dispatch_turn. Lifetime: the read outlives it.
class Browse::Turn {
 public:
  explicit Turn(Browse& browse) : browse_(browse) {}

  [[nodiscard]] bool has_budget() const { return scanned_bytes_ < scanned_bytes_per_turn; }
  [[nodiscard]] bool can_take() const {
    return browse_.browsed_.messages.size() < browse_.wish_.messages_max &&
           browse_.bytes_ < browse_.wish_.bytes_max && browse_.scanned_ < browse_.wish_.scanned_max &&
           browse_.scanned_bytes_ < browse_.wish_.scanned_bytes_max;
  }
  [[nodiscard]] SliceLimits limits() const {
    if (browse_.wish_.key)
      return {.records = std::min(browse_.wish_.scanned_max - browse_.scanned_, scanned_per_slice),
              .message_bytes = scanned_bytes_per_turn};
    return {.records = browse_.wish_.messages_max - browse_.browsed_.messages.size(),
            .message_bytes = browse_.wish_.bytes_max - browse_.bytes_};
  }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    if (browse_.wish_.key) return scan(source, delivered);
    append_copies(slice, {.delivery = 0, .expired = delivered.expired}, browse_.browsed_.messages);
    browse_.bytes_ += slice.message_bytes();
    browse_.browsed_.held->add(slice.message_bytes());
    source.taken(slice.count, slice.records.size());
  }

 private:
  static constexpr std::uint64_t scanned_per_slice = 1024;
  static constexpr std::uint64_t scanned_bytes_per_turn = 1 * limits::MiB;  // about a millisecond
  static constexpr std::uint64_t bytes_per_step = 16;  // a step to the next record counts as so many bytes

  /// Copies the messages with the key, until there are enough.
  void scan(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    std::uint32_t index = 0;
    std::uint32_t passed = 0;
    std::size_t passed_bytes = 0;
    scanned_bytes_ += slice.first * bytes_per_step;
    for (auto record = slice.batch.records(); !record.done() && index < slice.first + slice.count;
         record.next(), ++index) {
      if (index < slice.first) continue;
      if (passed > 0 && !(can_take() && has_budget())) break;
      ++passed;
      ++browse_.scanned_;
      const std::size_t bytes = record_bytes(record.message().size());
      passed_bytes += bytes;
      if (record.attributes().key() != *browse_.wish_.key) continue;
      scanned_bytes_ += index * bytes_per_step;  // append_copies goes through the batch again
      const BatchSlice one{.batch = slice.batch, .first = index, .count = 1, .records = {}};
      append_copies(one, {.delivery = 0, .expired = delivered.expired}, browse_.browsed_.messages);
      browse_.browsed_.held->add(bytes);
      browse_.bytes_ += bytes;
    }
    scanned_bytes_ += passed_bytes;
    browse_.scanned_bytes_ += passed_bytes;
    source.taken(passed, passed_bytes);
  }

  Browse& browse_;
  std::uint64_t scanned_bytes_ = 0;  // in this turn
};

Browse::Browse(Parts parts, const BrowseWish& wish, Done done)
    : parts_(std::move(parts)), wish_(wish), done_(std::move(done)) {
  browsed_.held = std::make_shared<CopiedBytes::Holding>(parts_.copies);
}

void Browse::go_on() {
  TopicRuntime* const topic = parts_.find();
  if (is_over()) return;
  if (topic == nullptr) return fail({ErrorCode::topic_not_found, "topic not found"});
  if (!parts_.requester.may(parts_.access, *topic)) return fail(right_withdrawn());
  if (!reader_) {
    const auto start = topic->reads().find(wish_.start);
    if (!start) return fail(start.error());
    reader_.emplace(*start);
  }
  if (!parts_.copies->has_room()) return browsed_.messages.empty() ? fail(too_many_copies()) : answer();
  Turn turn(*this);
  switch (topic->reads().read(*reader_, turn)) {
    case TurnEnd::over: return parts_.later();
    case TurnEnd::pending: is_waiting_ = true; return topic->reads().await(*this);
    case TurnEnd::unavailable:
      if (browsed_.messages.empty())
        return fail({ErrorCode::io_error, "the messages cannot be read now; ask again"});
      return answer();
    case TurnEnd::no_consumer:
    case TurnEnd::no_message: return answer();
  }
}

void Browse::readable() {
  is_waiting_ = false;
  parts_.later();
}

void Browse::stop_waiting() {
  if (!std::exchange(is_waiting_, false)) return;
  if (TopicRuntime* const topic = parts_.find()) topic->reads().forget(*this);
}

void Browse::give_up() {
  if (is_over()) return;
  stop_waiting();
  if (!browsed_.messages.empty() || scanned_ > 0) return answer();
  fail({ErrorCode::timeout, "the disk did not answer in time"});
}

void Browse::answer() {
  browsed_.next = reader_->offset();
  browsed_.lost = reader_->lost();
  if (wish_.key) browsed_.scanned = scanned_;
  std::exchange(done_, nullptr)(std::move(browsed_));
}

void Browse::fail(Error why) {
  std::exchange(done_, nullptr)(std::move(why));
}

}  // namespace lightq::broker
