/// One open stream of live statistics. Layer: http. docs/http.md, "Live statistics".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "control/commands/operations.hpp"
#include "control/rights/asker.hpp"
#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/router.hpp"
#include "http/streams/stats_text.hpp"

namespace lightq::broker {

/// Sends the statistics of the topics that a user knows, in rounds that begin a second apart. A round reads
/// them in pages and sends an event for each. The next page is read when the system has taken the event, so
/// that a slow viewer has one event in memory, and misses states instead of collecting them. Each page is
/// read with the rights that the user has then; the stream ends if the user is gone or has another password.
/// Thread: the HTTP thread, except where said.
class StatsStream final : public std::enable_shared_from_this<StatsStream> {
 public:
  struct Parts {
    HttpLoop& loop;
    /// Calls its argument on the control thread. Returns false if it cannot.
    std::function<bool(std::function<void(Operations& operations)> work)> at_control;
    std::function<std::size_t()> control_connections;  ///< called on the control thread
    std::function<std::size_t()> http_connections;
    std::function<std::optional<DiskUse>()> disk;
    Asker asker;
    HttpReply reply;
    std::function<void(std::string_view part, bool is_last)> send_more;
    std::shared_ptr<const void> place;  ///< see StreamPlaces
    std::size_t topics_max = limits::http_view_topics_max;
    std::chrono::milliseconds interval{limits::http_view_interval_ms};
  };

  /// Lifetime: the loop and the objects behind the functions outlive it.
  explicit StatsStream(Parts parts) : parts_(std::move(parts)), text_(parts_.topics_max) {}

  /// Begins the stream. Thread: any.
  void begin();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { opening, open, over };

  void on_taken();
  void begin_round();
  void ask();
  void ask_page(Operations& operations);
  void received(const Result<StatsPage>& page);
  void take_page(const StatsPage& page);
  void end_round();
  void rest();
  void end(const Error& why);

  const Parts parts_;
  StatsText text_;
  State state_ = State::opening;
  bool is_in_round_ = false;
  Clock::time_point began_;  // of the round
  std::uint64_t rounds_ = 0;
  std::optional<TopicName> after_;        // the next page begins behind this topic
  std::optional<BrokerFigures> figures_;  // of the round, for administrators
};

}  // namespace lightq::broker
