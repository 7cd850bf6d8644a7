/// A thread with an event loop that owns topics and their connections. No message takes a lock on its way
/// from a producer to a consumer. Layer: topic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "topic/dead/letter_office.hpp"
#include "topic/history/history_book.hpp"
#include "topic/reactor/stats_of_topics.hpp"
#include "topic/reactor/stats_walk.hpp"
#include "topic/reactor/topic_opener.hpp"
#include "topic/recurring/recurring_office.hpp"
#include "topic/runtime/topic_runtime.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// The settings that all reactors share.
struct ReactorSettings {
  EndpointSettings endpoints;
  StorageSettings storage;
  std::size_t history_topics_max = limits::history_topics_max;  ///< 0: no histories
};

/// Runs an event loop on a thread of its own, and owns the topics that are assigned to it. Thread: the
/// composition root constructs and destroys the reactor. The functions under "On the reactor's thread" are
/// called by tasks that were posted to `loop()`.
class Reactor final : public TopicRuntime::Ticker {
 public:
  /// `make_endpoints` makes the plain endpoints of each topic.
  Reactor(const ReactorSettings& settings, MakeEndpoints make_endpoints, TopicOpener& opener,
          DiskThread& disk, PortBook& ports, LogSink& sink, const TicketKey& tickets, const WallClock& now,
          std::atomic<std::uint64_t>& next_endpoint_id, EndpointEvents events);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor() override;

  /// Returns the event loop, to post tasks to. Thread: any.
  EventLoop& loop() { return loop_; }
  /// Starts the thread.
  void start();
  /// Ends the thread. Topics stay until the destructor. Thread: any but the reactor's.
  void join();

  // On the reactor's thread.

  /// Opens the topic's storage and its endpoints of an earlier run. An endpoint that cannot be opened is
  /// logged and tried again. Errors: those of TopicOpener::open.
  Result<void> add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints);
  /// Closes the topic's endpoints immediately. Deletes its files once none of its disk jobs is running, then
  /// calls `done`. The files of a topic that add_topic could not open are removed by the disk thread.
  void remove_topic(TopicId id, std::function<void(Result<void>)> done);
  /// Returns the topic, or null if this reactor does not have it.
  TopicRuntime* find(TopicId id);
  ReactorContext& context() { return context_; }
  /// Ends the plain connections of users that lost the right to be connected.
  void end_unpermitted();
  /// Returns the office that moves dead messages from and to this reactor's topics.
  [[nodiscard]] LetterOffice& letters() { return letters_; }
  /// Returns the office of the recurring schedules of this reactor's topics.
  [[nodiscard]] RecurringOffice& recurring() { return recurring_; }
  /// Returns the histories of this reactor's topics.
  [[nodiscard]] HistoryBook& history() { return history_; }
  /// Passes the sums over this reactor's topics and connections to `done`, in a later turn of the loop.
  /// Fields that are no sums stay empty. Errors: shutting_down, as for stats_of.
  void totals(std::function<void(Result<protocol::BrokerStats>)> done);
  /// Passes the statistics of these topics to `done`, in a later turn of the loop. Errors: shutting_down if
  /// the reactor stops before it has read all of them, or has stopped; `done` is then called within
  /// begin_stop or this call.
  void stats_of(TopicsAsked asked, std::function<void(Result<TopicsStats>)> done);
  /// Stops cleanly: answers requests for statistics, sends the output of connections (at most until
  /// `deadline`), flushes logs and cursors, closes endpoints, then calls `done`.
  void begin_stop(EventLoop::Clock::time_point deadline, std::function<void()> done);

 private:
  void remove_files_of(TopicId id, std::function<void(Result<void>)> done);
  void submit_removal(std::unique_ptr<RemovalJob> job, std::function<void(Result<void>)> done);
  void tick_wanted(TopicRuntime& topic) override;
  void letters_wait(TopicRuntime& topic) override { letters_.wake(topic.definition().id); }
  void tick_all();
  void arm_tick();
  void try_stop(EventLoop::Clock::time_point deadline, const std::function<void()>& done);
  void finish_stop(const std::function<void()>& done);
  void bury_when_idle(std::unique_ptr<TopicRuntime> topic, std::function<void()> last);

  EventLoop loop_;
  ReactorContext context_;
  const ReactorSettings& settings_;
  const MakeEndpoints make_endpoints_;
  TopicOpener& opener_;
  LetterOffice letters_;                                                     // outlives the topics
  std::unordered_map<std::uint64_t, std::unique_ptr<TopicRuntime>> topics_;  // by id
  RecurringOffice recurring_{context_};                                      // destroyed before the topics
  std::unordered_map<TopicRuntime*, std::unique_ptr<TopicRuntime>> dying_;   // removed; a disk job still runs
  std::vector<TopicRuntime*> ticking_;
  StatsWalk stats_walk_;
  HistoryBook history_;
  bool tick_armed_ = false;
  int removals_out_ = 0;  // jobs that remove files and are running or about to be submitted
  std::jthread thread_;   // last member: the thread stops before the others are destroyed
};

}  // namespace lightq::broker
