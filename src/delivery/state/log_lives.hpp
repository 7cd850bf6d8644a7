/// Keeps the incarnations that clients have known a topic's log by, and up to where their messages are the
/// same. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "log/saved_state/cursor_file.hpp"

namespace lightq::broker {

/// The lives of a log. A log that was not closed may have lost messages at its end that clients had seen; the
/// broker then assigns their offsets to other messages. So the log begins another life, with another
/// incarnation. Below the offset where a life begins, its messages are those of the life before. The last 17
/// lives are kept among the topic's cursors. Life 0 is the log's first. Each later life has a random number
/// above the last one's, so that a log and its restored copy never begin lives with the same incarnation.
/// Example: a log ends at 120, and a consumer has received messages up to 150. Another life begins at 120.
/// The consumer opens the topic with the incarnation of life 0, and continues at 120.
class LogLives {
 public:
  /// The prefix of the cursors that hold where a life begins. Example: `life:3`.
  static constexpr std::string_view cursor_prefix = "life:";
  static constexpr std::size_t kept_max = 17;

  /// The first life of a log, with the log's incarnation.
  explicit LogLives(std::uint64_t log_incarnation) : log_(log_incarnation), shown_(log_incarnation) {}
  /// The lives that the topic's stored cursors hold.
  LogLives(std::uint64_t log_incarnation, const std::vector<log::NamedCursor>& stored);

  /// Returns the incarnation that clients see. Its upper half is that of the log's incarnation.
  [[nodiscard]] std::uint64_t incarnation() const { return shown_; }
  /// Returns the offset below which the log has the same messages as under `incarnation`. For the current
  /// incarnation this is the highest offset possible. Returns nothing if `incarnation` belongs to another
  /// log, or to a life no longer kept.
  [[nodiscard]] std::optional<Offset> same_up_to(std::uint64_t incarnation) const;

  /// Begins another life at the log's end, with a number above the last life's. It counts once its cursors
  /// are on the disk. `random` makes its number.
  void begin(Offset end, std::uint32_t random);
  /// Called instead of `begin` when the cursors cannot be written. Until the next start clients see a random
  /// incarnation, which the broker will not know later.
  void hide(std::uint32_t random);
  /// Returns the cursors to store among the topic's others.
  [[nodiscard]] std::vector<log::NamedCursor> cursors() const;

 private:
  struct Life {
    std::uint64_t number = 0;
    Offset begin;
  };
  [[nodiscard]] std::uint64_t incarnation_of(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t number_before(std::size_t life) const;

  std::uint64_t log_;
  std::uint64_t shown_;
  std::vector<Life> lives_;  // in ascending order, without the log's first life
};

}  // namespace lightq::broker
