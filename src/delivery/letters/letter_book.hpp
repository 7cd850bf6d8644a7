/// Which letters of a dead-letter topic are settled, and which are being given back. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/cursor_file.hpp"

namespace lightq::broker {

/// The part of a dead-letter topic's state that commands on its letters change. A letter *waits* until it is
/// *settled*: given back, published anew, or given up by a command. Its message stays in the log, so
/// consumers of the topic do not notice. Letters are given back in *runs*. A run is a random number and a set
/// of letters, which are saved before any of them is sent: so a start sends them again under the same number.
/// docs/adr/0062-*.md has the steps. A plain value for one thread. A topic without settled letters keeps two
/// empty sets.
class LetterBook {
 public:
  /// The names of the cursors that hold the state. The run's number follows, as 16 hexadecimal digits.
  static constexpr std::string_view settled_cursor = "letters:settled";
  static constexpr std::string_view run_cursor_prefix = "letters:run:";
  /// With more memory no further letters are settled.
  static constexpr std::size_t bytes_max = 16 * limits::MiB;

  LetterBook() = default;
  /// Restores the state from a topic's cursors, without letters that are outside of the log's offsets.
  LetterBook(const std::vector<log::NamedCursor>& stored, OffsetRange log);

  [[nodiscard]] const log::OffsetSet& settled() const { return settled_; }
  /// Returns the letters of the run that is under way.
  [[nodiscard]] const log::OffsetSet& under_way() const { return under_way_; }
  /// Returns the number of the run that is under way; 0: none.
  [[nodiscard]] std::uint64_t run() const { return under_way_.empty() ? 0 : run_; }
  [[nodiscard]] bool is_full() const { return settled_.bytes() >= bytes_max; }

  /// Begins a run. `run`: random, not 0. Requires: none is under way.
  void begin(std::uint64_t run, const log::OffsetSet& letters);
  /// Settles letters, which leave the run if they are in it.
  void settle(OffsetRange letters);
  /// Ends the run. Letters that are not settled wait again.
  void end_run() { under_way_.clear(); }
  /// Forgets letters below `first`, which the log no longer has.
  void forget_before(Offset first);

  /// Returns the cursors to store among the topic's others. Takes constant time.
  [[nodiscard]] std::vector<log::NamedCursor> cursors() const;

 private:
  log::OffsetSet settled_;
  log::OffsetSet under_way_;
  std::uint64_t run_ = 0;  // of under_way_
};

}  // namespace lightq::broker
