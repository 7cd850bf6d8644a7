/// Prints progress, explanations and the summary of `lightq produce`. Layer: cli.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <lightq/client.hpp>

#include "client/invocation.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

/// Counts the messages of a run. For one thread.
class ProduceReport {
 public:
  using Clock = std::chrono::steady_clock;

  ProduceReport(const Common& common, const Produce& produce)
      : common_(common), produce_(produce), progress_(common.quiet) {}

  /// Counts one sent message.
  void sent(std::size_t bytes);
  /// Counts a message that was not sent because it is too large. `why` names the limit.
  void turned_down_unsent(const std::string& why);
  /// Counts messages that the broker refused after they were sent.
  void refused(std::uint64_t messages, const Error& why);
  /// Returns the number of messages sent.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Returns when the next message is due at the requested rate; a time in the past without a rate.
  [[nodiscard]] Clock::time_point due() const;

  /// Prints the reason of a stall, once until `moved` is called.
  void explain(const std::string& why);
  void moved() { explained_ = false; }
  /// Returns the broker's reason why a topic accepts no messages.
  [[nodiscard]] std::string why_stalled(Client& client) const;
  /// Returns the error of a command that gives up.
  [[nodiscard]] static Error gave_up(Clock::duration waited, const std::string& why);
  /// Returns the error for messages that the broker did not keep, if a plain connection does not show why.
  [[nodiscard]] Error not_kept(std::uint64_t messages) const;
  /// Returns an error if messages were not sent or were refused, otherwise nothing.
  [[nodiscard]] std::optional<Error> turned_down() const;

  /// Prints the final summary. `received` is how many messages the broker has, if known. `where` describes
  /// them, for example " received by the broker".
  void summarize(std::optional<std::uint64_t> received, const std::string& where);

 private:
  void show_progress();

  const Common& common_;
  const Produce& produce_;
  Progress progress_;
  const Clock::time_point started_ = Clock::now();
  std::uint64_t messages_ = 0;  // sent
  std::uint64_t unsent_ = 0;
  std::uint64_t refused_ = 0;
  std::string why_unsent_;  // for the first message not sent
  Error why_refused_;       // for the first message refused
  std::uint64_t bytes_ = 0;
  bool explained_ = false;
};

}  // namespace lightq::cli
