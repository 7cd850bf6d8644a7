/// Layer: delivery.
#include "broker/delivery/group_member.hpp"

#include <cassert>
#include <utility>

namespace lightq::broker {

GroupMember::GroupMember(SessionConsumer& consumer, const session::ConsumeOpen& asked,
                         const GroupLimits& group_limits)
    : consumer_(&consumer),
      automatic_(asked.acknowledgement == session::Acknowledgement::automatic),
      ack_timeout_ms_(asked.ack_timeout_ms != 0 ? asked.ack_timeout_ms : limits::ack_timeout_ms_default),
      limits_(group_limits),
      messages_left_(asked.credit_messages),
      bytes_left_(static_cast<std::int64_t>(asked.credit_bytes)) {}

bool GroupMember::can_take() const {
  if (!begun_ || consumer_ == nullptr || messages_left() == 0 || bytes_left_ <= 0) return false;
  // Half of the limit is left for acknowledging what lies between.
  return outstanding_.ranges() < limits_.outstanding_ranges_max / 2 && consumer_->writable();
}

bool GroupMember::add_credit(const session::Credit& credit) {
  const std::int64_t bytes_max = static_cast<std::int64_t>(session::credit_bytes_max);
  if (messages_left_ + credit.messages > session::credit_messages_max) return false;
  if (bytes_left_ > bytes_max - static_cast<std::int64_t>(credit.bytes)) return false;
  messages_left_ += credit.messages;
  bytes_left_ += static_cast<std::int64_t>(credit.bytes);
  return true;
}

std::uint32_t GroupMember::deliver(const HandedSlice& handed, SteadyTime now) {
  const BatchSlice& slice = handed.slice;
  assert(can_take() && slice.count <= messages_left());
  messages_left_ -= slice.count;
  bytes_left_ -= static_cast<std::int64_t>(slice.message_bytes());
  unflushed_ = true;
  consumer_->deliver(handed);
  // It may have left meanwhile; what it has then comes back with all that it has.
  const std::uint32_t taken = slice.count - (consumer_ != nullptr ? consumer_->refused() : 0);
  if (!automatic_ && taken > 0) {
    const SteadyTime deadline = deadline_after(now, ack_timeout_ms_);
    const Offset begin = slice.range().begin;
    outstanding_.assign({begin, begin + taken}, {handed.delivery, deadline});
    next_deadline_ = std::min(next_deadline_, deadline);
  }
  return taken;
}

void GroupMember::extend(const std::vector<OffsetRange>& ranges, SteadyTime deadline) {
  for (const OffsetRange& range : ranges)
    outstanding_.update(range, [&](Handing& handing) { handing.deadline = deadline; });
  next_deadline_ = std::min(next_deadline_, deadline);
}

void GroupMember::flush() {
  if (std::exchange(unflushed_, false) && consumer_ != nullptr) consumer_->flush();
}

}  // namespace lightq::broker
