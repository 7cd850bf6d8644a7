/// A topic with a recurring schedule, a clock that a test steps, and a disk and a process that fail when a
/// test asks for it.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "endpoint/topic_runtime_harness.hpp"
#include "topic/recurring/recurring_office.hpp"

namespace lightq::broker {

/// Runs one schedule of the topic "orders".
class ScheduleWorld : public TopicRuntimeTest {
 protected:
  /// A message that the schedule has published.
  struct Published {
    std::string id;
    std::string key;
    std::string payload;
    Timestamp time;
    std::vector<std::string> headers;  ///< NAME=VALUE, without the id
  };

  explicit ScheduleWorld(protocol::BrokerType type = protocol::BrokerType::file,
                         protocol::Overflow overflow = protocol::Overflow::block)
      : TopicRuntimeTest({.broker_type = type,
                          .ring_bytes = limits::ring_bytes_min,
                          .overflow = overflow,
                          .segment_bytes = limits::segment_bytes_min},
                         flush_ms) {
    schedule.settings = {.cron = "* * * * *", .zone = "UTC", .payload = "go"};
    schedule.incarnation = 77;
    schedule.since = wall_time();
  }
  ~ScheduleWorld() override { end(); }

  /// Begins the schedule as the start of a broker does, or as a command does.
  void begin(bool at_start = false) {
    office = std::make_unique<RecurringOffice>(context());
    if (!at_start) return office->put(*topic, "tick", schedule);
    at_start_ = std::make_unique<ScheduleFirings>(context(), *topic, "tick", schedule);
    at_start_->begin(ScheduleFirings::Begins::at_start);
  }
  void end() {
    office.reset();
    at_start_.reset();
  }
  [[nodiscard]] ScheduleState state() const {
    return at_start_ != nullptr ? at_start_->state() : office->states({1}).at(0);
  }
  /// Sets the clock, as the system reports that it was set.
  void set_clock(std::chrono::microseconds by) {
    step_clock(by);
    context().wall_timers.clock_was_set();
  }
  /// Runs turns in which everything that can happen without a rest happens.
  void run_a_while(int turns = 40) {
    for (int i = 0; i < turns; ++i) turn(std::chrono::microseconds(100));
  }
  /// Returns the start of the present minute.
  [[nodiscard]] Timestamp minute() const { return {wall_time().us / minute_us * minute_us}; }

  std::vector<Published> published() {
    std::vector<Published> messages;
    auto& store = const_cast<TopicStore&>(std::as_const(*topic).store());
    log::ReadPosition place{store.first_offset()};
    while (place.offset < store.next_offset()) {
      const auto read = store.read(place);
      const bool is_gone =
          read.outcome == log::ReadOutcome::damaged || read.outcome == log::ReadOutcome::trimmed;
      if (is_gone && place.offset < read.next) {  // a power cut keeps parts of a message that was not synced
        place = log::ReadPosition{read.next};
        continue;
      }
      if (read.outcome != log::ReadOutcome::batch) {
        ADD_FAILURE() << "the topic cannot be read";
        break;
      }
      for (auto record = read.batch.records(); !record.done(); record.next()) {
        Published& message = messages.emplace_back();
        message.key = record.attributes().key();
        message.time = record.attributes().time();
        message.payload = as_text(record.payload());
        for (const Header header : record.attributes().headers()) {
          if (header.name == "lightq-id") message.id = header.value;
          if (header.name != "lightq-id")
            message.headers.push_back(std::string(header.name) + "=" + std::string(header.value));
        }
      }
      place.offset = read.batch.end_offset();
    }
    return messages;
  }

  /// Ends the process before event number `event` of the disk from now on. 0: never.
  void arm(std::uint64_t event) {
    events_ = 0;
    end_at_ = event;
    fail(EIO, [this](FaultyStorage::Call call, const std::string&) {
      const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
      if (changes && !is_dead && ++events_ == end_at_) is_dead = true;
      return is_dead.load();
    });
  }
  /// Ends the process now, and starts it again after the clock has moved. With `cut` the power fails too, and
  /// `keeps` says which of the bytes that were not synced stay. The next process ends before its event number
  /// `next_end`, perhaps while it starts; then another one starts.
  void crash(bool cut, const std::function<bool()>& keeps, std::chrono::microseconds down,
             std::uint64_t next_end) {
    for (;; next_end = 0) {
      is_dead = true;
      end();
      drop();
      if (cut) storage.power_cut(keeps);
      step_clock(down);
      is_dead = false;
      arm(next_end);
      if (try_start()) break;
      ASSERT_TRUE(is_dead) << "the topic does not open";
    }
    begin(true);
  }

  static constexpr std::int64_t flush_ms = 300;
  static constexpr std::int64_t minute_us = 60'000'000;

  RecurringSchedule schedule;
  std::unique_ptr<RecurringOffice> office;
  std::atomic<bool> is_dead = false;

 private:
  std::unique_ptr<ScheduleFirings> at_start_;
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<std::uint64_t> end_at_ = 0;
};

}  // namespace lightq::broker
