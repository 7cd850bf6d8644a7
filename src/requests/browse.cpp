/// A read of messages that changes nothing. Layer: requests.
#include "requests/browse.hpp"

#include <string>
#include <utility>

#include "delivery/dispatch_turn.hpp"
#include "requests/request_errors.hpp"

namespace lightq::broker {

/// A turn of one read. See dispatch_turn. Lifetime: the read outlives it.
class Browse::Turn {
 public:
  explicit Turn(Browse& browse) : browse_(browse) {}

  [[nodiscard]] bool has_budget() const { return true; }
  [[nodiscard]] bool can_take() const {
    return browse_.browsed_.messages.size() < browse_.wish_.messages_max &&
           browse_.bytes_ < browse_.wish_.bytes_max;
  }
  [[nodiscard]] SliceLimits limits() const {
    return {.records = browse_.wish_.messages_max - browse_.browsed_.messages.size(),
            .message_bytes = browse_.wish_.bytes_max - browse_.bytes_};
  }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    append_copies(slice, {.delivery = 0, .expired = delivered.expired}, browse_.browsed_.messages);
    browse_.bytes_ += slice.message_bytes();
    browse_.browsed_.held->add(slice.message_bytes());
    source.taken(slice.count, slice.records.size());
  }

 private:
  Browse& browse_;
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
  if (!browsed_.messages.empty()) return answer();
  fail({ErrorCode::timeout, "the disk did not answer in time"});
}

void Browse::answer() {
  browsed_.next = reader_->offset();
  browsed_.lost = reader_->lost();
  std::exchange(done_, nullptr)(std::move(browsed_));
}

void Browse::fail(Error why) {
  std::exchange(done_, nullptr)(std::move(why));
}

}  // namespace lightq::broker
