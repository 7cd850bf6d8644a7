/// A value or an error. Layer: base.
#pragma once

#include <cassert>
#include <stdexcept>
#include <utility>
#include <variant>

#include <lightq/base/error.hpp>

namespace lightq::inline v1 {

/// The exception that `value_or_throw` throws.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The outcome of an operation that can fail: a `T` or an `Error`. Test it before taking the value; taking
/// the wrong one is a bug and asserts. `value_or_throw()` is for callers that prefer exceptions.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  /// Constructs the value in place from `parts`.
  template <typename... Parts>
  explicit Result(std::in_place_t, Parts&&... parts)
      : state_(std::in_place_index<0>, std::forward<Parts>(parts)...) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const { return assert(!ok()), *std::get_if<1>(&state_); }

  T value_or_throw() && {
    if (!ok()) throw Exception(error());
    return std::move(*this).value();
  }

 private:
  std::variant<T, Error> state_;
};

/// The outcome of an operation without a value: success or an `Error`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const { return assert(!ok()), *error_; }
  void value_or_throw() const {
    if (!ok()) throw Exception(error());
  }

 private:
  std::optional<Error> error_;
};

}  // namespace lightq::inline v1
