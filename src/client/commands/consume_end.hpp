/// Decides when `lightq consume --no-follow` has received all messages. Layer: cli.
#pragma once

#include <chrono>
#include <cstdint>

#include <lightq/client.hpp>

#include "client/commands/consume_printer.hpp"
#include "client/invocation.hpp"

namespace lightq::cli {

/// Asks the broker from time to time whether there are more messages. For one thread.
class ConsumeEnd {
 public:
  /// Lifetime: all arguments must outlive this object.
  ConsumeEnd(const Consume& consume, Client& client, const Consumer& consumer, ConsumePrinter& printer)
      : consume_(consume), client_(client), consumer_(consumer), printer_(printer) {}

  /// Records that these messages have arrived.
  void came(OffsetRange range);
  /// Returns true if, as far as is known, no more messages will arrive. Call it when nothing arrives and all
  /// received messages are acknowledged. Asks the broker less and less often while nothing changes.
  bool has_come();
  /// Says that the topic or the group is paused, if it is. Call it when nothing arrives and the command goes
  /// on. Asks the broker less and less often.
  void look_for_pause();

 private:
  static constexpr std::chrono::milliseconds look_interval{200};
  static constexpr std::chrono::milliseconds look_interval_max{1000};
  static constexpr std::chrono::milliseconds pause_interval_max{60'000};

  bool look(const TopicStats& stats);
  [[nodiscard]] bool has_all_of_place(const TopicStats& stats);
  [[nodiscard]] bool is_group_empty(const TopicStats& stats);
  [[nodiscard]] bool is_ours(const GroupStats& group) const;

  const Consume& consume_;
  Client& client_;
  const Consumer& consumer_;
  ConsumePrinter& printer_;
  Offset next_{};                  // the next offset, if nothing is dropped
  std::uint64_t incarnation_ = 0;  // of the log that `next_` refers to
  bool seemed_over_ = false;       // at the last check
  std::chrono::milliseconds interval_ = look_interval;
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::milliseconds pause_interval_ = look_interval;
  std::chrono::steady_clock::time_point next_pause_look_{};
};

}  // namespace lightq::cli
