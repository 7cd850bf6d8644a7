/// What connections hold of large messages that have not wholly come, or wholly left. Layer: endpoint.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "broker/endpoint/limit_counts.hpp"
#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// Of all connections of a thread together. From a quarter of the bound on memory that is kept without need
/// is given back, and connections that have stood still for `still_time` end, of the user who holds most, and
/// only as long as he holds more than an eighth; beyond it others do as well: of the user who holds most the
/// one that has not moved for longest, but never the one that asks. That thread.
class BufferBudget {
 public:
  using Clock = std::chrono::steady_clock;

  class Holder {
   public:
    virtual ~Holder() = default;
    [[nodiscard]] virtual std::size_t buffered_bytes() const = 0;
    /// Gives back what is not in use. Called within others' callbacks, and its own.
    virtual void release_spare_memory() = 0;
    /// Ends soon, not within the call.
    virtual void end_soon(const std::string& why) = 0;
    /// Nothing of it comes or leaves because of us: it does not stand still, and goes after others of its
    /// user.
    [[nodiscard]] virtual bool waits_for_us() const { return false; }
    /// The user it belongs to; 0: nobody in particular.
    [[nodiscard]] virtual std::uint64_t held_by() const = 0;
  };

  /// Less than this of one holder is not looked at: connections are bounded by their number.
  static constexpr std::size_t counted_from = std::size_t{64} * 1024;
  static constexpr auto still_time = std::chrono::seconds(1);

  /// `refusals`, `sink`: outlive it; null: they are not counted, or not logged.
  explicit BufferBudget(std::size_t bytes_max, LimitCounts* refusals = nullptr, LogSink* sink = nullptr)
      : bytes_max_(bytes_max), refusals_(refusals), sink_(sink) {}

  /// Takes note of what it holds now. `moved`: bytes of it have just come or left. False: it is not counted,
  /// and needs not be forgotten.
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
  Entries::iterator first_to_go(const Holder& asking);
  Entries::iterator first_that_stands_still(const Holder& asking, Clock::time_point since);
  void end(Entries::iterator entry, Clock::time_point now);
  void say_so(const Holder& ended, Clock::time_point now);

  const std::size_t bytes_max_;
  LimitCounts* const refusals_;
  LogSink* const sink_;
  Entries entries_;
  std::size_t bytes_ = 0;             // of entries_
  Clock::time_point next_look_ = {};  // for what stands still
  Clock::time_point next_said_ = {};
};

}  // namespace lightq::broker
