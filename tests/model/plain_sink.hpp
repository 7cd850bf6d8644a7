/// The connection of a plain consumer, as the broker sees it. It writes down the messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "delivery/record_sink.hpp"
#include "model/client.hpp"

namespace lightq::model {

/// While the connection is writable, everything leaves at once. Otherwise it takes a few messages, which stay
/// unsent.
class PlainSink final : public broker::RecordSink {
 public:
  PlainSink(Journal& journal, int as_number) : number(as_number), journal_(journal) {}

  [[nodiscard]] bool has_room() const { return is_writable || unsent_.size() < room; }
  bool offer(Offset offset, ByteView payload) override {
    if (!has_room()) return false;
    unsent_.push_back(offset);
    journal_.push_back({.client = number,
                        .what = Told::What::pulled,
                        .ranges = {{offset, offset + 1}},
                        .text = std::string(as_text(payload))});
    return true;
  }
  void flush() override {
    if (is_writable) unsent_.clear();
  }
  [[nodiscard]] std::optional<Offset> first_unsent() const override {
    return unsent_.empty() ? std::nullopt : std::optional(*std::ranges::min_element(unsent_));
  }
  [[nodiscard]] std::vector<Offset> unsent() const override { return {unsent_.begin(), unsent_.end()}; }
  void forget_unsent() override { unsent_.clear(); }
  /// Passes the first messages to the system.
  void send(std::size_t messages) {
    for (; messages != 0 && !unsent_.empty(); --messages) unsent_.pop_front();
  }

  const int number;
  bool is_writable = true;
  std::size_t room = 0;  // if it is not writable

 private:
  Journal& journal_;
  std::deque<Offset> unsent_;
};

}  // namespace lightq::model
