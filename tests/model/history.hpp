/// The last operations of a run, for the report of a failure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

namespace lightq::model {

/// Keeps the newest lines. A plain value.
class History {
 public:
  static constexpr std::size_t lines_max = 40;

  void add(std::string line) {
    ++total_;
    lines_.push_back(std::move(line));
    if (lines_.size() > lines_max) lines_.pop_front();
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
