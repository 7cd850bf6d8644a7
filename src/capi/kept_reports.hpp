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

#include "capi/boundary.hpp"

namespace lightq::capi {

/// A report that outlives the callback. `first_due`: lightq_report.delayed_first.
struct KeptReport {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Fate fate = Fate::confirmed;
  int code = LIGHTQ_OK;
  std::int64_t first_due = -1;
  std::string text;
};

/// Owns the reports of one producer in the order of their arrival. Joins neighbours that tell the same.
/// For one thread.
class KeptReports {
 public:
  static constexpr std::size_t reports_max = 10'000;

  /// Keeps a report. Beyond `reports_max`, the oldest become one with an unknown fate. Throws std::bad_alloc.
  void add(const SendReport& report) {
    KeptReport made{report.begin,
                    report.end,
                    report.fate,
                    report.error == nullptr ? LIGHTQ_OK : code_of(report.error->code),
                    report.number ? static_cast<std::int64_t>(*report.number) : -1,
                    report.error == nullptr ? std::string() : report.error->message};
    if (!kept_.empty() && continues(kept_.back(), made)) {
      kept_.back().end = made.end;
      return;
    }
    if (kept_.size() == reports_max) forget_oldest();
    kept_.push_back(std::move(made));
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
    const auto second = std::next(kept_.begin());
    const KeptReport forgotten{
        std::min(kept_.front().begin, second->begin),
        std::max(kept_.front().end, second->end),
        Fate::unknown,
        LIGHTQ_LIMIT_REACHED,
        -1,
        "more fates were kept than the program has taken: the messages may be stored or not"};
    kept_.pop_front();
    kept_.front() = forgotten;
  }
  static bool continues(const KeptReport& last, const KeptReport& next) {
    const auto due = static_cast<std::int64_t>(last.end - last.begin) + last.first_due;
    return last.end == next.begin && last.fate == next.fate && last.code == next.code &&
           (last.first_due < 0 ? next.first_due < 0 : next.first_due == due);
  }

  std::deque<KeptReport> kept_;
};

}  // namespace lightq::capi
