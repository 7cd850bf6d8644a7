/// What `lightq produce` says of itself, while it runs and at its end. Layer: cli.
#pragma once

#include <chrono>
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
  /// One message more was not even sent: it is too large.
  void turned_down_unsent(std::size_t bytes);
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Of them, those of turned_down_unsent.
  [[nodiscard]] std::uint64_t unsent() const { return unsent_; }
  /// When the next message is due at the rate that was asked for; the past where none was.
  [[nodiscard]] Clock::time_point due() const;

  /// Says once, until something moves again, what a stall is about.
  void explain(const std::string& why);
  void moved() { explained_ = false; }
  /// What the broker says of a topic that takes nothing.
  [[nodiscard]] std::string why_stalled(Client& client) const;
  /// The error of a command that gives up.
  [[nodiscard]] static Error gave_up(Clock::duration waited, const std::string& why);
  /// The error of a command some of whose messages were not kept.
  [[nodiscard]] Error not_kept(std::uint64_t messages) const;

  /// The last words. `received`: what the broker has of it, if that is known; `where` it has that, as
  /// " received by the broker".
  void summarize(std::optional<std::uint64_t> received, const std::string& where);

 private:
  void show_progress();

  const Common& common_;
  const Produce& produce_;
  Progress progress_;
  const Clock::time_point started_ = Clock::now();
  std::uint64_t messages_ = 0;
  std::uint64_t unsent_ = 0;
  std::uint64_t bytes_ = 0;
  bool explained_ = false;
};

}  // namespace lightq::cli
