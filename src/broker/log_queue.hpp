/// Lines of the broker's log on their way to one place that may be slow or stand still: a pipe that nobody
/// reads, a terminal that was stopped, a disk. Layer: logging.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// Takes lines from any thread, without ever waiting for their place, and has a thread of its own write them
/// there, in their order. Lines that find no room are lost and counted, and a line says how many before the
/// next that is written.
class LogQueue {
 public:
  using Clock = std::chrono::steady_clock;

  struct Line {
    LogLevel level = LogLevel::info;
    std::chrono::system_clock::time_point time;
    std::string text;  ///< what follows `msg=`
  };

  /// Writes one line, and may wait for that until the flag is set. False: it could not. Called by the queue's
  /// thread alone, possibly after the queue has gone, where the place stood still for longer than finish()
  /// waited.
  using Write = std::function<bool(const Line& line, const std::atomic<bool>& give_up)>;

  /// At most `bytes_max` wait, with what holds them. Throws std::system_error without a thread.
  LogQueue(std::size_t bytes_max, Write write);
  /// As close() and finish() at once: what waits and cannot be written at once is lost.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  /// Any thread. After close() the line is lost.
  void put(Line line);
  /// Takes no more; what waits is still written.
  void close();
  /// After close(): waits until all is written, at most until `deadline` and a moment more, then gives up
  /// what is left.
  void finish(Clock::time_point deadline);
  /// Lines that were not written, because there was no room or because writing failed. Any thread.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;  // its thread's too, which may outlive the queue
};

}  // namespace lightq::broker
