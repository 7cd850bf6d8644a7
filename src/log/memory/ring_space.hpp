/// Allocates the memory of a ring: decides where the next batch goes. Layer: log.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::log {

/// Allocates contiguous pieces of a memory of fixed size, and frees them in the order of allocation. Each
/// piece has a position that never repeats and follows the previous piece; `physical` returns its place in
/// the memory. Prefers the memory's beginning, so that little memory is in use while little is stored, and
/// stays in the processor's caches. Example with 100 bytes of memory: take(60) returns position 0, at place
/// 0. After free_before(60), take(70) returns position 60, also at place 0. Thread: one at a time.
class RingSpace {
 public:
  /// Starts again at the beginning, although there is space further on, once `reuse_from` bytes and twice the
  /// bytes in use are free there.
  RingSpace(std::uint64_t capacity, std::uint64_t reuse_from)
      : capacity_(capacity), reuse_from_(reuse_from) {}

  [[nodiscard]] bool has_room(std::uint64_t bytes) const { return place_for(bytes).has_value(); }
  /// Returns the place in memory that `take(bytes)` would choose now; 0 if there is no space.
  [[nodiscard]] std::uint64_t next_physical(std::uint64_t bytes) const {
    return place_for(bytes).value_or(0);
  }
  /// Prefetches the memory that `take` reads.
  void fetch_ahead() const { lightq::fetch_ahead(extents_.data(), sizeof(Extent)); }
  /// Allocates `bytes` and returns their position. Requires: has_room(bytes).
  std::uint64_t take(std::uint64_t bytes);
  /// Frees everything before `position`. Requires: `position` is one that `take` returned and that is still
  /// in use, or `end`.
  void free_before(std::uint64_t position);

  /// `begin` is the position of the oldest piece in use, `end` that of the next piece. If they are equal, no
  /// piece is in use.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::uint64_t physical(std::uint64_t position) const;

 private:
  /// With this many extents, only the place behind the newest and a large free beginning are considered, so
  /// that an allocation stays fast.
  static constexpr std::size_t extents_max = 8;

  /// Contiguous memory in use, from a position to that of the next extent.
  struct Extent {
    std::uint64_t position = 0;
    std::uint64_t physical = 0;
  };

  [[nodiscard]] std::optional<std::uint64_t> place_for(std::uint64_t bytes) const;
  [[nodiscard]] std::optional<std::uint64_t> first_fit(std::uint64_t bytes) const;
  [[nodiscard]] bool fits_at(std::uint64_t physical, std::uint64_t bytes) const;
  /// Returns the end of the extent in memory.
  [[nodiscard]] std::uint64_t physical_end(std::size_t extent) const;

  std::uint64_t capacity_;
  std::uint64_t reuse_from_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::vector<Extent> extents_;  // the oldest first, which begins at begin_
};

}  // namespace lightq::log
