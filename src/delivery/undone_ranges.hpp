/// Iterates over a group's unfinished messages in ascending order, without collecting them. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <queue>
#include <vector>

#include "delivery/group_member.hpp"
#include "delivery/group_standing.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/redelivery_queue.hpp"

namespace lightq::broker {

/// Merges the redelivery queue, the members' messages in flight, and the plain consumers' unsent messages.
/// Each step costs one search in one of them. So a caller that needs the first few thousand ranges of a
/// million pays only for these. Lifetime: the parts outlive this object, and do not change meanwhile.
class UndoneRanges {
 public:
  UndoneRanges(const RedeliveryQueue& redelivery, const GroupStanding& standing,
               const std::vector<RecordSink*>& plain_consumers)
      : redelivery_(redelivery), fronts_(standing.fronts) {
    for (const RecordSink* const consumer : plain_consumers) {
      for (const Offset offset : consumer->unsent()) unsent_.push_back(offset);
    }
    std::sort(unsent_.begin(), unsent_.end());
    push(redelivery_.first_behind(Offset{0}), redelivery_source);
    push_unsent();
  }

  /// Returns the next range, ordered by its begin, or nothing at the end.
  std::optional<OffsetRange> next() {
    for (const auto* front = fronts_.front();
         front != nullptr && (heads_.empty() || front->offset <= heads_.top().range.begin);
         front = fronts_.front()) {
      push_outstanding(*front->member, Offset{0});
      fronts_.next();
    }
    if (heads_.empty()) return std::nullopt;
    const Head head = heads_.top();
    heads_.pop();
    if (head.is_unsent) {
      push_unsent();
    } else if (head.member == redelivery_source) {
      push(redelivery_.first_behind(head.range.end), redelivery_source);
    } else {
      push_outstanding(*head.member, head.range.end);
    }
    return head.range;
  }

 private:
  struct Head {
    OffsetRange range;
    const GroupMember* member;
    bool is_unsent = false;
    friend bool operator<(const Head& one, const Head& other) { return other.range.begin < one.range.begin; }
  };
  static constexpr const GroupMember* redelivery_source = nullptr;

  void push(const std::optional<OffsetRange>& range, const GroupMember* member) {
    if (range) heads_.push({*range, member});
  }
  void push_outstanding(const GroupMember& member, Offset behind) {
    if (const auto entry = member.outstanding().first_behind(behind)) push(entry->range, &member);
  }
  void push_unsent() {
    if (unsent_at_ == unsent_.size()) return;
    const Offset offset = unsent_[unsent_at_++];
    heads_.push({{offset, offset + 1}, nullptr, true});
  }

  const RedeliveryQueue& redelivery_;
  MemberFronts<GroupMember>::Ascending fronts_;  // of the members whose ranges are not in heads_ yet
  std::vector<Offset> unsent_;
  std::size_t unsent_at_ = 0;
  std::priority_queue<Head> heads_;  // the lowest begin on top
};

}  // namespace lightq::broker
