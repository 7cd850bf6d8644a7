/// A member that a move resets in the object that was moved from. Layer: base.
#pragma once

#include <utility>

namespace lightq::inline v1 {

/// A value that is `T()` again after it was moved from. For members that refer to memory of another member,
/// for example a raw pointer. A plain pointer would keep its value in the object that was moved from.
/// Converts to `T&`. Movable, not copyable.
template <typename T>
class ResetByMove {
 public:
  ResetByMove() = default;
  ResetByMove(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  ResetByMove(ResetByMove&& other) noexcept : value_(std::exchange(other.value_, T())) {}
  ResetByMove& operator=(ResetByMove&& other) noexcept {
    value_ = std::exchange(other.value_, T());  // a move to itself changes nothing
    return *this;
  }
  ResetByMove(const ResetByMove&) = delete;
  ResetByMove& operator=(const ResetByMove&) = delete;
  ~ResetByMove() = default;

  [[nodiscard]] T& get() { return value_; }
  [[nodiscard]] const T& get() const { return value_; }
  operator T&() { return value_; }              // NOLINT(google-explicit-constructor)
  operator const T&() const { return value_; }  // NOLINT(google-explicit-constructor)
  /// Accesses what the value, a pointer or an optional, refers to. Requires: the value refers to something.
  [[nodiscard]] T& operator->() { return value_; }
  [[nodiscard]] const T& operator->() const { return value_; }

 private:
  T value_ = T();
};

}  // namespace lightq::inline v1
