/// The dead messages of a group that wait for their transfer to the dead-letter topic. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// A queue of messages. The first ones may be *under way*: their transfer has begun, and it is not known
/// whether the target has them. Only these have a transfer number. Numbers ascend without gaps within an
/// *incarnation* of the outbox, from 1 on. So the target recognizes a repeated transfer by incarnation and
/// number, if the outbox was saved with the number before the transfer.
/// An incarnation ends when messages under way leave without being done: the group's position was moved, or
/// the group was purged. It is a random number, so that the target never takes the messages of one
/// incarnation for those of another. A plain value for one thread. A copy costs time by the number of
/// messages.
class Outbox {
 public:
  /// Returns the messages in the order of their transfer.
  [[nodiscard]] const std::deque<Offset>& messages() const { return messages_; }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  /// Returns how many of the first messages are under way.
  [[nodiscard]] std::size_t under_way() const { return under_way_; }
  /// Returns the number of the first message: its own if it is under way, or the next one to be given.
  [[nodiscard]] std::uint64_t first_number() const { return first_number_; }
  /// Returns the incarnation. 0: none, because no transfer has begun yet.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }

  /// Adds a message at the end.
  void add(Offset message) { messages_.push_back(message); }
  /// Begins the transfer of the first messages, so that at most `most` are under way. Returns their number.
  std::size_t begin(std::size_t most);
  /// Removes the first message, whose transfer is done. Requires: under_way() is not 0.
  Offset done();
  /// Removes the first message, which the target has not received and refuses for good. No message is under
  /// way then, and the message's number is used again. Requires: under_way() is not 0; the target has not
  /// received any message under way.
  Offset give_up();
  /// Begins a new incarnation. Requires: under_way() is 0.
  void renew() {
    incarnation_ = 0;  // `begin` draws another one
    first_number_ = 1;
  }
  /// Removes the messages behind those under way for which `picks(offset)` is true.
  template <typename Picks>
  void remove_waiting(Picks&& picks) {
    const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(under_way_);
    messages_.erase(std::remove_if(first, messages_.end(), picks), messages_.end());
  }
  /// Removes all messages. The incarnation ends if some were under way.
  void clear();
  /// Replaces all by saved messages.
  void restore(std::uint64_t incarnation, std::uint64_t first_number, std::size_t under_way,
               const std::vector<Offset>& messages);

 private:
  std::deque<Offset> messages_;
  std::size_t under_way_ = 0;
  std::uint64_t first_number_ = 1;
  std::uint64_t incarnation_ = 0;
};

}  // namespace lightq::broker
