/// The lowest offset in flight of each member of a group, as a heap. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Orders members by an offset, the *front*: the member with the lowest front is on top. A change costs time
/// by the logarithm of the number of members.
/// An indexed binary heap: each member knows its position, because `Member` derives publicly from
/// MemberFronts<Member>::Place. The top is in this object and the others are in a vector. So a group with one
/// member in flight allocates nothing, and other groups allocate only when more members than ever before are
/// in flight. Lifetime: a member is removed before it is destroyed. Thread: the reactor's.
template <typename Member>
class MemberFronts {
 public:
  /// A member's position in the heap. The member is in no heap at first.
  class Place {
   public:
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class MemberFronts;
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
    std::uint32_t position_ = nowhere;
  };
  struct Front {
    Offset offset;
    Member* member = nullptr;
  };

  MemberFronts() = default;
  MemberFronts(const MemberFronts&) = delete;
  MemberFronts& operator=(const MemberFronts&) = delete;

  [[nodiscard]] bool empty() const { return top_.member == nullptr; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : 1 + others_.size(); }
  /// Returns the lowest front. Requires: not empty().
  [[nodiscard]] const Front& first() const { return top_; }

  /// Adds the member, or changes its front.
  void set(Member& member, Offset offset) {
    std::uint32_t& position = position_of(member);
    if (position == Place::nowhere) {
      if (!empty()) others_.emplace_back();
      position = static_cast<std::uint32_t>(others_.size());
      return rise({offset, &member}, position);
    }
    const Offset former = at(position).offset;
    if (offset < former) {
      rise({offset, &member}, position);
    } else if (former < offset) {
      sink({offset, &member}, position);
    }
  }
  /// Removes the member. Does nothing if it is not in the heap.
  void remove(Member& member) {
    const std::size_t hole = position_of(member);
    if (hole == Place::nowhere) return;
    position_of(member) = Place::nowhere;
    if (others_.empty()) {
      top_ = {};
      return;
    }
    const Front last = others_.back();
    others_.pop_back();
    if (last.member == &member) return;
    if (hole > 0 && last.offset < at(parent_of(hole)).offset) {
      rise(last, hole);
    } else {
      sink(last, hole);
    }
  }

 private:
  static std::size_t parent_of(std::size_t position) { return (position - 1) / 2; }
  /// Returns the position of the first of two children.
  static std::size_t child_of(std::size_t position) { return 2 * position + 1; }
  static std::uint32_t& position_of(Member& member) { return static_cast<Place&>(member).position_; }
  [[nodiscard]] const Front& at(std::size_t position) const {
    return position == 0 ? top_ : others_[position - 1];
  }

  void put(const Front& front, std::size_t position) {
    (position == 0 ? top_ : others_[position - 1]) = front;
    position_of(*front.member) = static_cast<std::uint32_t>(position);
  }
  /// Puts `front` at the position or above it. Moves fronts that are higher down.
  void rise(const Front& front, std::size_t position) {
    for (; position > 0; position = parent_of(position)) {
      const Front& parent = at(parent_of(position));
      if (!(front.offset < parent.offset)) break;
      put(parent, position);
    }
    put(front, position);
  }
  /// Puts `front` at the position or below it. Moves fronts that are lower up.
  void sink(const Front& front, std::size_t position) {
    const std::size_t size = 1 + others_.size();
    for (std::size_t child = child_of(position); child < size; child = child_of(position)) {
      if (child + 1 < size && at(child + 1).offset < at(child).offset) ++child;
      if (!(at(child).offset < front.offset)) break;
      put(at(child), position);
      position = child;
    }
    put(front, position);
  }

  Front top_;  // without a member: empty
  std::vector<Front> others_;
};

}  // namespace lightq::broker
