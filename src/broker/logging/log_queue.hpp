/// A queue of the broker's log lines for one destination that may be slow or blocked: a pipe without a
/// reader, a stopped terminal, a disk. Layer: logging.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log_sink.hpp"

namespace lightq::broker {

/// Accepts lines from any thread without ever waiting for the destination. A thread of the queue writes them
/// there in order. Lines for which there is no space are lost and counted. Before the next line, the queue
/// writes a line with their number.
class LogQueue {
 public:
  using Clock = std::chrono::steady_clock;

  struct Line {
    LogLevel level = LogLevel::info;
    std::chrono::system_clock::time_point time;
    std::string text;  ///< the text after `msg=`
  };

  /// Writes one line. May wait until `give_up` is set. Returns false if the line could not be written.
  /// Thread: called only by the queue's thread. If the destination blocks for longer than finish() waits, a
  /// call may continue after the queue was destroyed.
  using Write = std::function<bool(const Line& line, const std::atomic<bool>& give_up)>;

  /// At most `bytes_max` bytes may wait, including their containers. Throws std::system_error if there is no
  /// thread.
  LogQueue(std::size_t bytes_max, Write write);
  /// As close() and finish() without waiting: lines that cannot be written immediately are lost.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  /// Adds a line. After close() the line is lost. Thread: any.
  void put(Line line);
  /// Accepts no more lines. Waiting lines are still written.
  void close();
  /// Requires: close() was called. Waits until all lines are written, at most until `deadline` and a moment
  /// more, then drops the rest.
  void finish(Clock::time_point deadline);
  /// Returns the number of lines that were not written, for lack of space or because writing failed. Thread:
  /// any.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive the queue
};

}  // namespace lightq::broker
