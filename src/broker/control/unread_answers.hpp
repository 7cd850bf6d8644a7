/// Answers that clients of the control socket do not read, in bytes. Layer: control.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace lightq::broker {

/// What each source holds so of the broker's memory, and all together. One thread.
class UnreadAnswers {
 public:
  /// One client's were `before`, and are `now`.
  void change(const std::string& source, std::size_t before, std::size_t now) {
    if (before == now) return;
    total_ += now - before;  // modulo, as size_t is
    std::size_t& bytes = of_[source];
    bytes += now - before;
    if (bytes == 0) of_.erase(source);
  }
  [[nodiscard]] std::size_t of(const std::string& source) const {
    const auto found = of_.find(source);
    return found == of_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  std::unordered_map<std::string, std::size_t> of_;  // those that hold any
  std::size_t total_ = 0;
};

}  // namespace lightq::broker
