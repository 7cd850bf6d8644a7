/// The fates of a producer's messages, kept until the program takes them. Layer: capi.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>

#include <lightq/lightq.h>
#include <lightq/producer.hpp>

#include "capi/conversions.hpp"

namespace lightq::capi {

/// A report that outlives the callback. `text` is its text; report.text is null.
struct KeptReport {
  lightq_report report;
  std::string text;
};

/// Owns the reports of one producer in the order of their arrival. Joins neighbours with the same fate, code
/// and text.
/// For one thread.
class KeptReports {
 public:
  static constexpr std::size_t reports_max = 10'000;

  /// Keeps a report. Beyond `reports_max`, the oldest become one with an unknown fate. Throws std::bad_alloc.
  void add(const SendReport& report) {
    const lightq_report made = report_of(report);
    if (!kept_.empty() && continues(kept_.back(), made)) {
      kept_.back().report.end = made.end;
      return;
    }
    if (kept_.size() == reports_max) forget_oldest();
    kept_.push_back({made, made.text});
    kept_.back().report.text = nullptr;
  }
  /// Removes and returns the oldest report, or nothing.
  std::optional<KeptReport> take() {
    if (kept_.empty()) return std::nullopt;
    std::optional<KeptReport> oldest(std::move(kept_.front()));
    kept_.pop_front();
    return oldest;
  }

 private:
  /// Replaces the two oldest reports by one that also covers the numbers between them.
  void forget_oldest() {
    const lightq_report& second = std::next(kept_.begin())->report;
    KeptReport forgotten{
        kept_.front().report,
        "more fates were kept than the program has taken: the messages may be stored or not"};
    forgotten.report.begin = std::min(forgotten.report.begin, second.begin);
    forgotten.report.end = std::max(forgotten.report.end, second.end);
    forgotten.report.fate = LIGHTQ_UNKNOWN;
    forgotten.report.code = LIGHTQ_LIMIT_REACHED;
    forgotten.report.delayed_first = -1;
    kept_.pop_front();
    kept_.front() = std::move(forgotten);
  }
  static bool continues(const KeptReport& kept, const lightq_report& next) {
    const lightq_report& last = kept.report;
    const auto due = static_cast<std::int64_t>(last.end - last.begin) + last.delayed_first;
    return last.end == next.begin && last.fate == next.fate && last.code == next.code &&
           kept.text == next.text &&
           (last.delayed_first < 0 ? next.delayed_first < 0 : next.delayed_first == due);
  }

  std::deque<KeptReport> kept_;
};

}  // namespace lightq::capi
