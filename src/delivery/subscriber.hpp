/// A plain consumer in mode `sub`, with its own cursor: it receives every message. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/dispatch_turn.hpp"
#include "delivery/expiry/expiry_index.hpp"
#include "delivery/plain_turn.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/slice_source.hpp"
#include "delivery/state/delivery_context.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/turn_result.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// One `sub` join and its cursor over one topic's log. It keeps the cursor while no consumer is connected.
/// Subscribers owns it. Thread: the reactor's.
class Subscriber {
 public:
  explicit Subscriber(Offset start) : reader_(start) {}

  void attach(RecordSink& consumer) { consumer_ = &consumer; }
  /// Disconnects the consumer. The cursor goes back to the first unsent message.
  void detach() {
    if (consumer_ == nullptr) return;
    const Offset back = committed();
    delivered_ -= consumer_->unsent().size();
    consumer_ = nullptr;
    reader_.seek(back);
  }
  /// Stops delivery although the consumer stays connected. Messages that its connection has taken are still
  /// sent, so the cursor stays.
  void pause() { consumer_ = nullptr; }
  [[nodiscard]] bool attached() const { return consumer_ != nullptr; }

  /// Delivers to the consumer until it takes no more, the log ends, or its share of the turn is used up.
  TurnResult dispatch(log::BatchLog& log, const DeliveryContext& context) {
    TurnResult result;
    if (consumer_ == nullptr) return result;
    if (read_again_ <= context.now) dispatch_available(log, context, result);
    consumer_->flush();
    return result;
  }
  /// Returns the error because of which the consumer waits: the messages for it are unavailable. Returns null
  /// if it does not wait for this reason.
  [[nodiscard]] const Error* unavailable() const { return attached() ? reader_.unavailable() : nullptr; }
  /// Returns when `dispatch` tries to read again, or `never` unless messages are unavailable().
  [[nodiscard]] SteadyTime next_timer() const {
    return attached() && read_again_ != SteadyTime{} ? read_again_ : never;
  }
  [[nodiscard]] Offset next() const { return reader_.offset(); }
  /// Returns the offset below which all messages have left this process.
  [[nodiscard]] Offset committed() const {
    if (consumer_ != nullptr) {
      if (const auto unsent = consumer_->first_unsent()) return *unsent;
    }
    return reader_.offset();
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  /// Returns how many messages this subscriber never receives: the log no longer had them, or they were
  /// damaged.
  [[nodiscard]] std::uint64_t lost() const { return reader_.loss().trimmed + reader_.loss().damaged; }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return reader_.take_damage(); }
  void skip_to(Offset offset) {
    reader_.seek(offset);
    read_again_ = {};
  }
  /// Moves the cursor behind the expired messages at it.
  void pass_expired(const ExpiryIndex& expiry) {
    const ExpiryIndex::Part part = expiry.part_at(next());
    if (part.expired) reader_.pass_expired(part.end);
  }
  /// Moves the cursor up to `first`, the log's first offset, or to a message of `carried` before it (null:
  /// there is none), so that expired messages in between do not count as lost.
  void pass_dropped(Offset first, const log::OffsetSet* carried, const ExpiryIndex& expiry) {
    const auto run = carried == nullptr ? std::nullopt : carried->first_behind(next());
    const Offset to = run ? std::min(first, std::max(next(), run->begin)) : first;
    if (next() < to) reader_.pass_dropped(to, dropped_in({next(), to}, nullptr, &expiry.expired(), false));
  }
  /// Returns how many messages had expired when the cursor passed them.
  [[nodiscard]] std::uint64_t expired() const { return reader_.expired(); }
  /// Moves the cursor as `skip_to` does. Messages that the connection has taken are still sent, and count as
  /// finished: they are never sent again.
  void finish_up_to(Offset offset) {
    if (consumer_ != nullptr) consumer_->forget_unsent();
    skip_to(offset);
  }

 private:
  void dispatch_available(log::BatchLog& log, const DeliveryContext& context, TurnResult& result) {
    SliceSource source(log, context, reader_);
    std::size_t first = 0;
    PlainTurn turn({&consumer_, 1}, first, context.cursor_bytes_max, result);
    result.more = dispatch_turn(source, turn) == TurnEnd::over;
    delivered_ += result.messages;
    read_again_ = source.read_again();
  }

  RecordReader reader_;
  RecordSink* consumer_ = nullptr;
  std::uint64_t delivered_ = 0;
  SteadyTime read_again_{};  // while the log is unavailable: not before this time
};

}  // namespace lightq::broker
