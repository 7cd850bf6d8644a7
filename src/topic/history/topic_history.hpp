/// The course of one topic's counters over the last hour. Layer: topic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "delivery/state/topic_flow.hpp"

namespace lightq::broker {

/// One step of a course. Rates are in messages a second.
struct FlowSample {
  float in = 0;
  float out = 0;
  std::uint32_t pending = 0;  ///< at the end of a second; the most within a minute
  std::uint32_t lag = 0;      ///< the same

  friend bool operator==(const FlowSample&, const FlowSample&) = default;
};

/// The samples of one step length, oldest first.
struct TopicCourse {
  std::vector<FlowSample> seconds;  ///< of one second each
  std::vector<FlowSample> minutes;  ///< of one minute each; the last one is not over yet
};

/// Keeps samples of seconds and of minutes in two rings of fixed size: about 6 KB. Thread: one.
class TopicHistory {
 public:
  static constexpr std::size_t seconds_kept = 300;
  static constexpr std::size_t minutes_kept = 60;

  /// `before`: the counters at the begin of `second`, a number that grows by one each second.
  TopicHistory(std::uint64_t second, const TopicFlow& before) : second_(second), last_(before) {}

  /// Adds the counters at the end of `second`. If seconds before it are missing, they have the same rates.
  /// Returns true if the counters have changed since the last call.
  bool add(std::uint64_t second, const TopicFlow& now);
  /// Adds the seconds until `second`, in which nothing has changed.
  void pass(std::uint64_t second) { static_cast<void>(add(second, last_)); }
  [[nodiscard]] TopicCourse course() const;

 private:
  template <std::size_t Size>
  struct Ring {
    std::array<FlowSample, Size> samples;
    std::size_t added = 0;

    void add(const FlowSample& sample) { samples[added++ % Size] = sample; }
    void append_to(std::vector<FlowSample>& all) const {
      for (std::size_t i = added < Size ? 0 : added - Size; i < added; ++i) all.push_back(samples[i % Size]);
    }
  };
  /// The minute that is not over yet.
  struct Minute {
    double in = 0;
    double out = 0;
    std::uint32_t pending = 0;
    std::uint32_t lag = 0;
    std::uint32_t seconds = 0;

    void add(const FlowSample& sample);
    [[nodiscard]] FlowSample sample() const;
  };

  void add_second(std::uint64_t second, const FlowSample& sample);

  std::uint64_t second_;  // the next one
  TopicFlow last_;
  Ring<seconds_kept> seconds_;
  Ring<minutes_kept - 1> minutes_;
  Minute minute_;
};

}  // namespace lightq::broker
