/// Reads without a group over one session, until they are fully answered. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/session_consuming.hpp>

#include "access/group_scope.hpp"
#include "delivery/record_reader.hpp"
#include "session/frame_output.hpp"
#include "topic/runtime/topic_runtime.hpp"

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
  /// The calls that the reads make on their session. ConsumeSide implements it, and so does a test.
  class Host {
   public:
    virtual ~Host() = default;
    /// Returns the topic if a ticket of the session permits the role on the groups in `scope`, else null.
    [[nodiscard]] virtual TopicRuntime* permitted(const std::string& topic, EndpointRole role,
                                                  const GroupScope& scope) const = 0;
    /// Returns the topic, or null if it no longer exists.
    [[nodiscard]] virtual TopicRuntime* find_topic(TopicId topic) const = 0;
    /// Returns true if expensive work may be done now (TurnQueue). Otherwise `go_on` is called when it may.
    virtual bool has_turn() = 0;
    /// Counts the cost of such work.
    virtual void spend(std::uint64_t bytes) = 0;
    /// Schedules a call of `go_on` soon.
    virtual void work_soon() = 0;
  };

  /// Sends to `output`. Lifetime: `output` and `host` outlive it.
  ReadQueue(FrameOutput& output, Host& host, const ReadLimits& read_limits = {})
      : output_(output), host_(host), limits_(read_limits) {}
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

  FrameOutput& output_;
  Host& host_;
  const ReadLimits limits_;
  std::deque<Job> jobs_;
  std::optional<TopicId> waits_for_;  // the topic whose messages for the first read are pending
};

}  // namespace lightq::broker
