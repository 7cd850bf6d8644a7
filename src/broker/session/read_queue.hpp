/// Reading without a group over one session: what was asked for and is not answered in full. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/session_consuming.hpp>

#include "broker/delivery/record_walk.hpp"
#include "broker/session/session_port.hpp"

namespace lightq::broker {

/// The broker's settings: how many reads of one session may wait, and how much each brings.
struct ReadLimits {
  std::size_t waiting_max = limits::session_reads_max;
  std::uint64_t bytes_max = limits::read_bytes_max;
};

/// docs/session.md, "read". One after the other, in the order they were asked, as the client takes them. The
/// reactor's thread.
class ReadQueue {
 public:
  /// `port` outlives it.
  explicit ReadQueue(SessionPort& port, const ReadLimits& read_limits = {})
      : port_(port), limits_(read_limits) {}

  [[nodiscard]] bool is_full() const { return jobs_.size() >= limits_.waiting_max; }
  [[nodiscard]] bool is_empty() const { return jobs_.empty(); }
  /// May not be full. Begins when go_on is called.
  void add(const HostedTopic& topic, const session::Read& asked, std::uint32_t request);
  /// Sends what there is room for, a bounded amount; call it again when there is room.
  void go_on();
  /// Answers those of topics that the session may not consume any more.
  void end_unpermitted();
  void drop_all() { jobs_.clear(); }

 private:
  struct Job {
    TopicId topic;
    std::uint32_t request = 0;
    RecordWalk walk;
    Offset end;
    std::uint64_t bytes_left = 0;
    std::uint64_t lost_told = 0;
    bool begun = false;  // a message has been sent
  };
  bool step(Job& job, std::uint64_t& bytes);
  bool answer(const Job& job, Offset next);
  bool fail(const Job& job, session::Code code, const char* why);

  SessionPort& port_;
  const ReadLimits limits_;
  std::deque<Job> jobs_;
};

}  // namespace lightq::broker
