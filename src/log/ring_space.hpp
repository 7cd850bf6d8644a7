/// Where in a ring of memory the next batch goes. Layer: log.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::log {

/// Gives out contiguous places of a memory of fixed size, and takes them back in the order in which it gave
/// them. What it gives out has a position that never repeats and follows on the place before; where that lies
/// in the memory, `physical` tells. Prefers the memory's beginning, so that little of it is in use while
/// little is stored, and that little stays in the processor's caches. One thread.
class RingSpace {
 public:
  /// `reuse_from`: the beginning is taken again, though there is room further on, once so many bytes and
  /// twice what is in use are free there.
  RingSpace(std::uint64_t capacity, std::uint64_t reuse_from)
      : capacity_(capacity), reuse_from_(reuse_from) {}

  [[nodiscard]] bool has_room(std::uint64_t bytes) const { return place_for(bytes).has_value(); }
  /// Where in the memory `bytes` would lie that are taken now; 0 without room.
  [[nodiscard]] std::uint64_t next_physical(std::uint64_t bytes) const {
    return place_for(bytes).value_or(0);
  }
  /// Asks the processor for what `take` looks at.
  void fetch_ahead() const { lightq::fetch_ahead(extents_.data(), sizeof(Extent)); }
  /// Requires room. The position.
  std::uint64_t take(std::uint64_t bytes);
  /// Everything before `position` is free, which is where something was taken or `end`.
  void free_before(std::uint64_t position);

  /// Of the oldest place that is in use; of the next one to be given out. The same: none is in use.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::uint64_t physical(std::uint64_t position) const;

 private:
  /// With more, only the place behind the newest is looked at, so that finding one stays quick.
  static constexpr std::size_t extents_max = 8;

  /// Contiguous memory in use from a position on, up to the next extent's.
  struct Extent {
    std::uint64_t position = 0;
    std::uint64_t physical = 0;
  };

  [[nodiscard]] std::optional<std::uint64_t> place_for(std::uint64_t bytes) const;
  [[nodiscard]] std::optional<std::uint64_t> first_fit(std::uint64_t bytes) const;
  [[nodiscard]] bool fits_at(std::uint64_t physical, std::uint64_t bytes) const;
  /// Of the extent's memory, its end.
  [[nodiscard]] std::uint64_t physical_end(std::size_t extent) const;

  std::uint64_t capacity_;
  std::uint64_t reuse_from_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::vector<Extent> extents_;  // the oldest first, which begins at begin_
};

}  // namespace lightq::log
