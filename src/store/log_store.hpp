/// A store with a log in this process. Layer: store.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "store/topic_store.hpp"

namespace lightq::broker {

/// Implements the BatchLog functions of TopicStore by a log that it owns. `LogType` is a final class, so that
/// a message costs one virtual call.
template <typename LogType>
class LogStore : public TopicStore {
 public:
  log::AppendResult append(std::span<std::byte> batch, Timestamp now) final {
    return log_->append(batch, now);
  }
  std::span<std::byte> place_for_next(std::size_t bytes) final { return log_->place_for_next(bytes); }
  [[nodiscard]] const void* hot_part() const final { return log_.get(); }
  void fetch_ahead_for_append(unsigned step) const final { log_->fetch_ahead_for_append(step); }
  log::ReadResult read(log::ReadPosition& place) final { return log_->read(place); }
  log::ReadResult read_header(log::ReadPosition& place) final { return log_->read_header(place); }
  log::FoundByTime first_since(Timestamp time) final { return log_->first_since(time); }
  [[nodiscard]] Offset first_offset() const final { return log_->first_offset(); }
  [[nodiscard]] Offset next_offset() const final { return log_->next_offset(); }
  [[nodiscard]] Offset durable_offset() const final { return log_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const final { return log_->stored_bytes(); }
  [[nodiscard]] std::uint64_t held_bytes() const final { return log_->held_bytes(); }
  void trim(Offset before) final { log_->trim(before); }
  Result<void> end_segment() override { return log_->end_segment(); }
  void drop_before(Offset before) final { log_->drop_before(before); }
  bool make_room(std::size_t bytes, Offset limit) final { return log_->make_room(bytes, limit); }
  [[nodiscard]] const Error& last_error() const final { return log_->last_error(); }

  Result<void> flush() final { return log_->flush(); }
  Result<void> close() final { return log_->close(); }

 protected:
  explicit LogStore(std::unique_ptr<LogType> log) : log_(std::move(log)) {}
  [[nodiscard]] LogType& log() { return *log_; }
  [[nodiscard]] const LogType& log() const { return *log_; }

 private:
  const std::unique_ptr<LogType> log_;
};

}  // namespace lightq::broker
