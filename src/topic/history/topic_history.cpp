/// The course of one topic's counters over the last hour. Layer: topic.
#include "topic/history/topic_history.hpp"

#include <algorithm>
#include <limits>

namespace lightq::broker {

namespace {

constexpr std::uint64_t seconds_per_minute = 60;

float rate_of(std::uint64_t before, std::uint64_t now, std::uint64_t seconds) {
  return now > before ? static_cast<float>(static_cast<double>(now - before) / static_cast<double>(seconds))
                      : 0;
}

std::uint32_t saturated(std::uint64_t count) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(count, most));
}

}  // namespace

void TopicHistory::Minute::add(const FlowSample& sample) {
  in += static_cast<double>(sample.in);
  out += static_cast<double>(sample.out);
  pending = std::max(pending, sample.pending);
  lag = std::max(lag, sample.lag);
  ++seconds;
}

FlowSample TopicHistory::Minute::sample() const {
  return {static_cast<float>(in / seconds), static_cast<float>(out / seconds), pending, lag};
}

bool TopicHistory::add(std::uint64_t second, const TopicFlow& now) {
  if (second < second_) return false;
  const std::uint64_t seconds = second - second_ + 1;
  const FlowSample sample{.in = rate_of(last_.in, now.in, seconds),
                          .out = rate_of(last_.out, now.out, seconds),
                          .pending = saturated(now.pending),
                          .lag = saturated(now.lag)};
  const bool has_changed = now.in != last_.in || now.out != last_.out || now.pending != last_.pending;
  last_ = now;
  // Longer gaps fill both rings anyway.
  constexpr std::uint64_t most = seconds_per_minute * minutes_kept;
  for (std::uint64_t each = second + 1 - std::min(seconds, most); each <= second; ++each)
    add_second(each, sample);
  second_ = second + 1;
  return has_changed;
}

void TopicHistory::add_second(std::uint64_t second, const FlowSample& sample) {
  if (second % seconds_per_minute == 0 && minute_.seconds > 0) {
    minutes_.add(minute_.sample());
    minute_ = {};
  }
  seconds_.add(sample);
  minute_.add(sample);
}

TopicCourse TopicHistory::course() const {
  TopicCourse course;
  seconds_.append_to(course.seconds);
  minutes_.append_to(course.minutes);
  if (minute_.seconds > 0) course.minutes.push_back(minute_.sample());
  return course;
}

}  // namespace lightq::broker
