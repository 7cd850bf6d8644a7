/// Limits the members of all groups of a reactor, and the ranges that they keep, in total and by user.
/// Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <lightq/base/limits.hpp>

#include "admission/fair_share.hpp"

namespace lightq::broker {

/// Counts the ranges of offsets that groups and their members keep in memory. A user with half of the budget
/// leaves the last eighth to others (FairShare). The reactor's thread.
class RangeBudget {
 public:
  explicit RangeBudget(std::size_t ranges_max = limits::group_ranges_total,
                       std::size_t members_max = limits::group_members_total)
      : share_(ranges_max), member_share_(members_max) {}
  RangeBudget(const RangeBudget&) = delete;
  RangeBudget& operator=(const RangeBudget&) = delete;

  /// Ranges counted now.
  [[nodiscard]] std::size_t ranges() const { return ranges_; }
  /// Members counted now.
  [[nodiscard]] std::size_t members() const { return members_; }
  /// Returns true if the user may have one more member.
  [[nodiscard]] bool has_room_for_member(std::uint64_t user) const {
    const auto found = users_.find(user);
    const std::size_t own = found == users_.end() ? 0 : found->second.members;
    return member_share_.ask(members_, user, own) == FairShare::Verdict::room;
  }

 private:
  friend class RangeCharge;
  struct User {
    std::size_t ranges = 0;
    std::size_t members = 0;
    std::size_t charges = 0;
  };

  FairShare share_;
  FairShare member_share_;
  std::size_t ranges_ = 0;
  std::size_t members_ = 0;
  std::unordered_map<std::uint64_t, User> users_;  // those with a charge; nodes stay where they are
};

/// The ranges of one owner, charged to one user. Lifetime: the budget outlives it. The reactor's thread.
class RangeCharge {
 public:
  /// Without a budget nothing is bounded.
  RangeCharge(RangeBudget* budget, std::uint64_t user) : budget_(budget), user_(user) {
    if (budget_ == nullptr) return;
    own_ = &budget_->users_[user_];
    ++own_->charges;
  }
  RangeCharge(const RangeCharge&) = delete;
  RangeCharge& operator=(const RangeCharge&) = delete;
  ~RangeCharge() {
    if (budget_ == nullptr) return;
    set(0);
    budget_->members_ -= members_;
    own_->members -= members_;
    if (--own_->charges == 0) budget_->users_.erase(user_);
  }

  /// The owner is a member of a group, until it ends.
  void count_member() {
    if (budget_ == nullptr || members_ > 0) return;
    ++members_;
    ++budget_->members_;
    ++own_->members;
  }
  /// The owner has this many ranges now.
  void set(std::size_t ranges) {
    if (ranges == ranges_ || budget_ == nullptr) return;
    budget_->ranges_ = budget_->ranges_ - ranges_ + ranges;
    own_->ranges = own_->ranges - ranges_ + ranges;
    ranges_ = ranges;
  }
  /// Returns true if the owner may have one more range. A few ranges are always allowed, so that an owner can
  /// work while others use up the budget.
  [[nodiscard]] bool has_room() const {
    constexpr std::size_t ranges_free = 16;
    return ranges_ < ranges_free || budget_ == nullptr ||
           budget_->share_.ask(budget_->ranges_, user_, own_->ranges) == FairShare::Verdict::room;
  }

 private:
  std::size_t ranges_ = 0;  // first, because mostly it alone is read
  RangeBudget* const budget_;
  RangeBudget::User* own_ = nullptr;
  const std::uint64_t user_;
  std::size_t members_ = 0;  // 1 if the owner is a member
};

}  // namespace lightq::broker
