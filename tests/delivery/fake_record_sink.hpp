/// A plain consumer for tests of delivery. It accepts a limited number of messages, and sends them when the
/// test says so.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "delivery/record_sink.hpp"

namespace lightq::test {

class FakeRecordSink final : public broker::RecordSink {
 public:
  /// `room` is the number of messages that it accepts before it refuses. With `sends_at_once`, flush sends
  /// all messages.
  explicit FakeRecordSink(std::size_t room = 1'000'000, bool sends_at_once = true)
      : room_(room), sends_at_once_(sends_at_once) {}

  bool offer(Offset offset, ByteView payload) override {
    if (taken.size() >= room_) return false;
    taken.emplace_back(as_text(payload));
    offsets.push_back(offset);
    return true;
  }
  void flush() override {
    if (sends_at_once_) sent_ = offsets.size();
  }
  [[nodiscard]] std::optional<Offset> first_unsent() const override {
    if (sent_ == offsets.size()) return std::nullopt;
    return *std::min_element(offsets.begin() + static_cast<std::ptrdiff_t>(sent_), offsets.end());
  }
  [[nodiscard]] std::vector<Offset> unsent() const override {
    return {offsets.begin() + static_cast<std::ptrdiff_t>(sent_), offsets.end()};
  }
  void forget_unsent() override { sent_ = offsets.size(); }

  void give_room(std::size_t room) { room_ = room; }
  void send(std::size_t messages) { sent_ = std::min(offsets.size(), sent_ + messages); }

  std::vector<std::string> taken;
  std::vector<Offset> offsets;

 private:
  std::size_t room_;
  bool sends_at_once_;
  std::size_t sent_ = 0;
};

}  // namespace lightq::test
