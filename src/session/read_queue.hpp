/// Reads without a group over one session, until they are fully answered. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/session_consuming.hpp>

#include "delivery/record_reader.hpp"
#include "session/session_port.hpp"

namespace lightq::broker {

/// Limits from the broker's settings: how many reads of a session may wait, and how many bytes one read
/// returns.
struct ReadLimits {
  std::size_t waiting_max = limits::session_reads_max;
  std::uint64_t bytes_max = limits::read_bytes_max;
};

/// Answers reads one after the other, in the order of the requests, as fast as the client accepts messages.
/// docs/session.md, "read".
/// ConsumeSide owns it. Thread: the reactor's.
class ReadQueue final : private ReadWaiter {
 public:
  /// Lifetime: `port` outlives it.
  explicit ReadQueue(SessionPort& port, const ReadLimits& read_limits = {})
      : port_(port), limits_(read_limits) {}
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;
  ~ReadQueue() override { stop_waiting(); }

  [[nodiscard]] bool is_full() const { return jobs_.size() >= limits_.waiting_max; }
  [[nodiscard]] bool is_empty() const { return jobs_.empty(); }
  /// Returns true if space lets the queue send more. Otherwise it has nothing to send, or waits for messages
  /// that the store does not have yet.
  [[nodiscard]] bool wants_room() const { return !jobs_.empty() && !waits_for_; }
  /// Adds a read, which begins at the next `go_on`. Requires: the queue is not full.
  void add(const TopicRuntime& topic, const session::Read& asked, std::uint32_t request);
  /// Sends as much as there is space for, in bounded amounts. Call it again when there is space.
  void go_on();
  /// Answers and removes reads of topics that the session may no longer consume.
  void end_unpermitted();
  void drop_all() {
    stop_waiting();
    jobs_.clear();
  }

 private:
  struct Job {
    TopicId topic;
    std::uint32_t request = 0;
    RecordReader reader;
    Offset end;
    std::uint64_t bytes_left = 0;
    std::uint64_t lost_told = 0;
    bool begun = false;  // a message has been sent
  };
  class ReadTurn;
  void readable() override;
  void stop_waiting();
  bool step(Job& job, std::uint64_t& bytes);
  bool answer(const Job& job, Offset next);
  bool fail(const Job& job, session::Code code, const char* why);

  SessionPort& port_;
  const ReadLimits limits_;
  std::deque<Job> jobs_;
  std::optional<TopicId> waits_for_;  // the topic whose messages for the first read are pending
};

}  // namespace lightq::broker
