/// The times to live of a topic's messages. Layer: delivery.
#include "delivery/expiry/topic_expiry.hpp"

#include <algorithm>

#include "delivery/batches/header_content.hpp"
#include "log/carried/carried_records.hpp"

namespace lightq::broker {

namespace {
// The step by which the mark follows the log's end.
constexpr std::uint64_t mark_step = 65'536;
}  // namespace

ExpiryIndex& TopicExpiry::made_index() {
  if (index_ == nullptr) index_ = std::make_unique<ExpiryIndex>(log_);
  return *index_;
}

void TopicExpiry::set_ttl(std::uint64_t ttl_ms) {
  if (index_ != nullptr || ttl_ms != 0) made_index().set_ttl(static_cast<std::int64_t>(ttl_ms));
}

/// Notes the batch that was appended last, if some of its messages may have a time to live.
void TopicExpiry::look_for_ttl(const BatchView& batch, OwnTtl ttl, std::int64_t uniform_ms) {
  if (ttl == OwnTtl::unknown && !batch.is_compressed()) {
    const HeaderContent content = header_content(batch);
    if (!content.has_ttl) return;
    uniform_ms = content.uniform_ttl_ms;
  }
  has_own_ |= ttl == OwnTtl::some || !batch.is_compressed();
  const Offset end = log_.next_offset();
  const OffsetRange range{Offset{end.value - batch.record_count()}, end};
  if (uniform_ms == 0) return made_index().note(range);
  const Timestamp appended = batch.append_time();
  made_index().expect(range, expiry_after(appended, uniform_ms), appended);
}

void TopicExpiry::note_stored(std::optional<Offset> mark, std::optional<std::int64_t> tail_us) {
  has_own_ |= mark.has_value();
  const OffsetRange stored{log_.first_offset(), log_.next_offset()};
  if (!mark && tail_us) {
    if (const log::CarriedRecords* const carried = log_.carried(); carried != nullptr)
      carried->offsets().for_each([this](OffsetRange run) { made_index().note(run); });  // few
    if (stored.begin < stored.end) mark = tail_of(stored, *tail_us);
  }
  if (mark && *mark < stored.end) made_index().note({*mark, stored.end});
}

/// Returns the offset of the first message that was appended in this time before the last one.
Offset TopicExpiry::tail_of(OffsetRange stored, std::int64_t tail_us) {
  log::ReadPosition last{Offset{stored.end.value - 1}};
  const log::ReadResult read = log_.read_header(last);
  if (read.outcome != log::ReadOutcome::batch) return stored.begin;
  return log_.first_since({read.batch.append_time().us - tail_us}).offset;
}

std::optional<Offset> TopicExpiry::mark() const {
  if (!has_own_ && (index_ == nullptr || !index_->has_own())) return std::nullopt;
  if (const auto first = index_ == nullptr ? std::nullopt : index_->first_noted()) return first;
  const std::uint64_t next = log_.next_offset().value;
  return std::max(log_.first_offset(), Offset{next - next % mark_step});
}

}  // namespace lightq::broker
