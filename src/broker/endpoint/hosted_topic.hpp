/// A topic at work on a reactor: its log's housekeeping, its endpoints, and the flow between them. Layer:
/// endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/delivery/session_consumer.hpp"
#include "broker/delivery/topic.hpp"
#include "broker/endpoint/endpoint_set.hpp"
#include "broker/endpoint/save_waiters.hpp"
#include "broker/endpoint/topic_consumers.hpp"
#include "broker/endpoint/topic_producers.hpp"
#include "broker/endpoint/topic_storage.hpp"

namespace lightq::broker {

/// The reactor's thread. A message's way: inlet → publish → log → pump → outlet.
class HostedTopic final : public EventLoop::Source, private InletHost, private EndpointSet::Listener {
 public:
  /// Whoever calls `tick` about every 100 ms for topics that asked for it.
  class Ticker {
   public:
    virtual ~Ticker() = default;
    virtual void tick_wanted(HostedTopic& topic) = 0;
  };

  HostedTopic(ReactorContext& context, Ticker& ticker, TopicDefinition definition, TopicStorage storage);
  ~HostedTopic() override;

  [[nodiscard]] const TopicDefinition& definition() const { return topic_.definition(); }
  EndpointSet& endpoints() { return endpoints_; }
  /// Opens a remembered endpoint again; a subscriber's goes on at its stored position.
  Result<void> reopen(const EndpointRecord& record);
  [[nodiscard]] protocol::TopicStats stats();

  // What the control socket asks (hosted_topic_commands.cpp).

  using Answered = std::function<void(const Result<std::uint64_t>&)>;
  /// Forgets the group. `answered`, perhaps at once: it stays forgotten over a kill of the broker; or
  /// group_not_found, group_in_use; or io_error, no_space: it is so until the broker ends.
  void delete_group(const std::string& group, const Answered& answered);
  /// Nothing is handed out to anybody until it is called off.
  void set_paused(bool paused);
  /// The same of one group. `answered`, as above.
  void set_group_paused(const std::string& group, bool paused, const Answered& answered);
  /// The group goes on behind all that is stored. `answered`, as above: how many messages it passes over.
  void purge_group(const std::string& group, const Answered& answered);
  /// Every group and subscriber does, and what is stored is dropped. `answered`, as above: how many messages.
  void purge(const Answered& answered);

  /// Housekeeping. False: nothing more to do until something happens; tick_wanted will ask again.
  bool tick();
  void on_ready() override { pump(); }

  // Sessions.

  /// Opens the producer `wanted`, new or known, for a client of `opener`'s user. Without a refusal,
  /// `producer` is told what becomes of its batches until it detaches or is ended.
  ProducerTable::Opened open_producer(session::ProducerIdentity wanted, SessionProducer& producer,
                                      ProducerTable::Opener opener);
  void detach_producer(SessionProducer& producer) {
    producers_.detach(producer);
    want_ticks();  // when it was in use last is saved
  }
  [[nodiscard]] const TopicProducers& producers() const { return producers_; }

  /// `consumer`, of `user`, begins as asked. Without a refusal (Code::ok) it is told of what happens, in
  /// later turns of the loop, until it detaches or is ended.
  TopicConsumers::Refusal open_consumer(const session::ConsumeOpen& asked, SessionConsumer& consumer,
                                        std::uint64_t user = 0);
  /// What it was delivered and has not acknowledged goes to others.
  void detach_consumer(SessionConsumer& consumer);
  // Of a consumer that is not attached (ended a moment ago) the following are passed over.
  /// False: more than the protocol allows.
  bool add_credit(SessionConsumer& consumer, const session::Credit& credit);
  void acknowledge(SessionConsumer& consumer, const session::Acknowledge& acknowledged);
  void reject(SessionConsumer& consumer, const session::Reject& rejected);
  void extend(SessionConsumer& consumer, const session::Extend& extended);
  /// How long a consumer may keep a message from its group.
  [[nodiscard]] std::uint64_t redelivery_ms_max() const { return context_.settings.groups.redelivery_ms_max; }
  /// The consumer has messages whose time to be acknowledged is not over.
  [[nodiscard]] bool has_in_flight(SessionConsumer& consumer) const {
    return consumers_.has_in_flight(consumer);
  }
  /// Members of the consumer's group belong to other users.
  [[nodiscard]] bool shares_group_with_others(SessionConsumer& consumer) const {
    return consumers_.shares_group_with_others(consumer);
  }
  /// The consumer's group goes on there. The offset that comes next. Errors: io_error, see GroupSet::seek.
  Result<Offset> seek(SessionConsumer& consumer, session::Place to);
  /// A consumer that was not writable is: hand out soon.
  void consumer_writable(SessionConsumer& consumer);
  /// For `read`: records from `walk`'s place on, at most so many payload bytes (one record in any case),
  /// before `end`. Nothing: the end of the range or of the log, or it is walk.unavailable(). What had to be
  /// passed over is in walk.loss().
  std::optional<BatchSlice> read_slice(RecordWalk& walk, Offset end, std::uint64_t message_bytes_max,
                                       CodecSet codecs);

