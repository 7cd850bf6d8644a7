/// Limits the members of all groups of a reactor, and the ranges that they keep, in total and by user.
/// Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

#include "admission/quota.hpp"

namespace lightq::broker {

/// The ranges of offsets that groups and their members keep in memory, and the members, of all topics of a
/// reactor. A user with half of either leaves the last eighth to others. The reactor's thread.
struct RangeBudget {
  using Share = Quota<std::uint64_t>;

  explicit RangeBudget(std::size_t ranges_max = limits::group_ranges_total,
                       std::size_t members_max = limits::group_members_total)
      : ranges({.total = ranges_max}), members({.total = members_max}) {}

  Share ranges;
  Share members;
};

/// The ranges of one owner, charged to one user. Lifetime: the budget outlives it. The reactor's thread.
class RangeCharge {
 public:
  /// Without a budget nothing is bounded.
  RangeCharge(RangeBudget* budget, std::uint64_t user)
      : ranges_(budget == nullptr ? nullptr : &budget->ranges, user), user_(user) {}

  /// Charges the ranges to `user` from now on, if they are charged to no user (0) yet.
  void claim(std::uint64_t user) {
    if (user_ != 0 || user == 0) return;
    ranges_.move_to(user);
    user_ = user;
  }
  /// The owner has this many ranges now.
  void set(std::size_t ranges) { ranges_.set(ranges); }
  [[nodiscard]] std::size_t ranges() const { return ranges_.units(); }
  /// Returns true if the owner may have one more range. A few ranges are always allowed, so that an owner can
  /// work while others use up the budget.
  [[nodiscard]] bool has_room() const {
    constexpr std::size_t ranges_free = 16;
    return ranges_.units() < ranges_free || ranges_.has_room();
  }

 private:
  RangeBudget::Share::Holding ranges_;
  std::uint64_t user_;
};

}  // namespace lightq::broker
