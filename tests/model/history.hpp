/// The last operations of a run, for the report of a failure.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

namespace lightq::model {

/// Keeps the newest lines. A plain value.
class History {
 public:
  /// The number of lines; LIGHTQ_HISTORY sets another one.
  static std::size_t lines_max() {
    static const std::size_t lines = [] {
      const char* const given = std::getenv("LIGHTQ_HISTORY");
      return given == nullptr ? std::size_t{40} : static_cast<std::size_t>(std::strtoull(given, nullptr, 10));
    }();
    return lines;
  }

  void add(std::string line) {
    ++total_;
    lines_.push_back(std::move(line));
    if (lines_.size() > lines_max()) lines_.pop_front();
  }
  [[nodiscard]] std::string text() const {
    std::string all = "the last of " + std::to_string(total_) + " events:\n";
    for (const std::string& line : lines_) all += "  " + line + "\n";
    return all;
  }

 private:
  std::size_t total_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace lightq::model
