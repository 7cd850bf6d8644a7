/// Under which identities a topic's log has been shown to clients, and what these have in common. Layer:
/// delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "log/cursor_file.hpp"

namespace lightq::broker {

/// A log that was not closed may have lost its end, which clients had seen; its offsets are given again then,
/// to other messages. So it begins another life, with another incarnation: before the offset where that
/// begins both have the same messages. The lives are kept among the topic's cursors, the last few of them.
/// Example: a log ends at 120 and its consumer has come to 150. Life 1 begins at 120: the consumer, which
/// names the incarnation of life 0, goes on at 120.
class LogLives {
 public:
  /// Of the cursor that says where a life begins: `life:3`.
  static constexpr std::string_view cursor_prefix = "life:";
  static constexpr std::size_t kept_max = 16;

  /// A log's first life: its incarnation is the log's.
  LogLives(std::uint64_t log_incarnation) : log_(log_incarnation), shown_(log_incarnation) {}  // NOLINT
  /// As its cursors say.
  LogLives(std::uint64_t log_incarnation, const std::vector<log::NamedCursor>& stored);

  /// What clients are told. The upper half is that of the log's.
  [[nodiscard]] std::uint64_t incarnation() const { return shown_; }
  /// Up to which offset the log has the messages that it had under `incarnation`; nothing: it is another log,
  /// or that is too long ago. Of the current incarnation: beyond all offsets.
  [[nodiscard]] std::optional<Offset> same_up_to(std::uint64_t incarnation) const;

  /// Begins another life at the log's end. It counts once its cursors are on the disk.
  void begin(Offset end);
  /// They are not: until the next start clients are told an incarnation of which nothing is known later.
  void hide(std::uint32_t random);
  /// To be kept with the topic's others.
  [[nodiscard]] std::vector<log::NamedCursor> cursors() const;

 private:
  struct Life {
    std::uint64_t number = 0;
    Offset begin;
  };
  [[nodiscard]] std::uint64_t incarnation_of(std::uint64_t number) const;

  std::uint64_t log_;
  std::uint64_t shown_;
  std::vector<Life> lives_;  // one behind the other; the first life of all is not among them
};

}  // namespace lightq::broker
