/// Moves dead messages from and to the topics of one reactor. Layer: topic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log_sink.hpp"
#include "net/event_loop.hpp"
#include "topic/dead/letter_inlet.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_source.hpp"
#include "topic/dead/letter_transfer.hpp"

namespace lightq::broker {

/// Owns the transfers of this reactor's groups, and the inlets of its dead-letter topics. Topics with nothing
/// dead cost nothing here. Offices call each other through LetterPost, also on the same reactor.
/// The Reactor owns it. Thread: the reactor's.
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
  };

  explicit LetterOffice(Parts parts) : parts_(std::move(parts)) {}
  LetterOffice(const LetterOffice&) = delete;
  LetterOffice& operator=(const LetterOffice&) = delete;
  ~LetterOffice() { stop(); }

  /// Sets the way to other topics. Without one nothing is moved. Lifetime: `post` outlives the office.
  void connect(LetterPost& post) { post_ = &post; }
  /// Called when groups of the topic have messages that wait for their transfer; as often as the topic likes.
  void wake(TopicId topic);
  /// Ends the topic's transfers. Called before the topic is destroyed.
  void forget(TopicId topic);
  /// Ends all transfers and inlets. Later calls of other offices have no effect.
  void stop();

  // Calls of the offices of dead-letter topics' sources, for topics of this reactor.

  void open_inlet(LetterChannel channel, TopicId target, std::uint64_t id);
  void take(LetterChannel channel, std::vector<NumberedLetter> letters);
  void close_inlet(LetterChannel channel);

  // Answers of the targets' offices, for groups of this reactor.

  void settled(LetterChannel channel, std::uint64_t expected);
  void refused(LetterChannel channel, std::uint64_t number, const Error& why);
  void ended(LetterChannel channel, const Error& why);

 private:
  using GroupKey = std::pair<TopicId, std::string>;

  void look(TopicId topic);
  void begin(TopicRuntime& topic, const std::string& group);
  LetterTransfer* transfer_at(LetterChannel channel);
  void work(std::uint64_t transfer, const std::function<void(LetterTransfer&)>& call);
  void drop(std::uint64_t transfer);

  const Parts parts_;
  LetterPost* post_ = nullptr;
  bool stopped_ = false;
  int calls_ = 0;  // of transfers, nested
  std::uint64_t last_transfer_ = 0;
  std::map<TopicId, EventLoop::TimerId> looks_;  // topics to look at soon
  std::map<std::uint64_t, std::unique_ptr<LetterTransfer>> transfers_;
  std::map<GroupKey, std::uint64_t> by_group_;  // in transfers_
  std::map<LetterChannel, std::unique_ptr<LetterInlet>> inlets_;
};

}  // namespace lightq::broker
