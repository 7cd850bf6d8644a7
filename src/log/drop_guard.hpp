/// The interface that a log asks before it drops messages that somebody may still need. Layer: log.
#pragma once

#include <lightq/base/types.hpp>

namespace lightq::log {

/// Saves messages elsewhere before their log drops them, or keeps the log from dropping them. Called by the
/// log, within functions that drop messages. Thread: the log's.
class DropGuard {
 public:
  /// Why messages are dropped.
  enum class Reason {
    retention,  ///< the settings of retention do not keep them
    space,      ///< an append needs their space
  };

  virtual ~DropGuard() = default;

  /// Called before the messages of `range`, the oldest of the log, are dropped; with the reason `retention`
  /// perhaps often for the same ones. It may read the log, but not append, trim or drop. Returns the end of
  /// the part that may be dropped now.
  virtual Offset before_drop(OffsetRange range, Reason reason) = 0;
};

}  // namespace lightq::log
