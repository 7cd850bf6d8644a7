/// Bounds the memory for large messages that have not been received, or sent, completely. Layer: admission.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "admission/limit_counts.hpp"
#include "base/log_sink.hpp"

namespace lightq::broker {

/// A bound on the memory of all connections of a thread together.
///
/// - Above a quarter of the bound, it releases memory that connections keep without need. It also ends
///   connections that have not moved for `still_time`: those of the user with most bytes, and only while that
///   user has more than an eighth of the bound.
/// - Above the bound, it ends other connections too: of the user with most bytes, the connection that has not
///   moved for longest.
/// - It never ends the connection that asks.
///
/// "Moved" means that bytes of the connection were received or sent. Thread: that thread.
class BufferBudget {
 public:
  using Clock = std::chrono::steady_clock;

  class Holder {
   public:
    virtual ~Holder() = default;
    [[nodiscard]] virtual std::size_t buffered_bytes() const = 0;
    /// Releases memory that is not in use. Called within callbacks of other holders, and of this one.
    virtual void release_spare_memory() = 0;
    /// Ends the connection soon, but not within the call.
    virtual void end_soon(const std::string& why) = 0;
    /// Returns true if nothing is received or sent because the broker itself has paused the connection. Such
    /// a holder does not count as standing still, and ends after other holders of its user.
    [[nodiscard]] virtual bool waits_for_us() const { return false; }
    /// Returns the id of the holder's user; 0: no particular user.
    [[nodiscard]] virtual std::uint64_t held_by() const = 0;
  };

  /// A holder with fewer bytes is not counted: the number of connections bounds those bytes.
  static constexpr std::size_t counted_from = std::size_t{64} * 1024;
  static constexpr auto still_time = std::chrono::seconds(1);

  /// Counts refusals in `refusals` and logs to `sink`. Null: not counted, or not logged. Lifetime: both
  /// outlive the budget.
  explicit BufferBudget(std::size_t bytes_max, LimitCounts* refusals = nullptr, LogSink* sink = nullptr)
      : bytes_max_(bytes_max), refusals_(refusals), sink_(sink) {}

  /// Records the bytes that `holder` has now. `moved`: some of its bytes have just been received or sent.
  /// Returns false if the holder is not counted; then forget() need not be called.
  bool note(Holder& holder, bool moved, Clock::time_point now);
  void forget(Holder& holder);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::size_t bytes = 0;
    Clock::time_point moved;
  };
  using Entries = std::unordered_map<Holder*, Entry>;

  bool update(Holder& holder, Entries::iterator entry);
  void make_room(const Holder& asking, Clock::time_point now);
  void release_spare_memory(const Holder& asking);
  [[nodiscard]] std::unordered_map<std::uint64_t, std::size_t> bytes_by_user(bool with_waiting) const;
  Entries::iterator first_to_go(const Holder& asking);
  Entries::iterator first_that_stands_still(const Holder& asking, Clock::time_point since);
  void end(Entries::iterator entry, Clock::time_point now);
  void say_so(const Holder& ended, Clock::time_point now);

  const std::size_t bytes_max_;
  LimitCounts* const refusals_;
  LogSink* const sink_;
  Entries entries_;
  std::size_t bytes_ = 0;             // the sum over entries_
  Clock::time_point next_look_ = {};  // when to search again for connections that stand still
  Clock::time_point next_said_ = {};
};

}  // namespace lightq::broker
