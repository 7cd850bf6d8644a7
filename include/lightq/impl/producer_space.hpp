/// The space that a producer has for messages. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/detail/message_limit.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/impl/session_produce_link.hpp>
#include <lightq/producer_options.hpp>

namespace lightq::inline v1 {

/// Computes how much a producer takes now, from its options, its batches and the limits of the broker. Has no
/// state of its own. Lifetime: the options and the link outlive it. For one thread.
///
/// `may_wait`, a parameter of most functions: send could wait for the window. It then should: a message taken
/// earlier would only arrive older.
class ProducerSpace {
 public:
  ProducerSpace(const ProducerOptions& options, const SessionProduceLink& link)
      : options_(options), link_(link) {}

  /// Returns the size in bytes at which a batch is full.
  [[nodiscard]] std::size_t batch_bytes() const {
    return std::min(options_.batch_bytes, link_.batch_bytes_max());
  }
  /// Returns the longest message that can be stored, as far as is known.
  [[nodiscard]] MessageLimit message_limit() const {
    return MessageLimit::of(options_, link_.opened(), link_.batch_bytes_max());
  }
  /// Returns true if memory and window permit a batch of `bytes` besides the closed batches.
  [[nodiscard]] bool has_room_for(std::size_t bytes, bool may_wait) const {
    const SessionBatches& all = link_.batches();
    if (may_wait && waits_for_window()) return false;
    return all.count() == 0 || all.held_bytes() + bytes <= options_.memory_bytes_max;
  }
  /// Returns how many bytes of records the open batch still takes. A record takes at least four bytes, so the
  /// batch cannot exceed its limit of records.
  [[nodiscard]] std::size_t left_in_open(bool may_wait) const {
    const BatchBuilder& open = link_.batches().open();
    const std::size_t size = open.size_bytes();
    const bool any =
        takes_messages() && size < batch_bytes() && (!open.empty() || has_room_for(batch_bytes(), may_wait));
    const std::size_t records = limits::batch_records_max - open.record_count();
    return any ? std::min(batch_bytes() - size, records * record_bytes(0)) : 0;
  }

 private:
  [[nodiscard]] bool takes_messages() const {
    return link_.state() == SessionState::connecting || link_.state() == SessionState::open;
  }
  [[nodiscard]] bool waits_for_window() const {
    return options_.send_timeout.count() > 0 && link_.state() == SessionState::open &&
           !link_.batches().all_sent();
  }

  const ProducerOptions& options_;
  const SessionProduceLink& link_;
};

}  // namespace lightq::inline v1
