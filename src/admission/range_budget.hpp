/// Limits the members of all groups of a reactor, and what they keep, in total and by user.
/// Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

#include "admission/quota.hpp"

namespace lightq::broker {

/// The ranges of offsets that groups and their members keep in memory, the members, and the bytes of the
/// records of dead messages, of all topics of a reactor. A user with half of one leaves the last eighth to
/// others. The reactor's thread.
struct RangeBudget {
  using Share = Quota<std::uint64_t>;

  explicit RangeBudget(std::size_t ranges_max = limits::group_ranges_total,
                       std::size_t members_max = limits::group_members_total,
                       std::size_t record_bytes_max = limits::death_record_bytes_total)
      : ranges({.total = ranges_max}),
        members({.total = members_max}),
        record_bytes({.total = record_bytes_max}) {}

  Share ranges;
  Share members;
  Share record_bytes;
};

/// The bytes of the records of one owner's dead messages, charged to one user. Lifetime: the budget outlives
/// it. The reactor's thread.
class RecordCharge {
 public:
  /// Without a budget nothing is bounded.
  RecordCharge(RangeBudget* budget, std::uint64_t user)
      : share_(budget == nullptr ? nullptr : &budget->record_bytes), bytes_(share_, user), user_(user) {}

  /// Charges the bytes to `user` from now on, if they are charged to no user (0) yet.
  void claim(std::uint64_t user) {
    if (user_ != 0 || user == 0) return;
    bytes_.move_to(user);
    user_ = user;
  }
  /// The owner has this many bytes now.
  void set(std::size_t bytes) { bytes_.set(bytes); }
  /// Returns how many more bytes the owner may have.
  [[nodiscard]] std::size_t room() const {
    if (share_ == nullptr) return RangeBudget::Share::unlimited;
    return bytes_.has_room() ? share_->bounds().total - share_->total() : 0;
  }

 private:
  RangeBudget::Share* const share_;
  RangeBudget::Share::Holding bytes_;
  std::uint64_t user_;
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
