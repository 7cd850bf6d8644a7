/// Prints messages, progress and the summary of `lightq consume`. Layer: cli.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/options.hpp>

#include "client/invocation.hpp"
#include "client/message_template.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

/// Prints messages to standard output, and counts them. For one thread.
class ConsumePrinter {
 public:
  ConsumePrinter(const Common& common, const Consume& consume);

  /// Adds a message to standard output. It may stay in the buffer until `flush`.
  void print(std::string_view payload) { print(LoggedMessage{{}, {}, payload}); }
  void print(const LoggedMessage& message);
  /// Writes the buffer. Returns false once standard output is closed or has failed.
  bool flush();
  /// Checks whether standard output still has a reader. Without one, the command is done.
  void look_for_reader() { open_ = out_.has_reader() && open_; }
  /// Returns true if everything printed was written to standard output.
  [[nodiscard]] bool is_flushed() const { return open_ && out_.is_empty(); }
  /// Sets a function that is called several times a second while standard output accepts nothing.
  void serve_meanwhile(std::function<void()> serve) { out_.serve_meanwhile(std::move(serve)); }

  /// Returns true if no more messages are wanted or can be printed.
  [[nodiscard]] bool is_done() const { return !open_ || (wanted_ > 0 && printed_ >= wanted_); }
  [[nodiscard]] std::uint64_t printed() const { return printed_; }
  /// Returns how many of the last messages were not written completely, and will not be.
  [[nodiscard]] std::uint64_t unprinted() const { return out_.unwritten(); }
  /// Shows the counts so far, if there is a terminal for them.
  void show_progress();
  /// Reports once that the topic or group is paused, if it is. Otherwise the command would seem to hang.
  void tell_of_pause(const TopicStats& stats);
  /// Prints the final summary.
  void summarize();
  /// Returns the exit code of a run without an error of its own. If it is not success, says why.
  [[nodiscard]] int verdict() const;

 private:
  const Common& common_;
  const Consume& consume_;
  Output out_;
  Progress progress_;
  std::string line_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::uint64_t wanted_;                    // 0: no limit
  const std::optional<MessageTemplate> pattern_;  // nothing: one of the named formats
  std::uint64_t printed_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> waiting_;  // sizes in bytes of the messages not written yet
  bool open_ = true;
  bool told_of_pause_ = false;
};

}  // namespace lightq::cli
