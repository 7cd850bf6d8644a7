/// The times to live of a topic's messages. Layer: delivery.
#include "delivery/expiry/topic_expiry.hpp"

#include <algorithm>

#include "delivery/batches/header_content.hpp"

namespace lightq::broker {

ExpiryIndex& TopicExpiry::made_index() {
  if (index_ == nullptr) index_ = std::make_unique<ExpiryIndex>(log_);
  return *index_;
}

void TopicExpiry::set_ttl(std::uint64_t ttl_ms) {
  ttl_ms_ = ttl_ms;
  if (index_ != nullptr || ttl_ms != 0) made_index().set_ttl(static_cast<std::int64_t>(ttl_ms));
}

/// Notes the batch that was appended last, if some of its messages may have a time to live.
void TopicExpiry::look_for_ttl(const BatchView& batch, OwnTtl ttl, std::int64_t uniform_ms) {
  if (ttl == OwnTtl::unknown && !batch.is_compressed()) {
    const HeaderContent content = header_content(batch);
    if (!content.has_ttl) return;
    uniform_ms = content.uniform_ttl_ms;
  }
  const Offset end = log_.next_offset();
  const OffsetRange range{Offset{end.value - batch.record_count()}, end};
  if (uniform_ms == 0) return made_index().note(range);
  const Timestamp appended = batch.append_time();
  made_index().expect(range, expiry_after(appended, uniform_ms), appended);
}

void TopicExpiry::note_stored(std::optional<Offset> from, std::optional<std::int64_t> tail_us) {
  const OffsetRange stored{log_.first_offset(), log_.next_offset()};
  if (stored.begin >= stored.end) return;
  if (tail_us) {
    log::ReadPosition last{Offset{stored.end.value - 1}};
    const log::ReadResult read = log_.read_header(last);
    const bool is_known = read.outcome == log::ReadOutcome::batch;
    const Offset tail =
        is_known ? log_.first_since({read.batch.append_time().us - *tail_us}).offset : stored.begin;
    from = std::min(from.value_or(tail), tail);
  }
  if (from && *from < stored.end) made_index().note({*from, stored.end});
}

}  // namespace lightq::broker
