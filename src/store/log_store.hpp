/// A store with a log in this process. Layer: store.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "log/carried/carried_records.hpp"
#include "store/topic_store.hpp"

namespace lightq::broker {

/// Implements the BatchLog functions of TopicStore by a log that it owns, and by the messages that were
/// carried over from it. `LogType` is a final class, so that
/// a message costs one virtual call.
template <typename LogType>
class LogStore : public TopicStore {
 public:
  log::AppendResult append(std::span<std::byte> batch, Timestamp now) final {
    carried_read_ = false;
    return log_->append(batch, now);
  }
  std::span<std::byte> place_for_next(std::size_t bytes) final { return log_->place_for_next(bytes); }
  [[nodiscard]] const void* hot_part() const final { return log_.get(); }
  void fetch_ahead_for_append(unsigned step) const final { log_->fetch_ahead_for_append(step); }
  log::ReadResult read(log::ReadPosition& place) final { return with_carried(place, log_->read(place)); }
  log::ReadResult read_header(log::ReadPosition& place) final {
    return with_carried(place, log_->read_header(place));
  }
  log::FoundByTime first_since(Timestamp time) final {
    carried_read_ = false;
    return log_->first_since(time);
  }
  [[nodiscard]] Offset first_offset() const final { return log_->first_offset(); }
  [[nodiscard]] Offset next_offset() const final { return log_->next_offset(); }
  [[nodiscard]] Offset durable_offset() const final { return log_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const final { return log_->stored_bytes(); }
  [[nodiscard]] std::uint64_t held_bytes() const final {
    return log_->held_bytes() + (carried_ == nullptr ? 0 : carried_->held_bytes());
  }
  void trim(Offset before) final { log_->trim(before); }
  Result<void> end_segment() override {
    carried_read_ = false;
    return log_->end_segment();
  }
  [[nodiscard]] Offset last_part_begin() const final { return log_->last_part_begin(); }
  void drop_before(Offset before) final {
    log_->drop_before(before);
    if (carried_ != nullptr) carried_->remove({Offset{0}, before});
  }
  bool make_room(std::size_t bytes, Offset limit) final {
    const bool made = log_->make_room(bytes, limit);
    carried_read_ = false;  // afterwards, because the guard reads
    return made;
  }
  bool drop_first(Offset limit, std::size_t bytes) final {
    const bool dropped = log_->drop_first(limit, bytes);
    carried_read_ = false;
    return dropped;
  }
  void guard_drops(log::DropGuard* guard) override { log_->guard_drops(guard); }
  [[nodiscard]] log::CarriedRecords* carried() final { return carried_.get(); }
  [[nodiscard]] const Error& last_error() const final {
    return carried_read_ ? carried_->last_error() : log_->last_error();
  }

  Result<void> flush() override { return log_->flush(); }
  Result<void> close() override { return log_->close(); }

 protected:
  /// `carried`: the messages that were carried over; null: the store keeps none.
  LogStore(std::unique_ptr<LogType> log, std::unique_ptr<log::CarriedRecords> carried)
      : log_(std::move(log)), carried_(std::move(carried)) {}
  [[nodiscard]] LogType& log() { return *log_; }
  [[nodiscard]] const LogType& log() const { return *log_; }

 private:
  /// Finds messages that the log no longer has among those that were carried over.
  log::ReadResult with_carried(const log::ReadPosition& place, const log::ReadResult& result) {
    carried_read_ = false;
    if (result.outcome != log::ReadOutcome::trimmed || carried_ == nullptr) [[likely]]
      return result;
    const Offset first = log_->first_offset();
    if (first <= place.offset) return result;  // a gap
    carried_read_ = true;
    return carried_->find(place.offset, first);
  }

  const std::unique_ptr<LogType> log_;
  const std::unique_ptr<log::CarriedRecords> carried_;
  bool carried_read_ = false;  // the last read was of carried_, and so last_error() is
};

}  // namespace lightq::broker
