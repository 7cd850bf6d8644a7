/// When `lightq consume --no-follow` has had everything. Layer: cli.
#pragma once

#include <chrono>
#include <cstdint>

#include <lightq/client.hpp>

#include "client/consume_printer.hpp"
#include "client/invocation.hpp"

namespace lightq::cli {

/// Asks the broker, now and then, whether more is to come. One thread.
class ConsumeEnd {
 public:
  /// All of them must live as long.
  ConsumeEnd(const Consume& consume, Client& client, const Consumer& consumer, ConsumePrinter& printer)
      : consume_(consume), client_(client), consumer_(consumer), printer_(printer) {}

  /// These messages came.
  void came(OffsetRange range);
  /// Nothing comes, and all that came is acknowledged: whether nothing more will, as far as is known. Asks
  /// less and less often while nothing changes.
  bool has_come();

 private:
  static constexpr std::chrono::milliseconds look_interval{200};
  static constexpr std::chrono::milliseconds look_interval_max{1000};

  bool look(const TopicStats& stats);
  [[nodiscard]] bool has_all_of_place(const TopicStats& stats);
  [[nodiscard]] bool is_group_empty(const TopicStats& stats);
  [[nodiscard]] bool is_ours(const GroupStats& group) const;

  const Consume& consume_;
  Client& client_;
  const Consumer& consumer_;
  ConsumePrinter& printer_;
  Offset next_{};                  // what comes next, if nothing is dropped
  std::uint64_t incarnation_ = 0;  // of the log that it speaks of
  bool seemed_over_ = false;       // when looked at last
  std::chrono::milliseconds interval_ = look_interval;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace lightq::cli
