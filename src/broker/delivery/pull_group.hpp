/// The consumers that share one cursor: each message goes to one of them, in turn. Layer: delivery.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "broker/delivery/outlet.hpp"
#include "broker/delivery/record_walk.hpp"

namespace lightq::broker {

/// A pull group over one topic's log. The reactor's thread. Outlets are attached while they are connected.
class PullGroup {
 public:
  explicit PullGroup(Offset start) : walk_(start) {}

  void attach(Outlet& outlet);
  /// Forgets the outlet; what it had not sent goes to others, before anything newer.
  void detach(Outlet& outlet);

  struct Handed {
    std::uint64_t messages = 0;  ///< for the first time
    std::uint64_t redelivered = 0;
    std::uint64_t bytes = 0;
    bool more = false;  ///< stopped for `bytes_max` while consumers could take more
  };
  /// Hands messages to the outlets, round-robin, until none takes more, the log ends or `bytes_max` is
  /// reached.
  Handed pump(log::Log& log, std::size_t bytes_max);

  /// The next message that nobody was handed yet.
  [[nodiscard]] Offset next() const { return walk_.offset(); }
  /// Everything before it has left this process: where the group goes on after a crash, and what holds the
  /// log.
  [[nodiscard]] Offset committed() const;
  [[nodiscard]] std::size_t consumers() const { return outlets_.size(); }
  /// Messages that could not be handed out, those that came back from a consumer included.
  [[nodiscard]] WalkLoss loss() const;
  /// Messages in [from, to) that came back from a consumer and wait for another.
  [[nodiscard]] std::uint64_t returned_in(Offset from, Offset to) const;
  /// Gives up what was not handed out: goes on at `offset`.
  void skip_to(Offset offset);

 private:
  bool hand_over(Offset offset, ByteView payload);
  bool pump_returned(log::Log& log, Handed& handed);
  void give_up_returned(Offset offset, const WalkLoss& loss);

  RecordWalk walk_;
  std::deque<Offset> returned_;  // unsent by an outlet that went away, ascending
  WalkLoss returned_loss_;       // of these, what could not be read any more
  std::vector<Outlet*> outlets_;
  std::size_t turn_ = 0;  // the outlet that is asked next
};

}  // namespace lightq::broker
