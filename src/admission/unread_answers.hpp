/// Counts the bytes of replies that clients of the control socket have not read. Layer: admission.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace lightq::broker {

/// The memory that unread replies take, per source and in total. One thread.
class UnreadAnswers {
 public:
  /// Changes the count of one client from `before` to `now`.
  void change(const std::string& source, std::size_t before, std::size_t now) {
    if (before == now) return;
    total_ += now - before;  // size_t wraps, so a decrease works, too
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
  std::unordered_map<std::string, std::size_t> of_;  // sources with unread bytes
  std::size_t total_ = 0;
};

}  // namespace lightq::broker
