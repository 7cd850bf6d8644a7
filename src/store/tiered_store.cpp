/// Writes messages behind, and watches whether that works. Layer: store.
#include "store/tiered_store.hpp"

#include <utility>

namespace lightq::broker {

namespace {
constexpr std::int64_t fault_after_us = 1'000'000;     // without progress
constexpr std::int64_t retry_interval_us = 1'000'000;  // while there is a fault
}  // namespace

bool TieredStore::maintain(Timestamp now) {
  if (writing_fails_ && now < write_again_ && write_again_.us - now.us <= retry_interval_us) return false;
  const Offset written_before = log().written_offset();
  log().maintain(now);
  maintain_carried(now);
  watch_writing(written_before, now);
  return log().more_to_write();  // one piece a turn, so that other topics get their turns
}

Result<void> TieredStore::end_segment() {
  auto ended = DurableStore::end_segment();
  if (!is_behind()) watch_writing(log().written_offset(), {});
  return ended;
}

void TieredStore::watch_writing(Offset written_before, Timestamp now) {
  if (!is_behind() || log().written_offset() != written_before) {
    behind_since_ = is_behind() ? now : Timestamp{};
    if (std::exchange(writing_fails_, false)) events().on_health();
    return;
  }
  if (behind_since_ == Timestamp{} || now < behind_since_) behind_since_ = now;
  if (now.us - behind_since_.us < fault_after_us) return;
  write_again_ = {now.us + retry_interval_us};
  if (!std::exchange(writing_fails_, true)) events().on_health();
}

}  // namespace lightq::broker
