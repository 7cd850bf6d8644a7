/// A consumer's messages as a range for loops. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <stop_token>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/detail/deadline.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// A single-pass range over the messages that `Handle::receive` returns, each a `Value`. Lifetime: the
/// consumer must outlive the range and must not be moved.
template <typename Handle, typename Value>
class MessageRange {
 public:
  MessageRange(Handle& consumer, Timeout idle_timeout, std::stop_token stop)
      : consumer_(&consumer), idle_timeout_(idle_timeout), stop_(std::move(stop)) {}

  /// Lifetime: each message is valid until the iterator advances.
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(MessageRange& range) : range_(&range) {}
    const Value& operator*() const { return *range_->current_; }
    const Value* operator->() const { return &*range_->current_; }
    Iterator& operator++() {
      range_->next();
      return *this;
    }
    void operator++(int) { range_->next(); }
    bool operator==(std::default_sentinel_t) const { return !range_->current_; }

   private:
    MessageRange* range_ = nullptr;
  };

  Iterator begin() {
    next();
    return Iterator(*this);
  }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  /// Returns success, or the error at which the range ended.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  void next() {
    current_.reset();
    const auto deadline = deadline_after(idle_timeout_);
    const Timeout slice = stop_.stop_possible() ? Timeout(100) : Timeout::max();
    while (!stop_.stop_requested() && !consumer_->finished()) {
      const Timeout left = time_left(deadline);
      Result<std::optional<Value>> received = consumer_->receive(std::min(left, slice));
      if (!received) {
        result_ = received.error();
        return;
      }
      current_ = std::move(*received);
      if (current_ || left <= slice) return;
    }
  }

  Handle* consumer_;
  Timeout idle_timeout_;
  std::stop_token stop_;
  std::optional<Value> current_;
  Result<void> result_;
};

}  // namespace lightq::inline v1
