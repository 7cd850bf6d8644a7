/// Moves dead messages from and to the topics of one reactor. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "base/log_sink.hpp"
#include "net/event_loop.hpp"
#include "net/turn_queue.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_producer.hpp"
#include "topic/dead/letter_source.hpp"
#include "topic/dead/letter_transfer.hpp"
#include "topic/dead/letters_in_transit.hpp"
#include "topic/dead/return_office.hpp"

namespace lightq::broker {

/// Owns the transfers of this reactor's groups, and the producers of its dead-letter topics. Topics with
/// nothing dead cost nothing here. Offices call each other through LetterPost, also on the same reactor. The
/// Reactor owns it. Thread: the reactor's.
class LetterOffice final {
 public:
  /// Lifetime: the references outlive the office.
  struct Parts {
    EventLoop& loop;
    LogSink& sink;
    std::function<TopicRuntime*(TopicId)> find_topic;
    /// Returns the names of the groups of a topic with messages that wait for their transfer.
    std::function<std::vector<std::string>(TopicRuntime&)> waiting_groups;
    /// Returns the outbox of a group.
    std::function<std::unique_ptr<LetterSource>(TopicRuntime&, const std::string& group)> source_of;
    /// The memory for letters that wait for space in this reactor's topics.
    std::size_t held_bytes_max = 4 * limits::MiB;
    /// The letters of this reactor's groups in the mailboxes of reactors: less than a round more than this.
    std::size_t sent_bytes_max = limits::letters_sent_bytes_max;
  };

  explicit LetterOffice(Parts parts)
      : parts_(std::move(parts)),
        room_(parts_.held_bytes_max),
        sent_(parts_.sent_bytes_max),
        returns_({parts_.loop, parts_.sink, parts_.find_topic, room_}) {}
  LetterOffice(const LetterOffice&) = delete;
  LetterOffice& operator=(const LetterOffice&) = delete;
  ~LetterOffice() { stop(); }

  /// Sets the way to other topics. Without one nothing is moved. Lifetime: `post` outlives the office.
  void connect(LetterPost& post) {
    post_ = &post;
    returns_.connect(post);
  }
  /// Returns the office that gives letters back.
  [[nodiscard]] ReturnOffice& returns() { return returns_; }
  /// Called when groups of the topic have messages that wait for their transfer; as often as the topic likes.
  void wake(TopicId topic);
  /// Ends the topic's transfers. Called before the topic is destroyed.
  void forget(TopicId topic);
  /// Ends all transfers and producers. Later calls of other offices have no effect.
  void stop();

  // Calls of transfers. Their groups may be on another reactor; the dead-letter topic is on this one.

  /// Opens a producer with this id in the topic. A report to the transfer follows.
  void open_producer(LetterChannel channel, TopicId target, std::uint64_t id);
  /// Stores letters through that producer. A report follows, unless the channel was closed.
  void take(LetterChannel channel, std::vector<NumberedLetter> letters);
  void close_producer(LetterChannel channel);

  // Reports to the transfers of this reactor's groups: see the functions of LetterTransfer with these names.

  void settled(LetterChannel channel, std::uint64_t expected);
  void refused(LetterChannel channel, std::uint64_t number, const Error& why);
  void ended(LetterChannel channel, const Error& why);
  void held(LetterChannel channel, const Error& why);

  /// Returns the bytes of the letters that wait for space in this reactor's topics.
  [[nodiscard]] std::size_t held_bytes() const { return room_.used(); }
  /// Returns the bytes of the letters that were sent and that no reactor has taken yet.
  [[nodiscard]] std::size_t sent_bytes() const { return sent_.bytes(); }

 private:
  using GroupKey = std::pair<TopicId, std::string>;

  void look(TopicId topic);
  void begin(TopicRuntime& topic, const std::string& group);
  LetterTransfer* transfer_at(LetterChannel channel);
  void work(std::uint64_t transfer, const std::function<void(LetterTransfer&)>& call);
  void drop(std::uint64_t transfer);

  const Parts parts_;
  LetterRoom room_;  // outlives the producers
  LettersInTransit sent_;
  ReturnOffice returns_;
  LetterPost* post_ = nullptr;
  TurnQueue turns_{parts_.loop};  // of the transfers
  bool stopped_ = false;
  std::shared_ptr<LetterOffice*> self_ = std::make_shared<LetterOffice*>(this);
  int calls_ = 0;  // of transfers, nested
  std::uint64_t last_transfer_ = 0;
  std::map<TopicId, EventLoop::TimerId> looks_;  // topics to look at soon
  std::map<std::uint64_t, std::unique_ptr<LetterTransfer>> transfers_;
  std::map<GroupKey, std::uint64_t> by_group_;  // in transfers_
  std::map<LetterChannel, std::unique_ptr<LetterProducer>> producers_;
};

}  // namespace lightq::broker
