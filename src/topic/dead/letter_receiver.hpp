/// Takes letters back in the topic in which they died. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/event_loop.hpp"
#include "topic/dead/group_give_back.hpp"
#include "topic/dead/letter_producer.hpp"
#include "topic/dead/returned_letter.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Works on the first letters of a parcel that have the same fate, and answers when that is durable:
///
/// - The log still has the message, or a copy was carried over: the group gets it back. The group's cursor
/// has the message and how far the run has come (GiveBackMark), in one save. The log has the message if the
/// letter's incarnation is one of its known lives and the message lies below the end of what is the same. For
/// an older life of the same log, the message at the letter's offset has to be equal.
/// - The log does not have it: it is published anew by the broker's own producer of this run and group. Its
/// sequence number is that of the letter. The topic's table of producers has how far that has come.
///
/// The letters of a parcel are done in their order, and a fate is durable before the next one begins. So a
/// letter is done exactly if it is below one of both marks. If a crash cuts this, the parcel is sent again.
/// ReturnOffice owns it. Thread: the reactor's of the source topic.
class LetterReceiver final : public std::enable_shared_from_this<LetterReceiver> {
 public:
  /// Called once. The receiver may be destroyed in a later turn.
  using Answered = std::function<void(const ReturnAnswer&)>;

  /// Works on the letters of `parcel` from index `first` on, of which there is one at least. `room`: for
  /// letters that wait for space in the topic. Lifetime: the loop, the topic and the room outlive the
  /// receiver.
  LetterReceiver(EventLoop& loop, TopicRuntime& topic, LetterRoom& room,
                 std::shared_ptr<const ReturnParcel> parcel, std::size_t first, Answered answered)
      : loop_(loop),
        topic_(topic),
        room_(room),
        parcel_(std::move(parcel)),
        answered_(std::move(answered)),
        first_(first),
        at_(first) {}
  LetterReceiver(const LetterReceiver&) = delete;
  LetterReceiver& operator=(const LetterReceiver&) = delete;
  ~LetterReceiver() { loop_.cancel(timer_); }

  /// Does the work of one turn.
  void work();

 private:
  enum class Fate : std::uint8_t { none, given, published, later };

  [[nodiscard]] Fate fate_of(ConsumerGroup& group, const ReturnedLetter& letter);
  [[nodiscard]] bool is_published(const ReturnedLetter& letter) const;
  [[nodiscard]] Fate readable(const ReturnedLetter& letter, bool compare);
  [[nodiscard]] std::uint64_t producer_id() const;
  void finish();
  void publish();
  void settled(std::uint64_t expected);
  void answer(ReturnAnswer::Stop stop, const std::string& why = {});

  EventLoop& loop_;
  TopicRuntime& topic_;
  LetterRoom& room_;
  const std::shared_ptr<const ReturnParcel> parcel_;
  Answered answered_;  // null once it was called
  const std::size_t first_;
  std::size_t at_;  // the next letter; those before, from first_ on, have the fate fate_
  Fate fate_ = Fate::none;
  bool is_sent_ = false;  // the producer has the letters
  std::unique_ptr<LetterProducer> producer_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace lightq::broker
