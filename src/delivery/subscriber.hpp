/// A plain consumer in mode `sub`, with its own cursor: it receives every message. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>

#include "delivery/group_time.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/record_sink.hpp"

namespace lightq::broker {

/// One `sub` join and its cursor over one topic's log. It keeps the cursor while no consumer is connected.
/// Topic owns it. Thread: the reactor's.
class Subscriber {
 public:
  explicit Subscriber(Offset start) : walk_(start) {}

  void attach(RecordSink& outlet) { outlet_ = &outlet; }
  /// Disconnects the consumer. The cursor goes back to the first unsent message.
  void detach() {
    if (outlet_ == nullptr) return;
    const Offset back = committed();
    delivered_ -= outlet_->unsent().size();
    outlet_ = nullptr;
    walk_.seek(back);
  }
  /// Stops delivery although the consumer stays connected. Messages that its connection has taken are still
  /// sent, so the cursor stays.
  void pause() { outlet_ = nullptr; }
  [[nodiscard]] bool attached() const { return outlet_ != nullptr; }

  struct Handed {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    bool more = false;
  };
  Handed pump(log::BatchLog& log, std::size_t bytes_max, SteadyTime now) {
    Handed handed;
    if (outlet_ == nullptr) return handed;
    if (read_again_ <= now) hand_out(log, bytes_max, now, handed);
    outlet_->flush();
    return handed;
  }
  /// Returns the error because of which the consumer waits: the messages for it are unavailable. Returns null
  /// if it does not wait for this reason.
  [[nodiscard]] const Error* unavailable() const { return attached() ? walk_.unavailable() : nullptr; }
  /// Returns when `pump` tries to read again, or `never` unless messages are unavailable().
  [[nodiscard]] SteadyTime next_timer() const { return unavailable() == nullptr ? never : read_again_; }
  [[nodiscard]] Offset next() const { return walk_.offset(); }
  /// Returns the offset below which all messages have left this process.
  [[nodiscard]] Offset committed() const {
    if (outlet_ != nullptr) {
      if (const auto unsent = outlet_->first_unsent()) return *unsent;
    }
    return walk_.offset();
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  /// Returns how many messages this subscriber never receives: the log no longer had them, or they were
  /// damaged.
  [[nodiscard]] std::uint64_t lost() const { return walk_.loss().trimmed + walk_.loss().damaged; }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return walk_.take_damage(); }
  void skip_to(Offset offset) {
    walk_.seek(offset);
    read_again_ = {};
  }
  /// Moves the cursor as `skip_to` does. Messages that the connection has taken are still sent, and never
  /// sent again.
  void pass_over_to(Offset offset) {
    if (outlet_ != nullptr) outlet_->forget_unsent();
    skip_to(offset);
  }

 private:
  void hand_out(log::BatchLog& log, std::size_t bytes_max, SteadyTime now, Handed& handed) {
    handed.more = walk_.walk(log, bytes_max, [&](Offset offset, ByteView payload) {
      if (!outlet_->offer(offset, payload)) return false;
      ++handed.messages;
      handed.bytes += payload.size();
      return true;
    });
    delivered_ += handed.messages;
    read_again_ = walk_.unavailable() != nullptr ? read_again_after(now) : SteadyTime{};
  }

  RecordReader walk_;
  RecordSink* outlet_ = nullptr;
  std::uint64_t delivered_ = 0;
  SteadyTime read_again_{};  // while the log is unavailable: not before this time
};

}  // namespace lightq::broker
