/// The times to live of a topic's messages. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

#include "delivery/expiry/expiry_index.hpp"
#include "delivery/state/group_time.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Whether messages of a batch have a time to live of their own.
enum class OwnTtl : std::uint8_t {
  unknown,  ///< it was not looked for
  none,
  some,
};

/// Makes the index of expired messages when it is needed, and drops it when nothing can expire any more. Most
/// topics never have one. Topic owns it. Thread: the reactor's.
class TopicExpiry {
 public:
  /// Lifetime: the log outlives it.
  explicit TopicExpiry(log::BatchLog& log) : log_(log) {}

  /// Returns the index, or null if no message can expire.
  [[nodiscard]] ExpiryIndex* index() const { return index_.get(); }

  /// Sets the time to live of all messages, stored ones included. Messages that have expired stay so until
  /// the broker starts again. Let the topic dispatch soon. Requires: at most limits::ttl_ms_max.
  void set_ttl(std::uint64_t ttl_ms);
  /// Called after each append, with the batch as the log has stamped it. `uniform_ms`: the time to live that
  /// each of its messages has; 0: not known.
  void appended(const std::byte* batch, OwnTtl ttl, std::int64_t uniform_ms) {
    const BatchView view = BatchView::trusted(batch);
    if (ttl != OwnTtl::none && view.kinds().has(AttributeKinds::headers)) [[unlikely]]
      look_for_ttl(view, ttl, uniform_ms);
  }
  /// Notes that stored messages may have a time to live of their own: after a start. `mark`: the one that was
  /// saved last; nothing: none was. `tail_us`: without a mark, the messages that were appended in this time
  /// before the last one may have one; nothing: they have not.
  void note_stored(std::optional<Offset> mark, std::optional<std::int64_t> tail_us = {});
  /// Returns an offset for a call of note_stored after a restart or crash: no stored message before it has a
  /// time to live of its own. If no message has one, the mark follows the end of the log in large steps, so
  /// that it seldom causes a save. Nothing: no message is known that ever had one.
  [[nodiscard]] std::optional<Offset> mark() const;
  /// Returns a time of the wall clock at which to dispatch, so that messages expire in time, or
  /// ExpiryTimes::nothing_due. The dispatch may find nothing.
  [[nodiscard]] Timestamp next_due() const {
    return index_ == nullptr ? ExpiryTimes::nothing_due : index_->next_due();
  }
  /// Returns when to dispatch again because the last one has not found all that has expired, or `never`.
  [[nodiscard]] SteadyTime next_timer(Timestamp wall, SteadyTime now) const {
    return index_ == nullptr ? never : index_->next_timer(wall, now);
  }
  /// Returns true if the index is not needed any more.
  [[nodiscard]] bool is_over() const {
    return index_ != nullptr && index_->is_idle() && !index_->first_noted();
  }
  /// Drops the index. Requires: is_over(), and nothing refers to it.
  void drop() {
    has_own_ |= index_->has_own();
    index_.reset();
  }

 private:
  void look_for_ttl(const BatchView& batch, OwnTtl ttl, std::int64_t uniform_ms);
  [[nodiscard]] Offset tail_of(OffsetRange stored, std::int64_t tail_us);
  ExpiryIndex& made_index();

  log::BatchLog& log_;
  std::unique_ptr<ExpiryIndex> index_;
  bool has_own_ = false;  // a message had a time of its own, before the index was made
};

}  // namespace lightq::broker
