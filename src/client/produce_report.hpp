/// What `lightq produce` says of itself, while it runs and at its end. Layer: cli.
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

/// Counts what was sent. One thread.
class ProduceReport {
 public:
  using Clock = std::chrono::steady_clock;

  ProduceReport(const Common& common, const Produce& produce)
      : common_(common), produce_(produce), progress_(common.quiet) {}

  /// One message more was sent.
  void sent(std::size_t bytes);
  /// Counts one message more that was not sent, since it is too large. `why` names the limit.
  void turned_down_unsent(const std::string& why);
  /// Counts messages that the broker refused after they were sent.
  void refused(std::uint64_t messages, const Error& why);
  /// Messages sent.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// When the next message is due at the rate that was asked for; the past where none was.
  [[nodiscard]] Clock::time_point due() const;

  /// Says once, until something moves again, what a stall is about.
  void explain(const std::string& why);
  void moved() { explained_ = false; }
  /// What the broker says of a topic that takes nothing.
  [[nodiscard]] std::string why_stalled(Client& client) const;
  /// The error of a command that gives up.
  [[nodiscard]] static Error gave_up(Clock::duration waited, const std::string& why);
  /// The error of a command whose plain connection does not tell why the broker kept no more.
  [[nodiscard]] Error not_kept(std::uint64_t messages) const;
  /// The error of a command some of whose messages were not sent, or refused; nothing where there are none.
  [[nodiscard]] std::optional<Error> turned_down() const;

  /// The last words. `received`: what the broker has of it, if that is known; `where` it has that, as
  /// " received by the broker".
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
  std::string why_unsent_;  // of the first of them
  Error why_refused_;       // likewise
  std::uint64_t bytes_ = 0;
  bool explained_ = false;
};

}  // namespace lightq::cli
