/// The age of a topic's oldest message. Layer: topic.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/types.hpp>

#include "delivery/offset_search.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Knows when the oldest message of a log was appended. It reads the log only if another message has become
/// the oldest, so that regular requests for statistics open no files of idle topics. Thread: the reactor's.
class OldestMessage {
 public:
  /// Returns the age in milliseconds; 0 if the log is empty, or cannot be read now.
  std::uint64_t age_ms(log::BatchLog& log, Timestamp now) {
    const Offset first = log.first_offset();
    if (first == log.next_offset()) return 0;
    if (!appended_ || first != offset_) {
      appended_ = append_time_at(first, log);
      offset_ = first;
    }
    return appended_ && *appended_ < now ? static_cast<std::uint64_t>(now.us - appended_->us) / 1000 : 0;
  }

 private:
  Offset offset_;
  std::optional<Timestamp> appended_;  // of the message at offset_
};

}  // namespace lightq::broker
