/// What `lightq consume` prints, and what it says of that at its end. Layer: cli.
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

/// Prints messages to standard output, and counts them. One thread.
class ConsumePrinter {
 public:
  ConsumePrinter(const Common& common, const Consume& consume);

  /// Takes a message for standard output; it may stay here until `flush`.
  void print(std::string_view payload) { print(LoggedMessage{{}, {}, payload}); }
  void print(const LoggedMessage& message);
  /// False once standard output is closed or has failed.
  bool flush();
  /// Looks whether anybody reads what is printed. Nobody: it is done.
  void look_for_reader() { open_ = out_.has_reader() && open_; }
  /// Whether standard output has all that was printed.
  [[nodiscard]] bool is_flushed() const { return open_ && out_.is_empty(); }
  /// While standard output takes nothing, `serve` is called several times a second.
  void serve_meanwhile(std::function<void()> serve) { out_.serve_meanwhile(std::move(serve)); }

  /// Whether no more is wanted, or can be printed.
  [[nodiscard]] bool is_done() const { return !open_ || (wanted_ > 0 && printed_ >= wanted_); }
  [[nodiscard]] std::uint64_t printed() const { return printed_; }
  /// How many of these, the last ones, did not leave, or not as a whole, and will not.
  [[nodiscard]] std::uint64_t unprinted() const { return out_.unwritten(); }
  /// Shows the numbers so far, where there is a terminal for that.
  void show_progress();
  /// Says once, if it is so, that nothing comes since the topic or the group is paused: it would look as if
  /// nothing went on.
  void tell_of_pause(const TopicStats& stats);
  /// The last words.
  void summarize();
  /// The exit code of a run that had no error of its own; says why it is none of success.
  [[nodiscard]] int verdict() const;

 private:
  const Common& common_;
  const Consume& consume_;
  Output out_;
  Progress progress_;
  std::string line_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::uint64_t wanted_;                    // 0: no end
  const std::optional<MessageTemplate> pattern_;  // nothing: a format's word
  std::uint64_t printed_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> waiting_;  // the bytes of each that standard output does not have yet
  bool open_ = true;
  bool told_of_pause_ = false;
};

}  // namespace lightq::cli
