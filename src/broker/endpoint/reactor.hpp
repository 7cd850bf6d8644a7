/// One thread that owns a set of topics outright: no locks between a producer's bytes and a consumer's.
/// Layer: endpoint.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "broker/endpoint/hosted_topic.hpp"

namespace lightq::broker {

/// What all reactors share.
struct ReactorSettings {
  EndpointSettings endpoints;
  StorageSettings storage;
};

/// Made and destroyed on the composition root's thread; everything under "on the reactor's thread" is called
/// through `post`.
class Reactor final : public HostedTopic::Ticker {
 public:
  Reactor(const ReactorSettings& settings, StorageRoom& storage, DiskThread& disk, PortBook& ports,
          LogSink& sink, const TicketKey& tickets, const WallClock& now,
          std::atomic<std::uint64_t>& next_endpoint_id, EndpointEvents events);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor() override;

  /// Any thread.
  EventLoop& loop() { return loop_; }
  /// Begins to run.
  void start();
  /// Ends the thread; topics stay until the destructor. Any thread but the reactor's.
  void join();

  // On the reactor's thread.

  Result<void> add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints);
  /// Closes the topic's endpoints at once; deletes its files, then calls `done`, when no disk job is out any
  /// more. Of a topic that add_topic could not open, the disk thread removes what lies on the disk.
  void remove_topic(TopicId id, std::function<void(Result<void>)> done);
  HostedTopic* find(TopicId id);
  ReactorContext& context() { return context_; }
  /// Ends the plain connections of those who may not be there any more.
  void end_unpermitted();
  /// Adds this reactor's topics to the sums.
  void add_totals(protocol::BrokerStats& totals);
  /// A clean stop: what was handed out leaves (at most until `deadline`), logs and cursors are flushed,
  /// endpoints close; then calls `done`.
  void begin_stop(EventLoop::Clock::time_point deadline, std::function<void()> done);

 private:
  void remove_files_of(TopicId id, std::function<void(Result<void>)> done);
  void submit_removal(std::unique_ptr<RemovalJob> job, std::function<void(Result<void>)> done);
  void tick_wanted(HostedTopic& topic) override;
  void tick_all();
  void arm_tick();
  void try_stop(EventLoop::Clock::time_point deadline, const std::function<void()>& done);
  void finish_stop(const std::function<void()>& done);
  void bury_when_idle(std::unique_ptr<HostedTopic> topic, std::function<void()> last);

  EventLoop loop_;
  ReactorContext context_;
  const ReactorSettings& settings_;
  StorageRoom& storage_;
  std::unordered_map<std::uint64_t, std::unique_ptr<HostedTopic>> topics_;  // by id
  std::unordered_map<HostedTopic*, std::unique_ptr<HostedTopic>> dying_;    // removed, a disk job still out
  std::vector<HostedTopic*> ticking_;
  bool tick_armed_ = false;
  int removals_out_ = 0;  // disk jobs that remove files, or are about to be given to the disk's thread
  std::jthread thread_;   // last: stops before the rest goes
};

}  // namespace lightq::broker