  /// A batch is going to be stored and handed out: a step of fetch_ahead, whose first finds this object
  /// fetched.
  void fetch_ahead_for_input(unsigned step) const;
  /// Where a batch may be put together that is stored next, if it is sound: see Log::place_for_next.
  std::span<std::byte> place_for_next(std::size_t bytes) { return topic_.place_for_next(bytes); }
  /// Stores a batch that is the producer's next one.
  PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences);
  /// False: take nothing from producers now.
  [[nodiscard]] bool accepting() const override { return !stopping_ && topic_.accepting(); }
  /// What has been published is to be handed out.
  void published() override;
  /// Somebody waits until what is in the log now is durable.
  void want_flush();
  /// `producer` found no room, and waits for `resume`.
  void producer_held(SessionProducer& producer) {
    producers_.note_held(producer);
    inlet_held();
  }
  /// `producer` waits until more is durable than now.
  void await_durable(SessionProducer& producer) { producers_.await_durable(producer); }
  [[nodiscard]] bool held_by_disk() const { return topic_.held_by_disk(); }
  /// What is in the log survives the broker.
  [[nodiscard]] bool is_durable() const { return storage_.segments != nullptr; }
  [[nodiscard]] Offset next_offset() const { return topic_.log().next_offset(); }
  [[nodiscard]] Offset durable_offset() const { return topic_.log().durable_offset(); }
  /// Of the log: offsets of another one mean nothing.
  [[nodiscard]] std::uint64_t incarnation() const { return storage_.lives.incarnation(); }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return context_.settings.message_bytes_max;
  }
  /// So many messages were refused, for they are longer.
  void count_too_long(std::uint64_t messages) {
    count(context_.settings.limits_reached, Limit::message_bytes_max, messages);
  }
  /// The longest batch that can ever be stored.
  [[nodiscard]] std::uint64_t batch_bytes_max() const;

  // A clean stop, in this order.

  /// Takes nothing more from anybody and hands out nothing more; what was handed out still leaves. Sessions
  /// are told `why`.
  void begin_stop(session::Code why);
  [[nodiscard]] bool all_sent() { return endpoints_.all_sent(); }
  /// Flushes the log and the cursors, on this thread.
  void flush_for_stop();

  /// No disk job is out: the topic may be destroyed.
  [[nodiscard]] bool idle_on_disk() const { return jobs_out_ == 0; }
  /// Called when idle_on_disk becomes true; for a topic that is only waiting to be destroyed.
  void when_idle_on_disk(std::function<void()> call) { when_idle_ = std::move(call); }
  /// Gives what it has on disk to `heir` at the end of its destructor, to be deleted.
  void bequeath(StorageHolder::Heir heir) { held_storage_.heir = std::move(heir); }

 private:
  /// What is to be dropped, once the producers' file has come behind it.
  struct PendingPurge {
    Offset before;
    std::uint64_t messages = 0;
    std::uint64_t change = 0;  // of the producers
    Answered answered;
    SteadyTime give_up{};  // on a full disk: until then it is tried again to save that it was purged
  };

  // InletHost
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
  void consumers_writable() override { pump(); }

  PublishOutcome report(PublishOutcome outcome, std::uint64_t bytes);
  void restore_groups();
  void session_consumers_changed();
  void want_pump();
  void pump();
  void arm_group_timer();
  void resume_held();
  void maintain(Timestamp now);
  void look_after_writing_behind(Offset written_before, Timestamp now);
  void want_ticks();
  [[nodiscard]] bool unsaved() const;
  void arm_retention();
  void start_disk_job(Timestamp now);
  void durable_moved();
  void save_cursors(Timestamp now);
  void save_producers(Timestamp now);
  void admit_producers();
  void end_waiting_producers(const Error& error);
  [[nodiscard]] Result<Group*> group_of(const std::string& name);
  [[nodiscard]] std::uint64_t owner_for(std::uint64_t user) const;
  [[nodiscard]] bool is_gone(std::uint64_t owner) const;
  void answer_when_saved(std::uint64_t answer, const Answered& answered);
  void settle_purges();
  void hurry_producers();
  void drop_purged(Offset before);
  void end_purges(const Error& why);
  void purge_again(PendingPurge purge, const Error& why);
  void try_purges_again();
  void end_commands(session::Code why);
  void cursors_saved(const Result<void>& result);
  void make_way(const Result<void>& saved);
  void producers_saved(const Result<void>& result);
  void submit(std::unique_ptr<log::DiskJob> job);
  void job_done(log::DiskJob& job);
  void report_losses(Timestamp now);
  void report_unavailable();
  [[nodiscard]] std::vector<log::NamedCursor> cursors(std::size_t ranges_max) const;
  [[nodiscard]] bool cursors_awaited() const {
    return consumers_.waits_for_save() || cursor_waiters_.want_save();
  }

  ReactorContext& context_;
  Ticker& ticker_;
  StorageHolder held_storage_;
  TopicStorage& storage_ = *held_storage_.storage;
  Topic topic_;
  EndpointSet endpoints_;
  TopicProducers producers_;
  TopicConsumers consumers_;
  const std::size_t batch_bytes_target_;
  bool stopping_ = false;
  bool held_ = false;
  bool resume_soon_ = false;  // at the next pump, those that are held may find room
  bool warned_of_disk_ = false;
  bool warned_of_unavailable_ = false;
  bool writing_behind_fails_ = false;
  Timestamp behind_since_;  // of a queue_file topic: without progress; 0: nothing waits to be written
  Timestamp write_again_;   // while writing_behind_fails_: not before
  bool ticking_ = false;
  bool log_job_out_ = false;
  bool cursor_job_out_ = false;
  bool producers_failed_ = false;
  bool producers_lack_space_ = false;  // to be saved, the last time
  std::uint64_t hurried_change_ = 0;   // of the producers, which dropped segments wait for
  bool told_of_dropped_ = false;       // before the producers were saved
  bool told_of_failed_sync_ = false;
  bool flush_wanted_ = false;
  Offset durable_known_;  // to those who wait for it
  bool cursors_failed_ = false;
  std::uint64_t ticks_ = 0;  // while held
  EventLoop::TimerId retention_timer_ = 0;
  EventLoop::TimerId group_timer_ = 0;
  SteadyTime group_timer_at_ = never;
  int jobs_out_ = 0;
  std::function<void()> when_idle_;
  Timestamp last_active_;
  Timestamp cursors_saved_;
  std::int64_t saved_ranges_ = 0;                // of saved_cursors_
  std::vector<log::NamedCursor> saved_cursors_;  // by name: as they were written, or found, last
  bool cursors_kept_ = false;                    // these are on disk for good
  SaveWaiters cursor_waiters_;
  std::optional<Offset> purged_;  // what is before it has been; the cursors' file says so
  std::vector<PendingPurge> purges_;
  std::vector<PendingPurge> purges_again_;  // with the next tick: the disk was full
  Timestamp losses_reported_;
  std::uint64_t damaged_reported_ = 0;
  std::uint64_t refused_reported_ = 0;
};

}  // namespace lightq::broker
