/// A topic at work on a reactor: its store, its endpoints, and the parts that move messages between them.
/// Layer: topic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "delivery/session_consumer.hpp"
#include "delivery/topic.hpp"
#include "store/removal_job.hpp"
#include "store/store_holder.hpp"
#include "topic/found_topic.hpp"
#include "topic/runtime/oldest_message.hpp"
#include "topic/runtime/state_owners.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_commands.hpp"
#include "topic/runtime/topic_consumers.hpp"
#include "topic/runtime/topic_dispatch.hpp"
#include "topic/runtime/topic_letters.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_publishing.hpp"
#include "topic/runtime/topic_reads.hpp"
#include "topic/runtime/topic_reports.hpp"
#include "topic/runtime/topic_saves.hpp"
#include "topic/runtime/topic_schedule.hpp"
#include "topic/runtime/waiting_producers.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Runs a topic: owns its store, delivery state, endpoints and parts, and connects them. A message's path:
/// TopicPublishing → log → TopicDispatch → consumer. A part has one job and refers to the parts that it uses.
/// Thread: the reactor's.
class TopicRuntime final {
 public:
  using Ticker = TopicTicker;

  /// `found`: the state that the start has found; its log is in `store`.
  TopicRuntime(ReactorContext& context, Ticker& ticker, const MakeEndpoints& make_endpoints,
               TopicDefinition definition, std::unique_ptr<TopicStore> store, FoundTopic found);
  TopicRuntime(const TopicRuntime&) = delete;
  TopicRuntime& operator=(const TopicRuntime&) = delete;
  ~TopicRuntime();

  [[nodiscard]] const TopicDefinition& definition() const { return topic_.definition(); }
  [[nodiscard]] const TopicStore& store() const { return *held_store_.store; }
  /// Returns the log's incarnation. Offsets of another incarnation have no meaning here.
  [[nodiscard]] std::uint64_t incarnation() const { return lives_.incarnation(); }
  /// Returns the offset below which the log has the same messages as under `incarnation`; see LogLives.
  [[nodiscard]] std::optional<Offset> same_up_to(std::uint64_t incarnation) const {
    return lives_.same_up_to(incarnation);
  }
  TopicEndpoints& endpoints() { return *endpoints_; }
  /// Opens an endpoint from the catalogue again. A subscriber continues at its stored position. Errors: see
  /// TopicEndpoints::reopen.
  Result<void> reopen(const EndpointRecord& record);
  /// Returns the statistics, with at most `members_max` members of groups.
  [[nodiscard]] protocol::TopicStats stats(std::uint64_t members_max = 0);
  /// Returns the counters that a history samples.
  [[nodiscard]] TopicFlow flow() const { return topic_.flow(); }

  // The parts.

  /// Commands of the control socket.
  [[nodiscard]] TopicCommands& commands() { return commands_; }
  /// Messages from producers.
  [[nodiscard]] TopicPublishing& publishing() { return publishing_; }
  [[nodiscard]] const TopicPublishing& publishing() const { return publishing_; }
  /// Messages to consumers.
  [[nodiscard]] TopicDispatch& dispatch() { return dispatch_; }
  /// Producers over sessions.
  [[nodiscard]] const TopicProducers& producers() const { return producers_; }
  /// Consumers over sessions. They are opened and detached here.
  [[nodiscard]] TopicConsumers& consumers() { return consumers_; }
  [[nodiscard]] TopicReads& reads() { return reads_; }
  /// Delayed messages.
  [[nodiscard]] TopicSchedule& schedule() { return *schedule_; }
  [[nodiscard]] const TopicSchedule& schedule() const { return *schedule_; }
  /// Dead messages on their way to another topic.
  [[nodiscard]] TopicLetters& letters() { return letters_; }
  /// The state of letters from other topics. After a change, call letters().changed().
  [[nodiscard]] LetterBook& letter_book() { return book_; }
  /// Dispatches soon, after the present call.
  void want_dispatch() { activity_.want_dispatch(); }

  /// Opens `consumer`, of `user`, as `asked` describes. Unless it is refused (a code other than
  /// ClientError::none), `consumer` is called in later turns of the loop until it detaches or is ended.
  TopicConsumers::Refusal open_consumer(const ConsumeRequest& asked, SessionConsumer& consumer,
                                        std::uint64_t user = 0);
  /// Detaches the consumer. Messages in flight to it are delivered to other consumers.
  void detach_consumer(SessionConsumer& consumer);
  /// Returns the longest time for which a consumer may keep a message from its group: by its ack timeout, a
  /// reject with a delay, or an extension.
  [[nodiscard]] std::uint64_t redelivery_ms_max() const { return context_.settings.groups.redelivery_ms_max; }

  /// Prefetches the parts of this object that a publish, a delivery or an acknowledgement uses.
  void fetch_ahead_fields() const;
  /// Prefetches the memory that storing and dispatching a batch needs, in steps (see base/fetch_ahead.hpp).
  /// Requires: fetch_ahead_fields(), before step 0.
  void fetch_ahead_for_input(unsigned step) const;

  /// Does periodic work. Returns false if there is nothing more to do until something happens. The topic then
  /// asks its ticker for ticks again.
  bool tick();

  // A clean stop: these functions are called in this order.

  /// Accepts and dispatches nothing more. Dispatched messages are still sent. Ends the sessions' producers
  /// and consumers with `why`.
  void begin_stop(ClientError why);
  [[nodiscard]] bool all_sent() { return endpoints_->all_sent(); }
  /// Saves the log, the producers and the cursors, and closes the log. Blocks this thread.
  void flush_for_stop();

  /// Returns true if no disk job is running or waiting: the topic may be destroyed.
  [[nodiscard]] bool idle_on_disk() const { return store().is_idle() && schedule_->is_idle_on_disk(); }
  /// Sets a function that is called when idle_on_disk() becomes true. Requires: !idle_on_disk(). For a topic
  /// that only waits to be destroyed.
  void when_idle_on_disk(std::function<void()> call);
  /// Sets `receiver`, which gets the topic's store at the end of the destructor, to delete the files.
  void pass_store_to(StoreHolder::Receiver receiver) { held_store_.receiver = std::move(receiver); }

 private:
  // A publish, a delivery and an acknowledgement use these up to the first part of topic_, parts of the
  // members behind it, and those from dispatch_ up to saves_. fetch_ahead_fields() depends on this order.
  ReactorContext& context_;
  StoreHolder held_store_;
  std::unique_ptr<DurableProducers> known_producers_;
  Topic topic_;
  TopicProducers producers_;
  TopicConsumers consumers_;
  TopicDispatch dispatch_;
  TopicPublishing publishing_;
  TopicActivity activity_;
  std::unique_ptr<TopicEndpoints> endpoints_;
  WaitingProducers held_;
  TopicReports reports_;
  TopicSaves saves_;

  TopicReads reads_;
  TopicLetters letters_;
  TopicCommands commands_;
  StateOwners owners_;
  LogLives lives_;
  LetterBook book_;
  std::unique_ptr<TopicSchedule> schedule_;
  OldestMessage oldest_;
  std::uint64_t deliveries_most_ = 0;  // that statistics have reported
};

}  // namespace lightq::broker
