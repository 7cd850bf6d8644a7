/// A topic at work on a reactor: its log's housekeeping, its endpoints, and the flow between them. Layer:
/// endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/delivery/topic.hpp"
#include "broker/endpoint/endpoint_set.hpp"
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
  Result<void> delete_group(const std::string& group);
  [[nodiscard]] protocol::TopicStats stats();

  /// Housekeeping. False: nothing more to do until something happens; tick_wanted will ask again.
  bool tick();
  void on_ready() override { pump(); }

  // A clean stop, in this order.

  /// Takes nothing more from anybody and hands out nothing more; what was handed out still leaves.
  void begin_stop();
  [[nodiscard]] bool all_sent() { return endpoints_.all_sent(); }
  /// Flushes the log and the cursors, on this thread.
  void flush_for_stop();

  /// No disk job is out: the topic may be destroyed.
  [[nodiscard]] bool idle_on_disk() const { return jobs_out_ == 0; }
  /// Called when idle_on_disk becomes true; for a topic that is only waiting to be destroyed.
  void when_idle_on_disk(std::function<void()> call) { when_idle_ = std::move(call); }
  /// Deletes its files. Requires idle_on_disk.
  Result<void> delete_files() { return storage_.delete_files(); }

 private:
  // InletHost
  [[nodiscard]] bool accepting() const override { return !stopping_ && topic_.accepting(); }
  PublishOutcome publish(BatchBuilder& batch) override;
  void published() override { pump(); }
  void count_refused(std::uint64_t messages) override { topic_.count_refused(messages); }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return context_.settings.message_bytes_max;
  }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return batch_bytes_target_; }
  BatchBuilder& batch() override { return context_.batch; }
  void inlet_held() override;
  // EndpointSet::Listener
  void consumers_changed() override;
  void consumers_writable() override { pump(); }

  void pump();
  void resume_held();
  void maintain(Timestamp now);
  void look_after_writing_behind(Offset written_before, Timestamp now);
  void want_ticks();
  [[nodiscard]] bool unsaved() const;
  void arm_retention();
  void start_disk_job(Timestamp now);
  void save_cursors(Timestamp now);
  void submit(std::unique_ptr<log::DiskJob> job);
  void job_done(log::DiskJob& job);
  void report_losses(Timestamp now);
  [[nodiscard]] std::vector<log::NamedCursor> cursors() const;

  ReactorContext& context_;
  Ticker& ticker_;
  TopicStorage storage_;
  Topic topic_;
  EndpointSet endpoints_;
  const std::size_t batch_bytes_target_;
  bool stopping_ = false;
  bool held_ = false;
  bool warned_of_disk_ = false;
  bool writing_behind_fails_ = false;
  Timestamp behind_since_;  // of a queue_file topic: without progress; 0: nothing waits to be written
  Timestamp write_again_;   // while writing_behind_fails_: not before
  bool ticking_ = false;
  bool log_job_out_ = false;
  bool cursor_job_out_ = false;
  bool cursors_failed_ = false;
  std::uint64_t ticks_ = 0;  // while held
  EventLoop::TimerId retention_timer_ = 0;
  int jobs_out_ = 0;
  std::function<void()> when_idle_;
  Timestamp last_active_;
  Timestamp cursors_saved_;
  std::vector<log::NamedCursor> saved_cursors_;
  Timestamp losses_reported_;
  std::uint64_t damaged_reported_ = 0;
  std::uint64_t refused_reported_ = 0;
};

}  // namespace lightq::broker
