/// Decides in which of a consumer's calls something is sent. Layer: client.
#pragma once

#include <cstdint>

#include <lightq/detail/session_clock.hpp>

namespace lightq::inline v1 {

/// Counts a consumer's calls between two looks. At a look, the consumer reads the clock and sends due
/// frames. While calls follow each other quickly, only every 16th looks. Owned by a ConsumerDriver, on its
/// thread.
class ConsumerPace {
 public:
  /// Returns true if the program has not called for 100 ms, as far as is known. `now` may be a coarse time.
  [[nodiscard]] bool was_away(SessionTime now) const { return now >= look_by_; }
  /// Returns true if the broker may have taken the program for silent meanwhile.
  [[nodiscard]] static bool is_long(SessionTime::duration time) { return time >= slow; }
  /// Counts a call. Returns true if it should look.
  bool call() { return --look_after_ == 0; }
  /// Records a look.
  void looked(SessionTime now) {
    look_after_ = now - looked_ < quick ? look_after_max : 1;
    looked_ = now;
    look_by_ = now + slow;
  }
  /// Records that a batch has arrived: the program has its messages since `now`.
  void received(SessionTime now) { look_by_ = now + slow; }

 private:
  static constexpr std::uint32_t look_after_max = 16;
  static constexpr Timeout quick{5};
  static constexpr Timeout slow{100};

  std::uint32_t look_after_ = 1;  // calls until the next look
  SessionTime looked_;
  // The first call after this time looks, even if look_after_ is not 0 yet.
  SessionTime look_by_ = session_never;
};

}  // namespace lightq::inline v1
