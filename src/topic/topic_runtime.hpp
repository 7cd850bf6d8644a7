/// A topic at work on a reactor: its store, its endpoints, and the message flow between them.
/// Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delivery/session_consumer.hpp"
#include "delivery/topic.hpp"
#include "plain/endpoint_set.hpp"
#include "store/removal_job.hpp"
#include "store/store_holder.hpp"
#include "topic/found_topic.hpp"
#include "topic/save_waiters.hpp"
#include "topic/topic_consumers.hpp"
#include "topic/topic_producers.hpp"

namespace lightq::broker {

/// Waits until messages that a read has reported as pending can be read. Thread: the reactor's.
class ReadWaiter {
 public:
  virtual ~ReadWaiter() = default;
  /// Called once, when messages that a read has reported as pending may be readable, or the topic stops.
  virtual void readable() = 0;
};

/// Runs a topic: owns its store, delivery state and endpoints, and connects them. A message's path: inlet
/// (PlainProducerConnection) → publish → log → dispatch → plain consumer (PlainConsumerConnection). Thread:
/// the reactor's.
class TopicRuntime final : public EventLoop::Source,
                           private PlainProducerHost,
                           private EndpointSet::Listener,
                           private StoreEvents {
 public:
  /// Calls `tick` about every 100 ms for each topic that asked for it.
  class Ticker {
   public:
    virtual ~Ticker() = default;
    virtual void tick_wanted(TopicRuntime& topic) = 0;
  };

  /// `found`: the state that the start has found; its log is in `store`.
  TopicRuntime(ReactorContext& context, Ticker& ticker, TopicDefinition definition,
               std::unique_ptr<TopicStore> store, FoundTopic found);
  ~TopicRuntime() override;

  [[nodiscard]] const TopicDefinition& definition() const { return topic_.definition(); }
  EndpointSet& endpoints() { return endpoints_; }
  /// Opens an endpoint from the catalogue again. A subscriber continues at its stored position. Errors: see
  /// EndpointSet::reopen.
  Result<void> reopen(const EndpointRecord& record);
  [[nodiscard]] protocol::TopicStats stats();

  // Commands of the control socket (topic_runtime_commands.cpp).

  using Answered = std::function<void(const Result<std::uint64_t>&)>;
  /// Deletes the group. Calls `answered`, perhaps within this call, when the deletion survives a kill of the
  /// broker. Errors: group_not_found, group_in_use, shutting_down. After io_error or no_space the group stays
  /// deleted only until the broker ends.
  void delete_group(const std::string& group, const Answered& answered);
  /// Pauses or resumes dispatch to all consumers of the topic.
  void set_paused(bool paused);
  /// Pauses or resumes dispatch to one group. Calls `answered`, perhaps within this call, when the change
  /// survives a kill of the broker. Errors: group_not_found, shutting_down. After io_error or no_space the
  /// change lasts only until the broker ends.
  void set_group_paused(const std::string& group, bool paused, const Answered& answered);
  /// Moves the group past all stored messages. Calls `answered`, perhaps within this call, when that survives
  /// a kill of the broker. The result is the number of messages that the group had not processed. Errors:
  /// group_not_found, shutting_down. After io_error or no_space the change lasts only until the broker ends.
  void purge_group(const std::string& group, const Answered& answered);
  /// Moves every group and subscriber past all stored messages, and drops the messages. Calls `answered`,
  /// perhaps within this call, when that survives a kill of the broker. The result is the number of messages
  /// that were stored. Errors: io_error, no_space, shutting_down.
  void purge(const Answered& answered);

  /// Does periodic work. Returns false if there is nothing more to do until something happens. The topic then
  /// calls tick_wanted again.
  bool tick();
  void on_ready() override { dispatch(); }

  // Sessions.

  /// Opens the producer `wanted`, new or known, for a client of `opener`'s user. Unless it is refused,
  /// `producer` is called with the results of its batches until it detaches or is ended.
  ProducerTable::Opened open_producer(ProducerIdentity wanted, SessionProducer& producer,
                                      ProducerTable::Opener opener);
  void detach_producer(SessionProducer& producer) {
    producers_.detach(producer);
    want_ticks();  // its last use is saved
  }
  [[nodiscard]] const TopicProducers& producers() const { return producers_; }

  /// Opens `consumer`, of `user`, as `asked` describes. Unless it is refused (a code other than
  /// ClientError::none), `consumer` is called in later turns of the loop until it detaches or is ended.
  TopicConsumers::Refusal open_consumer(const ConsumeRequest& asked, SessionConsumer& consumer,
                                        std::uint64_t user = 0);
  /// Detaches the consumer. Messages in flight to it are delivered to other consumers.
  void detach_consumer(SessionConsumer& consumer);
  // The following calls are ignored if the consumer is not attached, because it was ended a moment ago.
  /// Adds credit. Returns false if that is more than the protocol allows.
  bool add_credit(SessionConsumer& consumer, const Credit& credit);
  void acknowledge(SessionConsumer& consumer, const Ack& acknowledged);
  void reject(SessionConsumer& consumer, const Rejection& rejected);
  void extend(SessionConsumer& consumer, const Extension& extended);
  /// Returns the longest time for which a consumer may keep a message from its group: by its ack timeout, a
  /// reject with a delay, or an extension.
  [[nodiscard]] std::uint64_t redelivery_ms_max() const { return context_.settings.groups.redelivery_ms_max; }
  /// Returns true if the consumer has messages in flight that it can still acknowledge in time.
  [[nodiscard]] bool has_in_flight(SessionConsumer& consumer) const {
    return consumers_.has_in_flight(consumer);
  }
  /// Returns true if the consumer's group has members of other users.
  [[nodiscard]] bool shares_group_with_others(SessionConsumer& consumer) const {
    return consumers_.shares_group_with_others(consumer);
  }
  /// Moves the consumer's group to `to`. Returns the offset that comes next. Errors: io_error, see
  /// ConsumerGroups::seek.
  Result<Offset> seek(SessionConsumer& consumer, StartPosition to);
  /// Called when a consumer becomes writable again. Dispatches messages soon.
  void consumer_writable(SessionConsumer& consumer);
  /// Delivers messages from the reader's position on to `turn`, for a session's `read`. reader.loss() counts
  /// the messages that were skipped.
  template <DispatchTurn Turn>
  TurnEnd read(RecordReader& reader, Turn& turn) {
    return topic_.read(reader, turn, begin_read());
  }
  /// Calls waiter.readable() once, when pending messages can be read or the topic stops. Requires: the waiter
  /// does not wait yet. Lifetime: the waiter calls forget_readable before it is destroyed, unless readable()
  /// was called.
  void await_readable(ReadWaiter& waiter) { read_waiters_.push_back(&waiter); }
  void forget_readable(ReadWaiter& waiter) { std::erase(read_waiters_, &waiter); }

  /// Prefetches the parts of this object that a publish, a delivery or an acknowledgement uses.
  void fetch_ahead_fields() const;
  /// Prefetches the memory that storing and dispatching a batch needs, in steps (see base/fetch_ahead.hpp).
  /// Requires: fetch_ahead_fields(), before step 0.
  void fetch_ahead_for_input(unsigned step) const;
  /// Returns memory of the log in which the batch that is stored next can be assembled before it is checked:
  /// see BatchLog::place_for_next.
  std::span<std::byte> place_for_next(std::size_t bytes) { return topic_.place_for_next(bytes); }
  /// Stores the producer's next batch.
  PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences);
  /// Returns false if nothing may be taken from producers now.
  [[nodiscard]] bool accepting() const override { return !stopping_ && topic_.accepting(); }
  /// Dispatches the messages that have been published.
  void published() override;
  /// Requests a flush of the log up to its present end, for a client that waits until that is durable.
  void want_flush() { store().request_flush(store().next_offset()); }
  /// Called when `producer` found no space for a batch. It waits until its `resume` is called.
  void producer_held(SessionProducer& producer) {
    producers_.note_held(producer);
    inlet_held();
  }
  /// Calls `producer` when the durable offset has moved.
  void await_durable(SessionProducer& producer) { producers_.await_durable(producer); }
  [[nodiscard]] bool held_by_disk() const { return topic_.held_by_disk(); }
  /// Returns true if messages in the log survive the broker's end.
  [[nodiscard]] bool is_durable() const { return store().is_durable(); }
  [[nodiscard]] Offset next_offset() const { return topic_.log().next_offset(); }
  [[nodiscard]] Offset durable_offset() const { return topic_.log().durable_offset(); }
  /// Returns the log's incarnation. Offsets of another incarnation have no meaning here.
  [[nodiscard]] std::uint64_t incarnation() const { return lives_.incarnation(); }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return context_.settings.message_bytes_max;
  }
  /// Counts messages that were refused because they are too long.
  void count_too_long(std::uint64_t messages) {
    count(context_.settings.limits_reached, Limit::message_bytes_max, messages);
  }
  /// Returns the length in bytes of the longest batch that can ever be stored.
  [[nodiscard]] std::uint64_t batch_bytes_max() const;

  // A clean stop: these functions are called in this order.

  /// Accepts and dispatches nothing more. Dispatched messages are still sent. Ends the sessions' producers
  /// and consumers with `why`.
  void begin_stop(ClientError why);
  [[nodiscard]] bool all_sent() { return endpoints_.all_sent(); }
  /// Saves the log, the producers and the cursors, and closes the log. Blocks this thread.
  void flush_for_stop();

  /// Returns true if no disk job is running or waiting: the topic may be destroyed.
  [[nodiscard]] bool idle_on_disk() const { return store().is_idle(); }
  /// Sets a function that is called when idle_on_disk() becomes true. Requires: !idle_on_disk(). For a topic
  /// that only waits to be destroyed.
  void when_idle_on_disk(std::function<void()> call) { store().when_idle(std::move(call)); }
  /// Sets `heir`, which receives the topic's store at the end of the destructor, to delete the files.
  void bequeath(StoreHolder::Heir heir) { held_store_.heir = std::move(heir); }

 private:
  /// A purge that drops its messages once the saved producers do not depend on them.
  struct PendingPurge {
    Offset before;
    std::uint64_t messages = 0;
    std::uint64_t change = 0;  // the change of the producers that must be saved first
    Answered answered;
    SteadyTime give_up{};  // on a full disk: saving is retried until then
  };

  // PlainProducerHost
  PublishOutcome publish(BatchBuilder& batch) override;
  void count_refused(std::uint64_t messages) override {
    topic_.count_refused(messages);
    count_too_long(messages);
  }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return batch_bytes_target_; }
  BatchBuilder& batch() override { return context_.batch; }
  void inlet_held() override;
  // EndpointSet::Listener
  void consumers_changed() override;
  void consumers_writable() override { dispatch(); }
  // StoreEvents
  void on_durable() override;
  void on_readable() override;
  void on_saved(StoredState what, const Result<void>& result) override;
  void on_health() override;

  [[nodiscard]] TopicStore& store() { return *held_store_.store; }
  [[nodiscard]] const TopicStore& store() const { return *held_store_.store; }

  PublishOutcome report(PublishOutcome outcome, std::uint64_t bytes);
  void session_consumers_changed();
  DeliveryContext begin_read();
  void want_dispatch();
  void dispatch();
  void arm_group_timer();
  void resume_held();
  void call_read_waiters();
  void want_ticks();
  void arm_retention();
  void start_work(Timestamp now);
  void save_cursors(Timestamp now);
  void save_producers(Timestamp now);
  void admit_producers();
  void end_waiting_producers(const Error& error);
  [[nodiscard]] Result<ConsumerGroup*> group_of(const std::string& name);
  [[nodiscard]] std::uint64_t owner_for(std::uint64_t user) const;
  [[nodiscard]] bool is_gone(std::uint64_t owner) const;
  void answer_when_saved(std::uint64_t answer, const Answered& answered);
  void settle_purges();
  void hurry_producers();
  void drop_purged(Offset before);
  void end_purges(const Error& why);
  void purge_again(PendingPurge purge, const Error& why);
  void try_purges_again();
  void end_commands(ClientError why);
  void cursors_saved(const Result<void>& result);
  void producers_saved(const Result<void>& result);
  void report_losses(Timestamp now);
  void report_unavailable();
  [[nodiscard]] std::vector<log::NamedCursor> cursors(std::size_t ranges_max) const;
  [[nodiscard]] bool cursors_awaited() const {
    return consumers_.waits_for_save() || cursor_waiters_.want_save();
  }

  // A publish, a delivery and an acknowledgement use these up to the first part of topic_, parts of the
  // members behind it, and the fields from stopping_ up to purged_. fetch_ahead_fields() depends on this
  // order.
  ReactorContext& context_;
  Ticker& ticker_;
  StoreHolder held_store_;
  std::unique_ptr<DurableProducers> known_producers_;
  Topic topic_;
  EndpointSet endpoints_;
  TopicProducers producers_;
  TopicConsumers consumers_;
  const std::size_t batch_bytes_target_;
  bool stopping_ = false;
  bool held_ = false;
  bool resume_soon_ = false;  // the next dispatch resumes producers that wait for space
  bool warned_of_disk_ = false;
  bool warned_of_unavailable_ = false;
  bool ticking_ = false;
  bool cursor_job_out_ = false;
  bool producers_failed_ = false;
  bool producers_lack_space_ = false;  // the last save of the producers found no space
  std::uint64_t hurried_change_ = 0;   // the change of the producers that dropped segments wait for
  bool told_of_dropped_ = false;  // it was logged that messages are dropped before the producers are saved
  bool told_of_failed_sync_ = false;
  Offset durable_known_;  // the durable offset that waiting producers know
  bool cursors_failed_ = false;
  std::uint64_t ticks_ = 0;  // while held_
  EventLoop::TimerId retention_timer_ = 0;
  EventLoop::TimerId group_timer_ = 0;
  SteadyTime group_timer_at_ = never;
  Timestamp last_active_;
  Timestamp cursors_saved_;
  std::int64_t saved_ranges_ = 0;                // the number of ranges in saved_cursors_
  std::vector<log::NamedCursor> saved_cursors_;  // by name: as last written or loaded
  bool cursors_kept_ = false;                    // saved_cursors_ are durable on disk
  SaveWaiters cursor_waiters_;

  std::optional<Offset> purged_;  // the end of the last purge; saved in the cursors' file
  std::vector<PendingPurge> purges_;
  std::vector<PendingPurge> purges_again_;       // retried at the next tick: the disk was full
  std::vector<log::NamedCursor> found_cursors_;  // by name, at the start
  LogLives lives_;
  std::vector<ReadWaiter*> read_waiters_;
  Timestamp losses_reported_;
  std::uint64_t damaged_reported_ = 0;
  std::uint64_t refused_reported_ = 0;
};

}  // namespace lightq::broker
